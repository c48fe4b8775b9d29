"""Behaviour hooks: each shape, each failure rule, and nothing that a hook does reaches a caller."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

import anyio
import attrs
import pytest

from dragoman import (
    Address,
    ConversationView,
    Drop,
    Inbound,
    PlatformStatus,
    PluginError,
    Sender,
    TurnInfo,
    Verdict,
    hookimpl,
)
from dragoman.clock import SystemClock
from dragoman.plugins.hooktable import HookTable

pytestmark = pytest.mark.anyio

EVENT = Inbound(
    "1", Address("telegram", "42"), Sender("7"), "hello", datetime(2026, 1, 1, tzinfo=UTC)
)
VIEW = ConversationView("telegram", "telegram", "default", ("default", "ops"))
TURN = TurnInfo(
    turn_id="t",
    session_id="s",
    conversation_id="c",
    profile="default",
    runtime="echo",
    platform="telegram",
)
STATUS = PlatformStatus("telegram", "running")


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    """Hooks behave the same on both event loops."""
    return str(request.param)


@attrs.define
class Stopwatch:
    """The time that hooks hold the loop, as far as they say so: the machine adds nothing to it."""

    seconds: float = 0.0

    def perf_counter(self) -> float:
        return self.seconds

    def block(self, seconds: float) -> None:
        self.seconds += seconds


def extension(**hooks: Callable[..., Any]) -> Any:
    """An opened object with these behaviour hooks; each is called without ``self``."""
    members = {name: staticmethod(hookimpl(hook)) for name, hook in hooks.items()}
    return type("Extension", (), members)()


@pytest.fixture
def table(clock: Any, log: logging.Logger) -> Callable[..., HookTable]:
    def compile_table(*objects: Any, admit_by: set[str] | None = None) -> HookTable:
        named = [
            each if isinstance(each, tuple) else (f"extensions.x{place}", each)
            for place, each in enumerate(objects)
        ]
        return HookTable.compile(
            named, timeout=10, clock=clock, log=log, admit_by=frozenset(admit_by or ())
        )

    return compile_table


def answering(answer: Any) -> Callable[..., Awaitable[Any]]:
    async def hook() -> Any:
        return answer

    return hook


def raising(error: BaseException) -> Callable[..., Awaitable[Any]]:
    async def hook() -> Any:
        raise error

    return hook


# --- admit


@pytest.mark.parametrize("admit_by", [{"x0"}, {"extensions.x0"}])
async def test_an_allowance_counts_for_components_that_the_manifest_names(
    table: Any, admit_by: set[str]
) -> None:
    """Shape ask, and requirement of `[access] admit_by`: place and id both name a component."""
    one = extension(dragoman_admit=answering(Verdict.allow("paid")))
    assert await table(one).admit(EVENT, VIEW) is None
    verdict = await table(one, admit_by=admit_by).admit(EVENT, VIEW)
    assert verdict == Verdict.allow("plugin extensions.x0: paid")


async def test_any_refusal_wins_and_all_are_asked(table: Any) -> None:
    asked = []

    def asking(name: str, verdict: Verdict | None) -> Any:
        async def hook() -> Verdict | None:
            asked.append(name)
            return verdict

        return extension(dragoman_admit=hook)

    hooks = table(
        asking("first", Verdict.allow("yes")),
        asking("second", None),
        asking("third", Verdict.refuse("spam")),
        asking("fourth", Verdict.refuse("late")),
        admit_by={"x0"},
    )
    assert await hooks.admit(EVENT, VIEW) == Verdict.refuse("plugin extensions.x2: spam")
    assert asked == ["first", "second", "third", "fourth"]


async def test_silence_is_no_verdict(table: Any) -> None:
    assert await table().admit(EVENT, VIEW) is None
    assert await table(extension(dragoman_admit=answering(None))).admit(EVENT, VIEW) is None


FAILURES: dict[str, Callable[..., Awaitable[Any]]] = {
    "an exception": raising(ValueError("no")),
    "an exit": raising(SystemExit(1)),
    "a wrong type": answering(object()),
    "a group": raising(BaseExceptionGroup("both", [SystemExit(1), ValueError()])),
}


@pytest.mark.parametrize("failure", FAILURES)
async def test_fc_plg_04_a_failure_is_a_refusal_even_beside_an_allowance(
    table: Any, failure: str
) -> None:
    """Invariant 15: no admission comes out of a failure."""
    hooks = table(
        extension(dragoman_admit=answering(Verdict.allow("yes"))),
        extension(dragoman_admit=FAILURES[failure]),
        admit_by={"x0"},
    )
    assert await hooks.admit(EVENT, VIEW) == Verdict.refuse("extensions.x1 failed")


@pytest.mark.parametrize("word", ["no", "yes", 1, None])
async def test_a_verdict_that_is_neither_yes_nor_no_is_a_refusal(table: Any, word: Any) -> None:
    """Invariant 15: what a caller gets is false, where a plugin's word would be true."""
    hooks = table(extension(dragoman_admit=answering(Verdict(word, "odd"))), admit_by={"x0"})
    verdict = await hooks.admit(EVENT, VIEW)
    assert verdict == Verdict.refuse("extensions.x0 failed")
    assert verdict.allowed is False


