"""What a store tells its readers, compared with the model."""

from __future__ import annotations

from dragoman.messages import Address
from dragoman.states import EventState
from dragoman.store.codec import lane_column
from dragoman.store.sqlite import SqliteStore
from dragoman.testing.store_draws import CHANNELS
from dragoman.testing.store_model import StoreModel


async def check_queries(store: SqliteStore, model: StoreModel) -> None:
    """Compare each query's answer with the model's."""
    await _check_records(store, model)
    await _check_owed(store, model)
    read = store.read
    assert list(await read.backlog(100)) == model.backlog()
    assert list(await read.backlog(1, ["stub"])) == model.backlog()[:1]
    assert list(await read.backlog(100, ["another"])) == []
    assert [event.id for event in await read.received("stub", 0, 100)] == [
        event.id for event in model.events.values() if event.state is EventState.RECEIVED
    ]
    values = sorted((name, value) for (_, name), value in model.values.items())
    assert list(await read.values("c", "")) == values
    assert list(await read.values("c", "a")) == [v for v in values if v[0].startswith("a")]


async def _check_records(store: SqliteStore, model: StoreModel) -> None:
    for session_id in model.sessions.values():
        for namespace in ("transcript", "state"):
            items = model.records.get((session_id, namespace), [[]])[-1]
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
