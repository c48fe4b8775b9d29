"""Which program serves which session; programs are stood in for, the clock is virtual."""

import anyio
import attrs
import pytest

from dragoman.testing import VirtualClock, settle
from dragoman_claude.config import ProgramsTable
from dragoman_claude.memory import Used
from dragoman_claude.pool import Pool

pytestmark = pytest.mark.anyio


@attrs.define(eq=False)
class Program:
    """What the pool sees of a program: whether it lives, how much it has done, and what it uses.

    Once told to end it is alive until it ``may_end``.
    """

    alive: bool = True
    turns: int = 0
    resting: bool = False
    used: Used | None = None
    may_end: anyio.Event = attrs.field(factory=anyio.Event)
    ended: bool = False

    def __attrs_post_init__(self):
        self.may_end.set()

    @property
    def home(self):
        return self

    async def close(self):
        self.alive = False
        await self.may_end.wait()
        self.ended = True


@attrs.define(eq=False)
class Held:
    client: Program = attrs.field(factory=Program)


@attrs.define(eq=False)
class Stage:
    """A pool with what it has started."""

    pool: Pool
    clock: VirtualClock
    started: list[Held] = attrs.field(factory=list)
    fits: bool = True
    used: Used | None = None
    """What each program uses from its start."""

    async def begin(self):
        self.started.append(Held(Program(used=self.used)))
        return self.started[-1]

    def use(self, session):
        return self.pool.use(session, lambda _: self.fits, self.begin)

    async def turn(self, session):
        async with self.use(session) as one:
            one.client.turns += 1
        return one

    def alive(self):
        return [each.client.alive for each in self.started]


@pytest.fixture
async def stage(request):
    settings = dict(getattr(request, "param", {}))
    used = settings.pop("used", None)
    clock = VirtualClock()
    table = ProgramsTable(**({"memory": 800} | settings))
    pool = Pool(table, clock, None, measure=lambda program: program.used)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(pool.run)
        yield Stage(pool, clock, used=used)
        await pool.close()
        tasks.cancel_scope.cancel()


async def test_a_conversation_keeps_its_program_for_a_while(stage):
    first = await stage.turn("a")
    assert await stage.turn("a") is first
    await stage.clock.advance(179)
    assert first.client.alive
    await stage.clock.advance(2)
    assert not first.client.alive
    assert await stage.turn("a") is not first


async def test_two_conversations_never_share_a_program(stage):
    assert await stage.turn("a") is not await stage.turn("b")


@pytest.mark.parametrize("stage", [{"turns": 3}], indirect=True)
async def test_a_program_is_replaced_after_its_turns(stage):
    used = [await stage.turn("a") for _ in range(4)]
    assert used[0] is used[2]
    assert used[3] is not used[2]
    assert stage.alive() == [False, True]


@pytest.mark.parametrize("stage", [{"used": Used(301, 310)}], indirect=True)
async def test_a_program_that_has_grown_is_replaced(stage):
    assert await stage.turn("a") is not await stage.turn("a")


async def test_a_program_that_does_not_fit_any_more_is_ended_first(stage):
    first = await stage.turn("a")
    stage.fits = False
    async with stage.use("a") as second:
        assert second is not first
        assert not first.client.alive


async def test_a_dead_program_is_never_lent(stage):
    first = await stage.turn("a")
    first.client.alive = False
    assert await stage.turn("a") is not first


async def test_a_turn_that_fails_ends_its_program(stage):
    with pytest.raises(LookupError):
        async with stage.use("a"):
            raise LookupError
    assert stage.alive() == [False]
    await stage.turn("a")
    assert stage.alive() == [False, True]


@pytest.mark.parametrize("resting", [True, False])
async def test_a_program_that_was_stopped_is_kept_if_it_is_at_rest(stage, resting):
    with anyio.CancelScope() as scope:
        async with stage.use("a") as one:
            one.client.resting = resting
            scope.cancel()
            await anyio.lowlevel.checkpoint()
    assert stage.alive() == [resting]
    assert (await stage.turn("a") is one) is resting


async def test_the_longest_idle_makes_room(stage):
    for session in "abcd":
        await stage.turn(session)
    await stage.turn("a")  # b is the longest idle now
    await stage.turn("e")
    assert stage.alive() == [True, False, True, True, True]


async def test_more_conversations_than_places_wait_and_all_are_served(stage):
    """Fifty at once in four places, one of them slow; never more than four alive."""
    most, served, slow = 0, [], anyio.Event()

    async def turn(number):
        nonlocal most
        async with stage.use(str(number)):
            most = max(most, sum(stage.alive()))
            if number == 0:
                await slow.wait()
            await settle(1)
            served.append(number)

    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            for number in range(50):
                tasks.start_soon(turn, number)
            while len(served) < 49:
                await settle(1)
            assert 0 not in served
            slow.set()
    assert sorted(served) == list(range(50))
    assert most <= 4


@pytest.mark.parametrize("stage", [{"starts": 2}], indirect=True)
async def test_only_so_many_start_at_once(stage):
    starting, most = 0, 0

    async def begin():
        nonlocal starting, most
        starting += 1
        most = max(most, starting)
        await settle(3)
        starting -= 1
        return Held()

    async def turn(session):
        async with stage.pool.use(session, lambda _: True, begin):
            pass

    async with anyio.create_task_group() as tasks:
        for session in "abcdefgh":
            tasks.start_soon(turn, session)
    assert most == 2