# --- time-outs and cancellation


async def test_fc_plg_04_a_hook_that_waits_for_ever_is_given_up_after_its_time(
    table: Any, clock: Any, caplog: pytest.LogCaptureFixture
) -> None:
    entered, left = anyio.Event(), anyio.Event()

    async def forever() -> None:
        entered.set()
        try:
            await anyio.sleep_forever()
        finally:
            left.set()

    hooks = table(extension(dragoman_admit=forever))
    verdicts = []

    async def ask() -> None:
        verdicts.append(await hooks.admit(EVENT, VIEW))

    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            group.start_soon(ask)
            await entered.wait()
            clock.advance(9.9)
            await anyio.lowlevel.checkpoint()
            assert not verdicts
            clock.advance(0.2)
    assert verdicts == [Verdict.refuse("extensions.x0 failed")]
    assert left.is_set()
    assert "extensions.x0: dragoman_admit failed: no answer in 10 s" in caplog.text


async def test_the_system_s_clock_gives_up_too(log: logging.Logger) -> None:
    hooks = HookTable.compile(
        [("extensions.x", extension(dragoman_admit=anyio.sleep_forever))],
        timeout=0.01,
        clock=SystemClock(),
        log=log,
        admit_by=frozenset(),
    )
    with anyio.fail_after(60):
        assert await hooks.admit(EVENT, VIEW) == Verdict.refuse("extensions.x failed")


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_fc_plg_04_a_made_up_cancellation_does_not_cancel_the_caller(table: Any) -> None:
    async def inner() -> None:
        await asyncio.get_running_loop().create_future()

    async def awaits_a_cancelled_task() -> None:
        task = asyncio.ensure_future(inner())
        await asyncio.tasks.sleep(0)
        task.cancel()
        await task

    for hook in (raising(asyncio.CancelledError()), awaits_a_cancelled_task):
        hooks = table(extension(dragoman_admit=hook, dragoman_started=hook))
        assert await hooks.admit(EVENT, VIEW) == Verdict.refuse("extensions.x0 failed")
        await hooks.started()
        await anyio.lowlevel.checkpoint()
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0


async def test_a_real_cancellation_of_the_caller_passes_through_a_hook(table: Any) -> None:
    entered = anyio.Event()

    async def forever() -> None:
        entered.set()
        await anyio.sleep_forever()

    hooks = table(extension(dragoman_admit=forever))
    came_back = []

    async def ask() -> None:
        came_back.append(await hooks.admit(EVENT, VIEW))

    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            group.start_soon(ask)
            await entered.wait()
            group.cancel_scope.cancel()
    assert came_back == []


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_cancellation_by_asyncio_itself_passes_through_a_hook(table: Any) -> None:
    entered = anyio.Event()

    async def forever() -> None:
        entered.set()
        await anyio.sleep_forever()

    hooks = table(extension(dragoman_admit=forever))
    task = asyncio.ensure_future(hooks.admit(EVENT, VIEW))
    await entered.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_task_group_inside_a_hook_is_cancelled_with_it(table: Any, clock: Any) -> None:
    entered = anyio.Event()

    async def busy() -> None:
        async with anyio.create_task_group() as group:
            for _ in range(3):
                group.start_soon(anyio.sleep_forever)
            entered.set()

    hooks = table(extension(dragoman_inbound=busy))
    answers = []

    async def ask() -> None:
        answers.append(await hooks.inbound(EVENT, VIEW))

    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            group.start_soon(ask)
            await entered.wait()
            await anyio.lowlevel.checkpoint()
            clock.advance(10)
    assert answers == [Drop("extensions.x0 failed")]


async def test_an_interrupt_from_the_keyboard_is_not_a_hook_s_failure(table: Any) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        table(extension(dragoman_observe=interrupted)).observe(STATUS)


# --- profile, inbound, outbound


async def test_the_first_profile_among_those_offered_is_chosen(table: Any) -> None:
    hooks = table(
        extension(dragoman_profile=answering(None)),
        extension(dragoman_profile=answering("ops")),
        extension(dragoman_profile=answering("default")),
    )
    assert await hooks.profile(EVENT, VIEW) == "ops"
    assert await table().profile(EVENT, VIEW) is None


