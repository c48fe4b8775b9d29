"""What one turn costs: statements, commits, tasks and steps of the event loop, each counted.

The numbers are exact, so that whoever adds one has to say so here.
"""

import asyncio
import contextlib
import contextvars
from collections import Counter

import anyio
import attrs
import pytest

from dragoman import Finished, TextBlock, TextDelta
from dragoman.store.operations import EndSend
from dragoman.store.sqlite import SqliteStore
from dragoman.testing import ScriptedRuntime, StubPlatform, StubPlugin, settle
from stage import can, gateway

pytestmark = pytest.mark.anyio

OURS = contextvars.ContextVar("OURS", default=False)
"""Set in the test's own task: its steps are not the gateway's."""


@attrs.define(eq=False)
class Cost:
    """What happened since the last `reset`."""

    operations: Counter = attrs.field(factory=Counter)
    statements: list = attrs.field(factory=list)
    tasks: int = 0
    steps: int = 0
    """Callbacks that the loop ran: each time a task goes on, each answer of the store's thread."""
    sent: anyio.Event = attrs.field(factory=anyio.Event)
    """Set when what was sent is written down: the last thing that a turn does."""

    def reset(self):
        self.operations.clear()
        self.statements.clear()
        self.steps = self.tasks = 0
        self.sent = anyio.Event()

    async def settled(self):
        """Wait until the gateway has nothing to do for the turn any more."""
        await self.sent.wait()
        before = -1
        while before != self.steps:
            before = self.steps
            await settle()

    def step(self, handle):
        """Count a callback, but not the loop's reading of its own bell, which may ring for two."""
        ours = handle._context.get(OURS, False)
        if not ours and getattr(handle._callback, "__name__", "") != "_read_from_self":
            self.steps += 1

    @property
    def commits(self):
        return self.statements.count("COMMIT")

    @property
    def work(self):
        """Statements other than those that frame a transaction."""
        return len(self.statements) - 2 * self.commits


@pytest.fixture
def cost(monkeypatch):
    """Counts from now on: every operation of the store, and every callback of the loop."""
    counted = Cost()
    apply, run = SqliteStore.apply, asyncio.events.Handle._run

    async def counting_apply(self, operation):
        answer = await apply(self, operation)
        counted.operations[type(operation).__name__] += 1
        if isinstance(operation, EndSend):
            counted.sent.set()
        return answer

    def counting_run(self):
        counted.step(self)
        return run(self)

    monkeypatch.setattr(SqliteStore, "apply", counting_apply)
    monkeypatch.setattr(asyncio.events.Handle, "_run", counting_run)
    return counted


@contextlib.asynccontextmanager
async def counting(cost, stage):
    """Count statements and tasks of a gateway, too; yield its connection."""
    loop = asyncio.get_running_loop()
    [connection] = stage.app.store.connections

    def make(loop, coroutine, **more):
        cost.tasks += 1
        return asyncio.Task(coroutine, loop=loop, **more)

    await connection.set_trace_callback(cost.statements.append)
    loop.set_task_factory(make)
    OURS.set(True)
    try:
        yield connection
    finally:
        loop.set_task_factory(None)


async def one_turn(cost, stage, text="hello"):
    """Let a person say something; count until the answer is settled."""
    cost.reset()
    of_the_platform = contextvars.copy_context()
    of_the_platform.run(OURS.set, False)
    said = asyncio.get_running_loop().create_task(stage.platform.say(text), context=of_the_platform)
    await cost.settled()
    await said


async def test_the_cost_of_a_short_turn(cost):
    """Design, the store: two commits until an answer can leave, ten row writes at the most."""
    async with gateway() as stage, counting(cost, stage) as connection:
        await one_turn(cost, stage)  # of a person who is new: that costs more
        before = connection.total_changes
        await one_turn(cost, stage)

        # Received; admitted, adopted and begun; ended and owed; shown.
        assert cost.operations == {"Receive": 1, "Accept": 1, "Finish": 1, "EndSend": 1}
        assert cost.commits == 4
        # The event (received, adopted, answered), the turn (begun, ended), the delivery (opened,
        # owed, shown).
        assert connection.total_changes - before == 8
        # Receive 1; the door's look for what to admit 1; Accept 6; Finish 5; EndSend 1.
        assert cost.work == 14
        # The adapter's call, the door's hand-over, the turn, typing and previews beside it, the send.
        assert cost.tasks == 6
        # Per statement, frame or commit two: the answer of the store's thread, and who waited for
        # it. The rest are tasks that begin, end or are woken by another one.
        assert cost.steps == 77


async def test_the_cost_of_a_streamed_turn(cost):
    """Design, the store: a streamed answer adds its placeholder's id and the first text shown."""
    half = "word " * 20
    plugin = StubPlugin()
    plugin.platforms["stub"] = StubPlatform(can(typing=True, edit_interval=0.01))

    async def answer(request, host):
        for _ in range(10):
            yield TextDelta("1", half[:10])
        await plugin.platform().until_shown(half.rstrip())
        yield TextBlock("1", half + "end")
        yield Finished()

    plugin.runtimes["scripted"] = ScriptedRuntime(answer)
    async with gateway(plugin) as stage, counting(cost, stage) as connection:
        await one_turn(cost, stage)
        stage.platform.messages.clear()
        before = connection.total_changes
        await one_turn(cost, stage)

        assert stage.platform.messages[0].texts == ["…", half.rstrip(), half + "end"]
        assert cost.operations == {
            "Receive": 1,
            "Accept": 1,
            "Shown": 2,
            "Finish": 1,
            "EndSend": 1,
        }
        assert cost.commits == 6
        # Two more row writes: what the two notes say of the delivery.
        assert connection.total_changes - before == 10
        # Shown 2 and 2: the fencing token, and the note.
        assert cost.work == 18
        assert cost.tasks == 6
        # Eight statements and frames more make sixteen; the deltas, the pace and two calls the rest.
        assert cost.steps == 106
