"""Many who ask at once are served together, and each gets its own answer."""

import sqlite3

import anyio
import attrs
import pytest

from dragoman.errors import StaleLease, StoreUnavailable
from dragoman.store.gathering import GROUP, Gathering
from dragoman.store.sqlite import open_sqlite
from dragoman.testing.store import Scene

pytestmark = pytest.mark.anyio


@attrs.define(eq=False)
class Desk:
    """Answers numbers with their doubles, and keeps the groups in which they came."""

    groups: list[list[int]] = attrs.field(factory=list)
    gate: anyio.Event = attrs.field(factory=anyio.Event)
    broken: dict[int, Exception] = attrs.field(factory=dict)

    async def serve(self, group):
        self.groups.append(list(group))
        await self.gate.wait()
        for number in group:
            if number in self.broken:
                raise self.broken[number]
        return [StaleLease(str(number), 1) if number < 0 else 2 * number for number in group]


async def answers_of(gathering, numbers):
    """Ask for all at once; return the answers, refusals among them, in order."""
    found = {}

    async def ask(number):
        try:
            found[number] = await gathering.ask(number)
        except (StaleLease, StoreUnavailable) as error:
            found[number] = error

    async with anyio.create_task_group() as tasks:
        for number in numbers:
            tasks.start_soon(ask, number)
    return [found[number] for number in numbers]


@pytest.fixture
async def desk():
    return Desk()


@pytest.fixture
async def gathering(desk):
    gathering = Gathering(desk.serve)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(gathering.run)
        yield gathering
        desk.gate.set()
        gathering.close()


async def test_who_asks_while_a_group_is_served_is_in_the_next_one(desk, gathering):
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(answers_of, gathering, [1, 2])
        await anyio.wait_all_tasks_blocked()
        for number in (3, 4):
            tasks.start_soon(gathering.ask, number)
            await anyio.wait_all_tasks_blocked()
        desk.gate.set()
    assert desk.groups == [[1, 2], [3, 4]]


async def test_a_group_has_its_limit_and_nobody_is_forgotten(desk, gathering):
    desk.gate.set()
    numbers = list(range(2 * GROUP + 1))
    assert await answers_of(gathering, numbers) == [2 * number for number in numbers]
    assert list(map(len, desk.groups)) == [GROUP, GROUP, 1]


async def test_a_refusal_is_of_one_alone(desk, gathering):
    desk.gate.set()
    good, bad = await answers_of(gathering, [1, -1])
    assert good == 2
    assert isinstance(bad, StaleLease)
    assert desk.groups == [[1, -1]]


async def test_what_fails_together_is_tried_alone(desk, gathering):
    """Invariant 11: one that cannot be served costs the others nothing."""
    desk.gate.set()
    desk.broken[2] = KeyError("two")
    first, second, third = await answers_of(gathering, [1, 2, 3])
    assert (first, third) == (2, 6)
    assert isinstance(second.__cause__, KeyError)
    desk.broken[4] = StoreUnavailable("not read")
    assert await answers_of(gathering, [4]) == [desk.broken[4]]
    assert await gathering.ask(5) == 10


async def test_a_locked_file_is_not_tried_again_for_each(desk, gathering):
    desk.gate.set()
    desk.broken[1] = error = sqlite3.OperationalError("database is locked")
    error.sqlite_errorcode = sqlite3.SQLITE_BUSY
    refused = await answers_of(gathering, [1, 2, 3])
    assert [one.__cause__ for one in refused] == [error] * 3
    assert desk.groups == [[1, 2, 3]]


async def test_who_is_cancelled_is_served_all_the_same(desk, gathering):
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(gathering.ask, 1)
        await anyio.wait_all_tasks_blocked()
        tasks.start_soon(gathering.ask, 2)
        await anyio.wait_all_tasks_blocked()
        tasks.cancel_scope.cancel()
    desk.gate.set()
    assert await gathering.ask(3) == 6
    assert desk.groups == [[1], [2, 3]]


async def test_what_was_accepted_is_served_before_it_ends(desk):
    """Also where the owner of its task is cancelled; nothing more is taken."""
    gathering = Gathering(desk.serve)
    async with anyio.create_task_group() as tasks, anyio.create_task_group() as owner:
        owner.start_soon(gathering.run)
        tasks.start_soon(gathering.ask, 1)
        await anyio.wait_all_tasks_blocked()
        tasks.start_soon(gathering.ask, 2)
        await anyio.wait_all_tasks_blocked()
        owner.cancel_scope.cancel()
        gathering.close()
        with pytest.raises(StoreUnavailable, match="closed"):
            await gathering.ask(3)
        desk.gate.set()
    assert desk.groups == [[1], [2]]


ITEMS = ["", "\n", '{"a": 1}', "\x1e\x1f", "a\0b", "漢字 👩‍👩‍👧 \u2028", ",", "[", "x" * 100_000]


@pytest.mark.parametrize("name", ["a.db", None])
async def test_the_records_of_many_are_read_with_one_statement(tmp_path, name):
    """Each gets its own list, in order and as it was stored, as many items as it asked for."""
    async with open_sqlite(tmp_path / name if name else None) as store:
        scene = Scene(store)
        grants = [await scene.running(channel=str(number)) for number in range(len(ITEMS))]
        for number, grant in enumerate(grants):
            append = scene.append(grant, "state", "first")
            await store.apply(attrs.evolve(append, items=("first", *ITEMS[:number])))
        asked = [(grant.lease.session_id, "state") for grant in grants]
        wanted = [*asked, *asked, ("nobody", "state")]
        found = {}

        async def read(number):
            found[number] = await store.read.records(*wanted[number], 1000)

        said = []
        await store.connections[-1].set_trace_callback(said.append)
        async with anyio.create_task_group() as tasks:
            for number in range(len(wanted)):
                tasks.start_soon(read, number)
        await store.connections[-1].set_trace_callback(None)
        assert len(said) == 1
        kept = ["first", *(item.replace("\0", "\ufffd") for item in ITEMS)]
        expected = [kept[: number + 1] for number in range(len(ITEMS))]
        assert [found[number] for number in range(len(wanted))] == [*expected, *expected, []]


async def test_those_who_want_more_and_those_who_want_less_get_what_they_want():
    async with open_sqlite(None) as store:
        scene = Scene(store)
        grant = await scene.running()
        append = scene.append(grant, "state", "x")
        await store.apply(attrs.evolve(append, items=tuple("abcdef")))
        found = {}

        async def read(limit):
            found[limit] = await store.read.records(grant.lease.session_id, "state", limit)

        async with anyio.create_task_group() as tasks:
            for limit in (None, 0, 1, 3, 7):
                tasks.start_soon(read, limit)
        assert {limit: "".join(items) for limit, items in found.items()} == {
            None: "abcdef",
            0: "",
            1: "f",
            3: "def",
            7: "abcdef",
        }