@pytest.mark.parametrize("stage", [{"starts": 1}], indirect=True)
async def test_room_is_made_no_sooner_than_a_program_may_start(stage):
    """Until then the idle ones serve their own conversations."""
    may_start = anyio.Event()

    async def slowly():
        await may_start.wait()
        return await stage.begin()

    async def turn(session):
        async with stage.pool.use(session, lambda _: True, slowly):
            pass

    for session in "abc":
        await stage.turn(session)
    async with anyio.create_task_group() as tasks:
        for session in "xyz":
            tasks.start_soon(turn, session)
        await settle()
        assert stage.alive() == [True] * 3
        assert await stage.turn("a") is stage.started[0]
        may_start.set()
    assert stage.alive() == [True, False, False, True, True, True]


async def test_a_start_that_fails_gives_its_place_back(stage):
    async def begin():
        raise OSError("no program")

    for _ in range(9):
        with pytest.raises(OSError, match="no program"):
            async with stage.pool.use("a", lambda _: True, begin):
                pass
    for session in "abcd":
        await stage.turn(session)
    assert stage.alive() == [True] * 4


def grown(one, whole, program=100):
    one.client.used = Used(program, whole)


async def test_programs_that_have_grown_leave_room_for_fewer(stage):
    """What they use counts, also what they have started; young ones count for what most grow to."""
    for session in "abc":
        await stage.turn(session)
    grown(stage.started[1], 390)
    await stage.turn("d")
    assert stage.alive() == [False, True, True, True]
    grown(stage.started[2], 20)
    await stage.turn("e")
    assert stage.alive() == [False, False, True, True, True]


async def test_what_grows_in_a_turn_is_made_room_for_after_it(stage):
    for session in "abc":
        await stage.turn(session)
    async with stage.use("d") as one:
        grown(one, 350)
        assert stage.alive() == [True] * 4
    await settle()
    assert stage.alive() == [False, True, True, True]


async def test_nothing_at_work_is_ended_for_room(stage):
    entered, done, served = anyio.Event(), anyio.Event(), []

    async def hold():
        async with stage.use("a") as one:
            grown(one, 900)
            entered.set()
            await done.wait()
        served.append("a")

    async def wait():
        await stage.turn("b")
        served.append("b")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(hold)
        await entered.wait()
        tasks.start_soon(wait)
        await settle()
        assert len(stage.started) == 1
        done.set()
    assert served == ["a", "b"]


@pytest.mark.parametrize("stage", [{"memory": 256, "used": Used(280, 290)}], indirect=True)
async def test_there_is_always_room_for_one(stage):
    for session in "abc":
        await stage.turn(session)
    await settle()
    assert sum(stage.alive()) <= 1
    assert len(stage.started) == 3


async def test_a_turn_that_waits_for_room_can_be_stopped(stage):
    """At once, also at the head of the line; those behind it are served in their order."""
    entered, done, served = [], anyio.Event(), []
    scopes = {name: anyio.CancelScope() for name in "ef"}

    async def hold(session):
        async with stage.use(session):
            entered.append(session)
            await done.wait()

    async def wait(session):
        with scopes.get(session, anyio.CancelScope()):
            await stage.turn(session)
            served.append(session)

    async with anyio.create_task_group() as tasks:
        for session in "abcd":
            tasks.start_soon(hold, session)
        await settle()
        assert entered == list("abcd")
        for session in "efghi":
            tasks.start_soon(wait, session)
            await settle()
        for name in "fe":
            scopes[name].cancel()
            await settle(1)
            assert scopes[name].cancelled_caught
        done.set()
    assert served == list("ghi")
    assert len(stage.started) == 7


@pytest.mark.parametrize("reason", ["room", "time", "unfit"])
async def test_a_session_has_no_second_program_until_the_first_is_gone(stage, reason):
    """Two would write one history."""
    first = await stage.turn("a")
    first.client.may_end = anyio.Event()
    async with anyio.create_task_group() as tasks:
        if reason == "room":
            for session in "bcd":
                await stage.turn(session)
            tasks.start_soon(stage.turn, "e")
        elif reason == "time":
            await stage.clock.advance(181)
        else:
            stage.fits = False
        await settle()
        before = len(stage.started)
        tasks.start_soon(stage.turn, "a")
        await settle()
        assert len(stage.started) == before
        assert not first.client.ended
        first.client.may_end.set()
    assert first.client.ended
    assert len(stage.started) > before


async def test_a_turn_does_not_wait_for_the_end_of_its_program_where_another_needs_room(stage):
    done, left = anyio.Event(), []

    async def hold(session):
        async with stage.use(session) as one:
            one.client.may_end = anyio.Event()
            await done.wait()
        left.append(session)

    async with anyio.create_task_group() as tasks:
        for session in "abcd":
            tasks.start_soon(hold, session)
        await settle()
        tasks.start_soon(stage.turn, "e")
        await settle()
        done.set()
        await settle()
        assert left == list("abcd")
        assert len(stage.started) == 4
        for one in stage.started:
            one.client.may_end.set()
    assert len(stage.started) == 5


async def test_whoever_waits_for_a_place_gets_one_although_all_are_idle_later(stage):
    """A program that is given back while somebody waits is ended, not kept."""
    entered, done = anyio.Event(), anyio.Event()

    async def hold(session):
        async with stage.use(session):
            if session == "d":
                entered.set()
            await done.wait()

    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            for session in "abcd":
                tasks.start_soon(hold, session)
            await entered.wait()
            tasks.start_soon(stage.turn, "e")
            await settle()
            done.set()
    assert len(stage.started) == 5


async def test_at_the_end_every_program_ends(stage):
    for session in "abc":
        await stage.turn(session)
    await stage.pool.close()
    assert stage.alive() == [False] * 3
