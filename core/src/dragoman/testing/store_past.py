"""The store's contract for what is past: messages found by their names, notes, channels that moved."""

from __future__ import annotations

import attrs

from dragoman.keys import ConversationKey
from dragoman.messages import Address, Inbound, Kind
from dragoman.states import DeliveryState, EventState
from dragoman.store import operations as ops
from dragoman.store.sqlite import SqliteStore
from dragoman.testing.store_rows import event_states
from dragoman.testing.store_scene import NOW, OpenStore, Scene, together

HERE = Address("stub", "1")
LATER = 1 << 40


class PastSuite:
    """A part of `dragoman.testing.store.StoreSuite`."""

    async def test_a_message_is_found_by_its_name_in_its_channel(
        self, open_store: OpenStore
    ) -> None:
        """The newest that came before; in whichever thread, but nowhere else, and no edit of it."""
        async with open_store() as store:
            scene = Scene(store)
            thread = Address("stub", "1", "9")
            one, two = [await receive(scene, "m", address=thread) for _ in range(2)]
            edit = await receive(scene, "m", kind=Kind.EDIT)
            await receive(scene, "m", address=Address("stub", "10"))
            await receive(scene, "", address=HERE)
            for before, wanted in ((edit, two), (two, one)):
                said = await store.read.said(HERE, "m", before)
                assert said is not None
                assert (said.stored.id, said.session_id) == (wanted, "")
                assert (said.state, said.stored.inbound.address) == (EventState.RECEIVED, thread)
            assert await store.read.said(HERE, "m", one) is None
            assert await store.read.said(HERE, "", LATER) is None

    async def test_a_message_names_the_session_that_is_given_it(
        self, open_store: OpenStore
    ) -> None:
        """Also as a part of another one; of one that came twice, the event that counts is found."""
        async with open_store() as store:
            scene = Scene(store)
            lead, part, refused = [await receive(scene, name) for name in ("l", "p", "r")]
            await store.apply(scene.merge(lead, part))
            session = (await store.apply(scene.accept(lead, adopt=False))).session_id
            await settle(store, refused, EventState.REFUSED, "not on any list")
            twin = await receive(scene, "l")
            await settle(store, twin, EventState.MERGED, f"part of {lead}")
            for name, id_, wanted in (
                ("l", lead, session),
                ("p", part, session),
                ("r", refused, ""),
            ):
                said = await store.read.said(HERE, name, LATER)
                assert said is not None
                assert (said.stored.id, said.session_id) == (id_, wanted)

    async def test_what_was_shown_is_found_by_the_platform_s_name(
        self, open_store: OpenStore
    ) -> None:
        """With its session where a turn said it; not what has no name yet."""
        async with open_store() as store:
            scene = Scene(store)
            grant = await scene.running()
            finish = scene.finish(grant, next_turn=False)
            await store.apply(finish)
            notice = await scene.owed()
            for number, delivery_id in enumerate((finish.parts[0].delivery_id, notice)):
                await store.apply(ops.BeginSend(delivery_id=delivery_id, attempt=1))
                await store.apply(
                    ops.EndSend(
                        delivery_id=delivery_id,
                        state=DeliveryState.DELIVERED,
                        native_id=str(number),
                        now=NOW,
                    )
                )
            told = await store.read.told(HERE, "0")
            session = grant.lease.session_id
            assert told == ops.Told(address=HERE, text="one", at=NOW, session_id=session)
            notices = await store.read.told(HERE, "1")
            assert notices is not None
            assert notices.session_id == ""
            assert await store.read.told(Address("stub", "2"), "0") is None
            assert await store.read.told(HERE, "") is None

    async def test_notes_end_with_the_message_that_tells_them(self, open_store: OpenStore) -> None:
        """In the transaction of its admission; not where it found the queue full, nor another's."""
        async with open_store() as store:
            scene = Scene(store)
            grant = await scene.running()
            session = grant.lease.session_id
            notes = [await note(scene, session) for _ in range(3)]
            full, first, second = [await scene.received() for _ in range(3)]
            elsewhere = await scene.received(channel="2")
            await scene.waiting()
            refused = attrs.evolve(scene.accept(full, queue_limit=1), noted=notes[1])
            assert (await store.apply(refused)).full
            read = await store.read.notes(scene.conversation("1"), "default", "echo", 2)
            assert [(one[0], one[3]) for one in read] == [(id_, "it says") for id_ in notes[:0:-1]]
            (found,) = await store.read.noted(10)
            assert (found[0], found[1].id) == (session, notes[2])
            tells = [attrs.evolve(scene.accept(one), noted=notes[1]) for one in (first, second)]
            other = attrs.evolve(scene.accept(elsewhere, channel="2"), noted=notes[2])
            await together(store, tells[1], other, tells[0])
            states = await event_states(store)
            assert [states[one] for one in notes] == ["merged", "merged", "noted"]
            said = await store.connections[0].execute_fetchall(
                "SELECT DISTINCT reason, item FROM inbound_events WHERE id IN (?, ?)",
                (notes[0], notes[1]),
            )
            assert [tuple(row) for row in said] == [(f"part of {first}", None)]

    async def test_a_session_that_begins_anew_is_told_nothing_of_before(
        self, open_store: OpenStore
    ) -> None:
        """Invariant 17: what was noted before the event that asked for it ends."""
        async with open_store() as store:
            scene = Scene(store)
            grant = await scene.running()
            await store.apply(scene.finish(grant, next_turn=False))
            session = grant.lease.session_id
            before = await note(scene, session)
            asked = await scene.received()
            after = await note(scene, session)
            await store.apply(ops.Reset(session_id=session, event_id=asked, now=NOW))
            states = await event_states(store)
            assert (states[before], states[after]) == ("ignored", "noted")

    async def test_conversations_go_on_under_the_new_id(self, open_store: OpenStore) -> None:
        """A9: with their sessions; what was begun there before makes room, and twice is once."""
        async with open_store() as store:
            scene = Scene(store)
            old, new, other = [await scene.queued(channel=name) for name in ("1", "-100", "2")]
            move = ops.Move(platform="stub", workspace="", old="1", new="-100")
            assert await store.apply(move) is True
            assert await session_of(scene, "-100") == await session_of(scene, "1") == old
            assert await session_of(scene, "2") == other
            back = await scene.received(channel="-100")
            assert (await store.apply(scene.accept(back, channel="-100"))).session_id == old
            assert await store.apply(move) is False
            assert set(await store.read.backlog(10)) == {old, new, other}
            assert list(await store.read.moves()) == [("stub", "", "1", "-100")]
            elsewhere = ops.Move(platform="stub", workspace="T", old="2", new="3")
            assert await store.apply(elsewhere) is True
            assert await session_of(scene, "3") is None

    async def test_a_channel_that_comes_back_has_not_moved(self, open_store: OpenStore) -> None:
        """No circle: whoever follows the moves comes to an end."""
        async with open_store() as store:
            scene = Scene(store)
            session = await scene.queued()
            for old, new in (("1", "2"), ("2", "3"), ("3", "1")):
                await store.apply(ops.Move(platform="stub", workspace="", old=old, new=new))
            found = {move[2]: move[3] for move in await store.read.moves()}
            assert found == {"2": "3", "3": "1"}
            assert {await session_of(scene, name) for name in "123"} == {session}


async def receive(
    scene: Scene, message_id: str, address: Address = HERE, kind: Kind = Kind.MESSAGE
) -> int:
    """Receive an event about a message of that name."""
    inbound: Inbound = attrs.evolve(
        scene.inbound(), message_id=message_id, address=address, kind=kind
    )
    return (await scene.store.apply(ops.Receive(inbound=inbound, now=NOW))).event_id


async def settle(store: SqliteStore, event_id: int, state: EventState, reason: str) -> None:
    """End an event."""
    assert await store.apply(ops.Settle(event_id=event_id, state=state, reason=reason))


async def note(scene: Scene, session_id: str) -> int:
    """Note an edit for a session; return its event."""
    event_id = await receive(scene, "m", kind=Kind.EDIT)
    noted = ops.Settle(
        event_id=event_id,
        state=EventState.NOTED,
        reason="edited",
        session_id=session_id,
        note="it says",
    )
    assert await scene.store.apply(noted)
    return event_id


async def session_of(scene: Scene, channel: str) -> str | None:
    """Return the session that a channel's messages lead to."""
    key: ConversationKey = scene.conversation(channel)
    return await scene.store.read.session(key, "default", "echo")