@pytest.mark.parametrize("hook", [answering("root"), raising(ValueError()), answering(3)])
async def test_an_unusable_choice_keeps_the_route_s_profile_and_is_logged(
    table: Any, hook: Any, caplog: pytest.LogCaptureFixture
) -> None:
    later = extension(dragoman_profile=answering("ops"))
    assert await table(extension(dragoman_profile=hook), later).profile(EVENT, VIEW) is None
    assert len(caplog.records) == 1


async def test_inbound_hooks_pass_the_text_on_and_nothing_else(table: Any) -> None:
    async def forges(event: Inbound, view: ConversationView) -> Inbound:
        return attrs.evolve(event, text=event.text + "!", sender=Sender("owner"), native_id="2")

    async def sees(event: Inbound) -> None:
        assert event == attrs.evolve(EVENT, text="hello!")

    hooks = table(
        extension(dragoman_inbound=forges),
        extension(dragoman_inbound=sees),
        extension(dragoman_inbound=forges),
    )
    assert await hooks.inbound(EVENT, VIEW) == attrs.evolve(EVENT, text="hello!!")


async def test_outbound_hooks_see_the_whole_answer_in_order(table: Any) -> None:
    async def marks(turn: TurnInfo, text: str) -> str:
        return f"{text} ({turn.profile})"

    hooks = table(extension(dragoman_outbound=marks), extension(dragoman_outbound=answering(None)))
    assert hooks.has_outbound
    assert await hooks.outbound("hi", TURN) == "hi (default)"
    assert not table().has_outbound
    assert await table().outbound("hi", TURN) == "hi"


async def test_a_drop_ends_a_pipe_and_names_who_dropped(table: Any) -> None:
    never = answering(object())
    for name, call in (
        ("dragoman_inbound", lambda hooks: hooks.inbound(EVENT, VIEW)),
        ("dragoman_outbound", lambda hooks: hooks.outbound("hi", TURN)),
    ):
        hooks = table(extension(**{name: answering(Drop("rude"))}), extension(**{name: never}))
        assert await call(hooks) == Drop("plugin extensions.x0: rude")


@pytest.mark.parametrize("failure", FAILURES)
async def test_fc_plg_04_a_failure_ends_a_pipe(table: Any, failure: str) -> None:
    hook = FAILURES[failure]
    hooks = table(extension(dragoman_inbound=hook, dragoman_outbound=hook))
    assert await hooks.inbound(EVENT, VIEW) == Drop("extensions.x0 failed")
    assert await hooks.outbound("hi", TURN) == Drop("extensions.x0 failed")


# --- notify


async def test_started_goes_in_manifest_order_and_stopping_in_reverse(table: Any) -> None:
    told = []

    def telling(name: str) -> Any:
        async def started() -> None:
            told.append(f"{name} started")
            raise RuntimeError

        async def stopping() -> None:
            told.append(f"{name} stopping")
            raise SystemExit

        return extension(dragoman_started=started, dragoman_stopping=stopping)

    hooks = table(telling("a"), telling("b"))
    await hooks.started()
    await hooks.stopping()
    assert told == ["a started", "b started", "b stopping", "a stopping"]


def test_fc_plg_04_an_observer_that_fails_stops_nobody_and_is_called_no_more(
    table: Any, clock: Any, caplog: pytest.LogCaptureFixture
) -> None:
    calls = []
    seen = []

    def failing() -> None:
        calls.append(1)
        raise ValueError

    def leaving() -> None:
        sys.exit(1)

    def sees(observation: Any) -> None:
        seen.append(observation)

    hooks = table(
        extension(dragoman_observe=failing),
        extension(dragoman_observe=leaving),
        extension(dragoman_observe=sees),
    )
    for _ in range(7):
        hooks.observe(STATUS)
        clock.advance(61)
    assert len(calls) == 5
    assert seen == [STATUS] * 7
    ends = [r.getMessage() for r in caplog.records if r.levelno == logging.ERROR]
    assert ends == [
        f"extensions.x{place}: dragoman_observe failed 5 times in a row and is called no more"
        for place in (0, 1)
    ]


def test_only_failures_in_a_row_count(table: Any) -> None:
    answers = iter([False] * 4 + [True] + [False] * 4 + [True])

    def flaky() -> None:
        if not next(answers):
            raise ValueError

    hooks = table(extension(dragoman_observe=flaky))
    for _ in range(10):
        hooks.observe(STATUS)
    assert next(answers, "all were asked") == "all were asked"


