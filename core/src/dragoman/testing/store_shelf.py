"""The store's contract for sessions that are set aside, gone back to, named, and taken back."""

from __future__ import annotations

import attrs
import pytest

from dragoman.states import TurnState
from dragoman.store import operations as ops
from dragoman.testing.store_rows import contents
from dragoman.testing.store_scene import NOW, OpenStore, Scene, together


class ShelfSuite:
    """A part of `dragoman.testing.store.StoreSuite`."""

    async def test_a_reset_sets_the_session_aside(self, open_store: OpenStore) -> None:
        """What was said is kept, and read no more; other conversations keep theirs."""
        async with open_store() as store:
            scene = Scene(store)
            other = await _said(scene, channel="2")
            old = await _said(scene)
            fresh = await _reset(scene, old)
            assert fresh not in {"", old, other}
            assert await _current(scene) == fresh
            assert await _current(scene, "2") == other
            assert await _said(scene) == fresh
            read = store.read.records
            assert len(await read(old, "transcript", None)) == 1
            assert len(await read(fresh, "transcript", None)) == 1

    async def test_a_reset_waits_for_no_turn(self, open_store: OpenStore) -> None:
        """Nothing is changed while one runs; what waits for its turn goes along."""
        async with open_store() as store:
            scene = Scene(store)
            grant = await scene.running()
            session_id = grant.lease.session_id
            asked, waits = await scene.received(), await scene.waiting()
            reset = ops.Reset(session_id=session_id, event_id=asked, now=NOW)
            before = await contents(store)
            assert await store.apply(reset) == ""
            assert await contents(store) == before
            await store.apply(scene.finish(grant, next_turn=False))
            fresh = await store.apply(reset)
            adopt = ops.Adopt(session_id=fresh, adoption=scene.adoption())
            begun = await store.apply(adopt)
            assert begun is not None
            assert [event.id for event in begun.inputs] == [waits]

    async def test_a_reset_is_done_once(self, open_store: OpenStore) -> None:
        """Asking again spares what was said since, also where nothing had been said before."""
        async with open_store() as store:
            scene = Scene(store)
            session_id, asked = await scene.queued(), await scene.received()
            reset = ops.Reset(session_id=session_id, event_id=asked, now=NOW)
            assert await together(store, reset, reset) == [session_id] * 2
            grant = await store.apply(ops.Adopt(session_id=session_id, adoption=scene.adoption()))
            assert grant is not None
            await store.apply(scene.finish(grant, next_turn=False))
            assert await store.apply(reset) == session_id
            assert await _current(scene) == session_id
            assert len(await store.read.records(session_id, "transcript", None)) == 1

    async def test_two_resets_at_once_set_one_session_aside(self, open_store: OpenStore) -> None:
        """The second one finds an empty session, which stays the only one."""
        async with open_store() as store:
            scene = Scene(store)
            old = await _said(scene)
            resets = [
                ops.Reset(session_id=old, event_id=await scene.received(), now=NOW)
                for _ in range(2)
            ]
            first, second = await together(store, *resets)
            assert first == second != old
            assert [one.id for one in await store.read.sessions(old)] == [first, old]

    async def test_a_conversation_goes_back_to_a_session(self, open_store: OpenStore) -> None:
        """With all it has; an empty one that is left for it serves as the next new one."""
        async with open_store() as store:
            scene = Scene(store)
            old = await _said(scene)
            empty = await _reset(scene, old)
            assert await _resume(scene, empty, old) == old == await _current(scene)
            assert await _said(scene) == old
            assert len(await store.read.records(old, "transcript", None)) == 2
            assert [one.id for one in await store.read.sessions(old)] == [old]
            assert await _reset(scene, old) == empty

    async def test_going_back_waits_for_nothing(self, open_store: OpenStore) -> None:
        """What runs or waits in the current session is answered there."""
        async with open_store() as store:
            scene = Scene(store)
            old = await _said(scene)
            await _reset(scene, old)
            grant = await scene.running()
            fresh = grant.lease.session_id
            assert await _resume(scene, fresh, old) == ""
            await scene.waiting()
            await store.apply(scene.finish(grant, next_turn=False))
            assert await _resume(scene, fresh, old) == ""
            assert await _current(scene) == fresh

    async def test_nobody_goes_back_to_another_s_session(self, open_store: OpenStore) -> None:
        """B11: not under a name that somebody has learned, and not to another profile's."""
        async with open_store() as store:
            scene = Scene(store)
            mine, theirs = await _said(scene), await _said(scene, channel="2")
            before = await contents(store)
            for wanted in (theirs, "sess_none", ""):
                assert await _resume(scene, mine, wanted) == ""
            after = await contents(store)
            assert {**after, "inbound_events": ()} == {**before, "inbound_events": ()}
            assert [one.id for one in await store.read.sessions(mine)] == [mine]

    async def test_going_back_is_done_once(self, open_store: OpenStore) -> None:
        """Asking again after somebody went elsewhere changes nothing."""
        async with open_store() as store:
            scene = Scene(store)
            old = await _said(scene)
            await _reset(scene, old)
            fresh = await _said(scene)
            event_id = await scene.received()
            resume = ops.Resume(session_id=fresh, wanted=old, event_id=event_id)
            assert await together(store, resume, resume) == [old, old]
            assert await _resume(scene, old, fresh) == fresh
            assert await store.apply(resume) == old
            assert await _current(scene) == fresh

    async def test_sessions_are_listed_with_what_they_are_about(
        self, open_store: OpenStore
    ) -> None:
        """The current one first, then those used last; their numbers stay, whatever is used."""
        async with open_store() as store:
            scene = Scene(store)
            made = [await _said(scene)]
            for _ in range(2):
                await _reset(scene, made[-1])
                made.append(await _said(scene))
            await store.apply(ops.Rename(session_id=made[1], title="about cats"))
            await _resume(scene, made[2], made[0])
            await _said(scene)
            listed = await store.read.sessions(made[2])
            assert [(one.id, one.number, one.title, one.current) for one in listed] == [
                (made[0], 1, "", True),
                (made[2], 3, "", False),
                (made[1], 2, "about cats", False),
            ]
            assert listed[0].words.startswith("message ")
            assert {one.used_at for one in listed} == {NOW}
            fresh = await _reset(scene, made[0])
            new, *_ = await store.read.sessions(fresh)
            assert (new.id, new.number, new.words, new.current) == (fresh, 4, "", True)

    async def test_the_last_turn_is_taken_back(self, open_store: OpenStore) -> None:
        """The lists are as they were before it, generations included; asked again, it is done."""
        async with open_store() as store:
            scene = Scene(store)
            session_id, read = await _said(scene), store.read.records
            first = await read(session_id, "transcript", None)
            turn = await scene.running()
            await store.apply(scene.append(turn, "spent", "much"))
            shorter = attrs.evolve(
                scene.append(turn, "transcript", "in short"), new_generation=True
            )
            await store.apply(shorter)
            undo = _undo(turn, await scene.received())
            assert await store.apply(undo) == (), "it runs"
            await store.apply(scene.finish(turn, next_turn=False))
            assert await together(store, undo, undo) == [turn.inputs, turn.inputs]
            assert await read(session_id, "transcript", None) == first
            assert await read(session_id, "spent", None) == ['"much"']
            again = attrs.evolve(undo, event_id=await scene.received())
            (before,) = await store.apply(again)
            assert before.id < turn.inputs[0].id
            assert await read(session_id, "transcript", None) == []
            assert await store.apply(undo) == turn.inputs
            assert await store.apply(attrs.evolve(again, event_id=await scene.received())) == ()

    async def test_the_last_turn_is_the_one_that_began_last(self, open_store: OpenStore) -> None:
        """Whatever the wall clock said, and in which order its messages came."""
        async with open_store() as store:
            scene = Scene(store)
            first = await scene.running()
            others = [await scene.waiting() for _ in range(3)]
            await store.apply(ops.Absorb(lease=first.lease, event_ids=(others[2],)))
            earlier = attrs.evolve(scene.adoption(), now=NOW - 60)
            finish = attrs.evolve(scene.finish(first), adoption=earlier)
            second = (await store.apply(finish)).next
            assert second is not None
            await store.apply(scene.finish(second, next_turn=False))
            assert await store.apply(_undo(second, await scene.received())) == second.inputs

    @pytest.mark.parametrize("state", [state for state in TurnState if state.final])
    async def test_only_what_was_not_answered_is_said_again(
        self, open_store: OpenStore, state: TurnState
    ) -> None:
        """With ``unanswered``, an answer stays where nothing can be taken back."""
        async with open_store() as store:
            scene = Scene(store)
            turn = await scene.running()
            await store.apply(attrs.evolve(scene.finish(turn, next_turn=False), state=state))
            undo = attrs.evolve(_undo(turn, await scene.received()), namespaces=(), unanswered=True)
            answered = state is TurnState.SUCCEEDED
            assert await store.apply(undo) == (() if answered else turn.inputs)
            session_id = turn.lease.session_id
            assert len(await store.read.records(session_id, "transcript", None)) == 1

    async def test_a_list_that_was_mended_is_left(self, open_store: OpenStore) -> None:
        """Who begins it anew without a turn copies items of turns: nobody knows which any more."""
        async with open_store() as store:
            scene = Scene(store)
            turn = await scene.running()
            await store.apply(scene.finish(turn, next_turn=False))
            await store.connections[0].execute_fetchall(
                "INSERT INTO records VALUES (?, 'transcript', 9, 0, 'mend', NULL, NULL)",
                (turn.lease.session_id,),
            )
            before = await contents(store)
            undo = _undo(turn, await scene.received())
            assert await store.apply(undo) == ()
            after = await contents(store)
            assert {**after, "inbound_events": ()} == {**before, "inbound_events": ()}


async def _said(scene: Scene, channel: str = "1") -> str:
    """Let a turn run in a channel; return the session that it was in."""
    grant = await scene.running(channel=channel)
    await scene.store.apply(scene.finish(grant, next_turn=False))
    return grant.lease.session_id


async def _reset(scene: Scene, session_id: str) -> str:
    event_id = await scene.received()
    return await scene.store.apply(ops.Reset(session_id=session_id, event_id=event_id, now=NOW))


async def _resume(scene: Scene, session_id: str, wanted: str) -> str:
    event_id = await scene.received()
    resume = ops.Resume(session_id=session_id, wanted=wanted, event_id=event_id)
    return await scene.store.apply(resume)


async def _current(scene: Scene, channel: str = "1") -> str | None:
    return await scene.store.read.session(scene.conversation(channel), "default", "echo")


def _undo(turn: ops.TurnGrant, event_id: int) -> ops.Undo:
    return ops.Undo(
        session_id=turn.lease.session_id, event_id=event_id, namespaces=("transcript", "notes")
    )
