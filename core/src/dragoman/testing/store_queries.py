"""What a store tells its readers, compared with the model."""

from __future__ import annotations

from collections.abc import Mapping

from dragoman.messages import Address
from dragoman.states import ApprovalState, EventState
from dragoman.store import operations as ops
from dragoman.store.codec import lane_column
from dragoman.store.sqlite import SqliteStore
from dragoman.testing.store_choices import CHANNELS
from dragoman.testing.store_model import StoreModel
from dragoman.testing.store_model_rows import ModelQuestion
from dragoman.testing.store_scene import NOW


async def check_queries(store: SqliteStore, model: StoreModel) -> None:
    """Compare each query's answer with the model's."""
    await _check_records(store, model)
    await _check_owed(store, model)
    read = store.read
    assert list(await read.backlog(100)) == model.backlog()
    assert list(await read.backlog(1, ["stub"])) == model.backlog()[:1]
    assert list(await read.backlog(100, ["another"])) == []
    undecided = [event.stored for event in model.undecided()]
    assert list(await read.received("stub", 0, 100)) == undecided
    assert list(await read.undecided(model.events)) == undecided
    await _check_sessions(store, model)
    await _check_waiting(store, model)
    await _check_questions(store, model)
    values = sorted((name, value) for (_, name), value in model.values.items())
    assert list(await read.values("c", "")) == values
    assert list(await read.values("c", "a")) == [v for v in values if v[0].startswith("a")]


async def _check_sessions(store: SqliteStore, model: StoreModel) -> None:
    for key, number in model.keys.items():
        found = {one.key: id_ for id_, one in model.sessions.items() if one.current}
        for (of, profile, runtime), session_id in found.items():
            if of != number:
                continue
            assert await store.read.session(key, profile, runtime) == session_id
            told = [(each.id, each.item) for each in model.noted(session_id)[::-1][:2]]
            notes = await store.read.notes(key, profile, runtime, 2)
            assert [(note[0], note[3]) for note in notes] == told
    assert {row[2]: row[3] for row in await store.read.moves()} == model.moves
    for session_id in model.sessions:
        await _check_past(store, model, session_id)
        turn = model.open_turn(session_id)
        running = (turn.wish.turn_id, turn.wish.now) if turn else None
        assert await store.read.running(session_id) == running
        queued = [event.stored for event in model.queued(session_id)]
        assert list(await store.read.queued(session_id, 100)) == queued


async def _check_past(store: SqliteStore, model: StoreModel, session_id: str) -> None:
    """All sessions of the conversation are listed in which something was said, or will be."""
    key = model.session_key(session_id)
    listed = await store.read.sessions(session_id)
    assert {(one.id, one.title, one.current) for one in listed} == {
        (id_, one.title, one.current)
        for id_, one in model.sessions.items()
        if one.key == key and (one.current or model.used(id_))
    }
    assert [one.current for one in listed] == [True, *[False] * (len(listed) - 1)]
    assert sorted(one.number for one in listed) == list(range(1, len(listed) + 1))


async def _check_waiting(store: SqliteStore, model: StoreModel) -> None:
    """What can be changed or joined: the oldest message that no turn has begun with."""
    waiting = [
        model.events[id_]
        for id_ in sorted(model.events)
        if model.events[id_].state in {EventState.HELD, EventState.QUEUED}
    ]
    for event in waiting[-3:]:
        place, sender = event.inbound.address, event.inbound.sender.id
        oldest = next(
            other
            for other in waiting
            if (other.inbound.address.lane, other.inbound.sender.id) == (place.lane, sender)
        )
        assert await store.read.waiting(place, sender, "") == oldest.stored
        assert await store.read.waiting(place, "nobody", "") is None
        in_place = [each.stored for each in waiting if each.inbound.address.lane == place.lane]
        assert list(await store.read.waiting_in(place, event.id + 1, 100)) == [
            each for each in in_place if each.id <= event.id
        ]
    await _check_said(store, model)
    queued = [event.stored for event in waiting if event.state is EventState.QUEUED]
    early = [event for event in queued if event.received_at < NOW]
    assert list(await store.read.overdue(NOW, 100)) == early
    # The order of receipt says who waits longest, whatever the clock said then.
    ages = [NOW - event.received_at for event in model.undecided()]
    ages += [NOW - event.received_at for event in queued[:1]]
    found_ages = await store.read.oldest(NOW)
    assert found_ages.get("events") == (max(0.0, *ages) if ages else None)


