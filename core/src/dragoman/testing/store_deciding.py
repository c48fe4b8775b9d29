"""The store's contract for decisions: made once, in time, and shown until the card has changed."""

from __future__ import annotations

import attrs
import pytest

from dragoman.messages import Button
from dragoman.states import ApprovalState
from dragoman.store import operations as ops
from dragoman.store.codec import lane_column
from dragoman.store.sqlite import SqliteStore
from dragoman.testing.store_rows import contents
from dragoman.testing.store_scene import NOW, OpenStore, Scene


class DecidingSuite:
    """A part of `dragoman.testing.store.StoreSuite`."""

    async def test_the_first_decision_stays(self, open_store: OpenStore) -> None:
        """Invariant 8: whoever comes later is told; the same event is the same decision."""
        async with open_store() as store:
            scene = Scene(store)
            pause = await _asked(store, scene)
            event_id = await scene.received()
            first = attrs.evolve(scene.decide(pause), event_id=event_id)
            other = scene.decide(pause, verdict=ApprovalState.DENIED, by="8")
            made = await store.apply(first)
            assert made is not None
            assert made.won
            for late in (other, attrs.evolve(first, event_id=event_id + 1)):
                told = await store.apply(late)
                assert told == ops.Decided(won=False, approval=made.approval)
            assert await store.apply(first) == made
            assert list(await store.read.decided_by(event_id)) == [made.approval]

    @pytest.mark.parametrize(("late", "verdict"), [(-0.1, "approved"), (0.0, "expired")])
    async def test_a_decision_after_the_time_is_none(
        self, open_store: OpenStore, late: float, verdict: str
    ) -> None:
        """Invariant 8: whether or not it is written that the time is over."""
        async with open_store() as store:
            scene = Scene(store)
            pause = await _asked(store, scene)
            end = pause.questions[0].expires_at
            decided = await store.apply(attrs.evolve(scene.decide(pause), now=end + late))
            assert decided is not None
            assert decided.won is (verdict == "approved")
            assert decided.approval.verdict.value == verdict
            await store.apply(ops.Expire(now=end))
            kept = await store.read.approval(pause.questions[0].id)
            assert kept is not None
            assert kept.verdict.value == verdict

    async def test_a_card_is_to_be_changed_from_its_decision_until_it_was(
        self, open_store: OpenStore
    ) -> None:
        """FC-APR-04: as it was sent, and with the name of who has decided."""
        async with open_store() as store:
            scene = Scene(store)
            pause = await _asked(store, scene)
            clear = ops.ClearCard(approval_id=pause.questions[0].id)
            before = await contents(store)
            await store.apply(clear)
            assert await contents(store) == before, "an open question keeps its card"
            assert list(await store.read.stale_cards(10)) == []
            inbound = scene.inbound()
            inbound = attrs.evolve(inbound, sender=attrs.evolve(inbound.sender, name="Ann"))
            event = await store.apply(ops.Receive(inbound=inbound, now=NOW))
            await store.apply(attrs.evolve(scene.decide(pause), event_id=event.event_id))
            (card,) = await store.read.stale_cards(10)
            assert (card.name, card.delivery.buttons) == ("Ann", pause.notices[-1].buttons)
            await store.apply(clear)
            assert list(await store.read.stale_cards(10)) == []
            assert await store.read.card(pause.questions[0].id) == card

    async def test_the_newest_card_is_changed_first(self, open_store: OpenStore) -> None:
        """FC-APR-04: cards that cannot be changed any more are in no other's way."""
        async with open_store() as store:
            scene = Scene(store)
            for later, channel in enumerate("12"):
                pause = await _asked(store, scene, channel=channel)
                await store.apply(attrs.evolve(scene.decide(pause), now=NOW + later))
            (card,) = await store.read.stale_cards(1)
            assert card.approval.question.id == pause.questions[0].id

    async def test_what_is_open_in_a_place_is_what_was_asked_for_there(
        self, open_store: OpenStore
    ) -> None:
        """B12: nothing of another lane, and nothing that is decided."""
        async with open_store() as store:
            scene = Scene(store)
            here = await _asked(store, scene)
            await _asked(store, scene, channel="2")
            lane = lane_column(scene.inbound().address.lane)
            (found,) = await store.read.open_in([lane, "nowhere"])
            assert found.question.id == here.questions[0].id
            await store.apply(scene.decide(here))
            assert list(await store.read.open_in([lane])) == []

    @pytest.mark.parametrize("ended", [True, False])
    async def test_a_session_is_told_what_is_taken_back(
        self, open_store: OpenStore, ended: bool
    ) -> None:
        """FC-APR-04: once, before what is said next, and only where the turn was still waiting."""
        async with open_store() as store:
            scene = Scene(store)
            grant = await scene.running()
            pause = attrs.evolve(scene.pause(grant), withdrawn=("one", "two"))
            await store.apply(pause)
            if not ended:
                await store.apply(scene.decide(pause))
                adopt = ops.Adopt(session_id=grant.lease.session_id, adoption=scene.adoption())
                assert await store.apply(adopt)
            wish = ops.EndWaiting(turn_id=grant.lease.turn_id, detail="stopped", now=NOW)
            assert [await store.apply(wish) for _ in range(2)] == [ended] * 2
            items = await store.read.records(grant.lease.session_id, "transcript", None)
            assert items[1:] == (["one", "two"] if ended else [])


async def _asked(store: SqliteStore, scene: Scene, *, channel: str = "1") -> ops.Pause:
    """Let a turn ask about one call, with a card; return its pause."""
    pause = scene.pause(await scene.running(channel=channel))
    card = attrs.evolve(pause.notices[0], buttons=(Button("Yes", "a:1"),))
    (question,) = pause.questions
    pause = attrs.evolve(pause, notices=(card,), questions=(attrs.evolve(question, card=card.id),))
    await store.apply(pause)
    return pause