async def test_failures_are_logged_once_a_minute_per_plugin_and_without_text(
    table: Any, clock: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """Invariant 12: what a person wrote does not reach the log."""

    async def leaks(event: Inbound) -> None:
        raise ValueError(event.text)

    hooks = table(extension(dragoman_admit=leaks), extension(dragoman_admit=leaks))
    for _ in range(3):
        await hooks.admit(EVENT, VIEW)
    clock.advance(60)
    await hooks.admit(EVENT, VIEW)
    lines = [record.getMessage() for record in caplog.records]
    assert len(lines) == 4
    assert lines[0].startswith("extensions.x0: dragoman_admit failed: ValueError at ")
    assert "test_hooktable:" in lines[0]
    assert lines[2].endswith("(2 more since the last line)")
    assert EVENT.text not in caplog.text


async def test_fc_plg_04_a_hook_that_blocks_the_loop_is_named(
    table: Any, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Invariant 13: also if it blocks after it has waited."""
    watch = Stopwatch()
    monkeypatch.setattr("dragoman.plugins.guard.time", watch)

    async def blocks() -> None:
        await anyio.lowlevel.checkpoint()
        watch.block(0.06)

    hooks = table(
        extension(dragoman_started=blocks),
        extension(dragoman_observe=lambda: watch.block(0.06)),
        extension(dragoman_started=anyio.lowlevel.checkpoint),
    )
    await hooks.started()
    hooks.observe(STATUS)
    lines = [record.getMessage() for record in caplog.records]
    assert [line.partition(" held the event loop for ")[0] for line in lines] == [
        "extensions.x0: dragoman_started",
        "extensions.x1: dragoman_observe",
    ]


# --- compiling


def test_objects_that_compare_equal_are_two(table: Any) -> None:
    @attrs.frozen
    class Equal:
        @hookimpl
        async def dragoman_outbound(self, text: str) -> str:
            return text + "."

    hooks = table(Equal(), Equal())
    assert anyio.run(hooks.outbound, "hi", TURN) == "hi.."


def test_a_property_of_an_object_is_not_run(table: Any) -> None:
    class Lazy:
        @property
        def connection(self) -> None:
            raise AssertionError

    table(Lazy(), object())


async def test_arguments_go_by_name_and_newer_ones_keep_their_default(table: Any) -> None:
    async def newer(
        view: ConversationView, newer: int = 3, event: Inbound | None = None
    ) -> Verdict:
        assert (event, view) == (EVENT, VIEW)
        return Verdict.refuse(str(newer))

    verdict = await table(extension(dragoman_admit=newer)).admit(EVENT, VIEW)
    assert verdict == Verdict.refuse("plugin extensions.x0: 3")


def plain(event: Inbound) -> None: ...
async def colourful(observation: Any) -> None: ...
async def keyword(*, event: Inbound) -> None: ...
async def positional(event: Inbound, /) -> None: ...
async def unknown(event: Inbound, mood: str) -> None: ...
async def yielding(event: Inbound) -> Any:
    yield event


def wrapping(event: Inbound) -> Any:
    return (yield)


def unmarked() -> Any:
    async def dragoman_admit(self: Any) -> None: ...

    return type("Unmarked", (), {"dragoman_admit": dragoman_admit})()


def optioned(hook: Any, **options: Any) -> Any:
    return type("Gate", (), {"dragoman_admit": staticmethod(hookimpl(**options)(hook))})()


MISFITS: dict[str, tuple[Any, str]] = {
    "plain": (extension(dragoman_admit=plain), "dragoman_admit must be 'async def'"),
    "async": (extension(dragoman_observe=colourful), "must be 'def', not 'async def'"),
    "keyword": (extension(dragoman_admit=keyword), "keyword-only argument 'event'"),
    "positional": (extension(dragoman_admit=positional), "positional-only argument 'event'"),
    "unknown argument": (extension(dragoman_admit=unknown), "'mood'"),
    "unknown hook": (extension(dragoman_tomorrow=answering(1)), "dragoman_tomorrow"),
    "generator": (extension(dragoman_admit=yielding), "must return its answer, not yield it"),
    "wrapper": (optioned(wrapping, wrapper=True), "must not be a wrapper"),
    "first": (optioned(answering(None), tryfirst=True), "the manifest's order holds"),
    "unmarked": (unmarked(), "dragoman_admit is not marked with @hookimpl"),
}


@pytest.mark.parametrize("case", MISFITS)
def test_a_hook_that_could_not_be_called_is_refused_when_compiling(table: Any, case: str) -> None:
    target, reason = MISFITS[case]
    with pytest.raises(PluginError) as caught:
        table(("platforms.acme", target))
    assert caught.value.plugin == "platforms.acme"
    assert reason in caught.value.reason
    assert caught.value.remedy


def test_pluggy_is_silent_after_compiling(table: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    hooks = table(extension(dragoman_observe=lambda: None, dragoman_outbound=answering(None)))

    def called(*_: Any, **__: Any) -> None:
        raise AssertionError

    with monkeypatch.context() as patch:  # pytest itself needs pluggy again afterwards
        patch.setattr("pluggy.HookCaller.__call__", called)
        patch.setattr("pluggy.HookCaller.get_hookimpls", called)
        hooks.observe(STATUS)
        answer = anyio.run(hooks.outbound, "hi", TURN)
    assert answer == "hi"