async def _check_said(store: SqliteStore, model: StoreModel) -> None:
    """A message is found by its id, with the session that is given it, also as part of another."""
    for event in list(model.events.values())[-3:]:
        said = await store.read.said(event.inbound.address, event.inbound.message_id, event.id + 1)
        if event.inbound.data:  # a press says something, and is no message that others refer to
            assert said is None
            continue
        assert said is not None
        assert (said.stored, said.state, said.reason) == (event.stored, event.state, event.reason)
        whole = event
        if event.state is EventState.MERGED and not event.session_id:
            whole = model.events.get(int(event.reason.rpartition(" ")[2]), event)
        given = whole.turn_id or whole.state is EventState.QUEUED
        assert said.session_id == (whole.session_id if given else "")
    at_work = {
        (turn.session_id, name)
        for name, turn in model.turns.items()
        if not turn.state.final and model.inputs(name)
    }
    found = [await store.read.at_work(Address("stub", one), 1 << 40) for one in CHANNELS]
    assert {each for place in found for each in place} == at_work


async def _check_questions(store: SqliteStore, model: StoreModel) -> None:
    """What people can decide, and what they have granted."""
    read = store.read
    undecided = [one for one in model.questions.values() if one.verdict is ApprovalState.OPEN]
    asked = {one.question.id: model.approval(one) for one in undecided}
    assert {one.question.id: one for one in await read.open_questions()} == asked
    for session_id in model.sessions:
        found = [one.question.id for one in await read.open_questions(session_id)]
        mine = [one for one in asked.values() if one.session_id == session_id]
        assert sorted(found) == sorted(one.question.id for one in mine)
    for one in list(model.questions.values())[-2:]:
        if one.event_id:
            same = [
                model.approval(other)
                for other in model.questions.values()
                if other.event_id == one.event_id
            ]
            found_by = await read.decided_by(one.event_id)
            assert sorted(found_by, key=repr) == sorted(same, key=repr)
        card = await read.card(one.question.id)
        assert card == (_card(model, one) if one.question.card else None)
    await _check_places(store, model, asked)
    stale = [one for one in model.questions.values() if one.live and one not in undecided]
    found_stale = await read.stale_cards(1000)
    assert sorted(found_stale, key=repr) == sorted((_card(model, one) for one in stale), key=repr)
    expiries = [one.question.expires_at for one in undecided]
    assert await read.next_expiry() == (min(expiries) if expiries else None)
    for one in list(model.questions.values())[-2:]:
        assert await read.approval(one.question.id) == model.approval(one)
        inputs = [event.stored for event in model.inputs(one.turn_id)]
        assert list(await read.turn_inputs(one.turn_id)) == inputs
    for key in model.grants:
        assert await read.granted(*key)
    assert not await read.granted("conv", "default", "send")


async def _check_places(
    store: SqliteStore, model: StoreModel, asked: Mapping[str, ops.Approval]
) -> None:
    """What is undecided in a place is what somebody asked for there."""
    for channel in CHANNELS:
        lane = Address("stub", channel).lane
        here = [
            name
            for name, one in asked.items()
            if any(event.inbound.address.lane == lane for event in model.inputs(one.turn_id))
        ]
        found = await store.read.open_in([lane_column(lane)])
        assert sorted(one.question.id for one in found) == sorted(here)


def _card(model: StoreModel, one: ModelQuestion) -> ops.Card:
    event = model.events.get(one.event_id)
    return ops.Card(
        approval=model.approval(one),
        delivery=model.deliveries[one.question.card].owed,
        name=event.inbound.sender.name if event else "",
    )


async def _check_records(store: SqliteStore, model: StoreModel) -> None:
    for session_id in model.sessions:
        for namespace in ("transcript", "state"):
            items = model.items(session_id, namespace)
            assert list(await store.read.records(session_id, namespace, None)) == items
            assert list(await store.read.records(session_id, namespace, 2)) == items[-2:]


async def _check_owed(store: SqliteStore, model: StoreModel) -> None:
    """Invariant 14: inside a lane, in the order in which it became owed."""
    everything = await store.read.owed(None, 1000)
    owing = {address.lane for address in await store.read.owing()}
    for channel in CHANNELS:
        address = Address("stub", channel)
        owed = model.owed(address)
        assert list(await store.read.owed(lane_column(address.lane), 1000)) == owed
        assert [part for part in everything if part.address.lane == address.lane] == owed
        assert (address.lane in owing) == bool(owed)
    assert set(await store.read.files()) == {
        row.file.id for row in model.deliveries.values() if row.file and not row.state.final
    }
