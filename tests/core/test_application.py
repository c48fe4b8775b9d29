"""The application: opening, stopping, and what a component may rely on."""

import asyncio
import json
import logging
from contextlib import asynccontextmanager

import anyio
import anyio.lowlevel
import attrs
import pytest

from dragoman import Component, Finished, PluginError, Secret, TextDelta, hookimpl
from dragoman.assembly import OPEN_SECONDS
from dragoman.lifetime import CLOSE_SECONDS
from dragoman.logs import JsonFormatter, RedactingFilter, logger
from dragoman.secret import Redactor
from dragoman.testing import ScriptedRuntime, StubPlatform, StubPlugin, VirtualClock
from dragoman.testing.platform import StubConfig
from stage import Limits, can, gateway, table

pytestmark = pytest.mark.anyio


@attrs.define(eq=False)
class Opened(StubPlugin):
    """A plugin whose extensions are opened by functions of the test, by table id."""

    openers: dict = attrs.field(factory=dict)

    @hookimpl
    def dragoman_extensions(self):
        @asynccontextmanager
        async def open_one(config, host):
            async with self.openers[host.id](host) as product:
                yield product

        yield Component("stub", StubConfig, open_one)


def with_extensions(*ids, optional=False):
    return [
        *(table("extensions", id_, optional=optional) for id_ in ids),
        table("platforms", "stub"),
    ]


def problem(group):
    """Return the text of the only error."""
    error = group.value
    while isinstance(error, BaseExceptionGroup):
        (error,) = error.exceptions
    assert isinstance(error, PluginError)
    return str(error)


@asynccontextmanager
async def breaks(host):
    raise ValueError("no such file: token-123456")
    yield


@asynccontextmanager
async def hangs(host):
    await anyio.sleep_forever()
    yield


async def test_a_component_that_cannot_be_opened_stops_the_start_and_is_named():
    with pytest.raises(BaseExceptionGroup) as raised:
        async with gateway(
            Opened(openers={"x": breaks}),
            components=with_extensions("x"),
            secrets=["token-123456"],
        ):
            pass
    assert problem(raised) == (
        "plugin 'stub': extensions.x cannot be opened: ValueError: no such file: [secret]"
    )


async def test_a_component_that_takes_too_long_to_open_stops_the_start():
    clock, opening = VirtualClock(), anyio.Event()

    @asynccontextmanager
    async def open_one(host):
        opening.set()
        await anyio.sleep_forever()
        yield

    async def pass_time():
        await opening.wait()
        await clock.advance(OPEN_SECONDS - 0.1)
        assert clock._timers
        await clock.advance(0.2)

    async def run():
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(pass_time)
            async with gateway(
                Opened(openers={"x": open_one}), components=with_extensions("x"), clock=clock
            ):
                pass

    with pytest.raises(BaseExceptionGroup) as raised:
        await run()
    assert problem(raised).endswith(f"open took longer than {OPEN_SECONDS:g} s")


@pytest.mark.parametrize("opener", [breaks, hangs])
async def test_an_optional_component_that_cannot_be_opened_is_left_out(opener, caplog, monkeypatch):
    monkeypatch.setattr("dragoman.assembly.OPEN_SECONDS", 0.05)
    plugin = Opened(openers={"x": opener})
    async with gateway(plugin, components=with_extensions("x", optional=True)) as stage:
        await stage.platform.say("hello")
        await stage.platform.until_shown("hello")
        assert "extensions.x is left out" in caplog.text


async def test_components_close_in_reverse_order_after_the_platforms():
    """Also when everything is cancelled at once."""
    closed = []

    def opener(name):
        @asynccontextmanager
        async def open_one(host):
            try:
                yield name
            finally:
                await anyio.sleep(0.01)
                closed.append(name)

        return open_one

    class Last(StubPlatform):
        async def run(self, deliver):
            try:
                await super().run(deliver)
            finally:
                closed.append("connection")

    for cancelled in (False, True):
        closed.clear()
        plugin = Opened(openers={name: opener(name) for name in "abc"})
        plugin.platforms["stub"] = Last()
        with anyio.CancelScope() as scope:
            async with gateway(plugin, components=with_extensions(*"abc")) as stage:
                await stage.platform.connected.wait()
                if cancelled:
                    scope.cancel()
                    await anyio.lowlevel.checkpoint()
        assert closed == ["connection", "c", "b", "a"]


async def test_a_component_may_hold_task_groups_from_opening_to_closing():
    """Cancel scopes are entered and left in one task, whatever other components do."""
    running = []

    @asynccontextmanager
    async def open_one(host):
        async with anyio.create_task_group() as own:

            async def work():
                running.append(host.id)
                await anyio.sleep_forever()

            own.start_soon(work)
            yield object()
            own.cancel_scope.cancel()

    plugin = Opened(openers={"a": open_one, "b": open_one})
    async with gateway(plugin, components=with_extensions("a", "b")) as stage:
        await stage.platform.say("hello")
        await stage.platform.until_shown("hello")
    assert running == ["a", "b"]


async def test_background_tasks_begin_after_opening_and_end_before_closing():
    order = []

    @asynccontextmanager
    async def open_one(host):
        with pytest.raises(RuntimeError, match="after open"):
            host.task_group  # noqa: B018 - asking is the test
        yield Starter(host)
        order.append("closed")

    class Starter:
        def __init__(self, host):
            self.host = host

        @hookimpl
        async def dragoman_started(self):
            self.host.task_group.start_soon(self.work)

        async def work(self):
            try:
                await anyio.sleep_forever()
            finally:
                order.append("task ended")

    async with gateway(Opened(openers={"x": open_one}), components=with_extensions("x")) as stage:
        await stage.quiet()
    assert order == ["task ended", "closed"]


async def test_a_background_task_that_fails_stops_nobody_else(caplog):
    """Invariant 11, and the component may start others."""
    worked = anyio.Event()
    hosts = []

    @asynccontextmanager
    async def open_one(host):
        hosts.append(host)
        yield object()

    async def fail():
        raise ValueError("what somebody wrote")

    async def work():
        worked.set()

    async with gateway(Opened(openers={"x": open_one}), components=with_extensions("x")) as stage:
        hosts[0].task_group.start_soon(fail)
        await stage.quiet()
        assert "extensions.x: a background task failed: ValueError at" in caplog.text
        assert "what somebody wrote" not in caplog.text
        hosts[0].task_group.start_soon(work)
        await worked.wait()
        await stage.platform.say("hello")
        await stage.platform.until_shown("hello")


async def test_a_component_that_does_not_close_is_cancelled(caplog):
    clock = VirtualClock()

    @asynccontextmanager
    async def open_one(host):
        yield object()
        await anyio.sleep_forever()

    async with gateway(
        Opened(openers={"x": open_one}), components=with_extensions("x"), clock=clock
    ):
        before = clock.boot()
    assert "extensions.x takes too long to close" in caplog.text
    assert CLOSE_SECONDS <= clock.boot() - before <= CLOSE_SECONDS + 3


async def test_values_of_components_are_kept_apart():
    hosts = {}

    def opener():
        @asynccontextmanager
        async def open_one(host):
            hosts[host.id] = host
            yield object()

        return open_one

    plugin = Opened(openers={"a": opener(), "b": opener()})
    async with gateway(plugin, components=with_extensions("a", "b")):
        await hosts["a"].records.put("k", "1")
        await hosts["a"].records.put("k%", "2")
        assert await hosts["b"].records.get("k") is None
        assert await hosts["a"].records.scan("k") == [("k", "1"), ("k%", "2")]
        assert await hosts["a"].records.delete("k")
        assert not await hosts["b"].records.delete("k%")
        assert hosts["a"].data_dir != hosts["b"].data_dir
        assert hosts["a"].data_dir.stat().st_mode & 0o777 == 0o700


def slow_runtime(seconds, clock, ended):
    async def script(request, host):
        yield TextDelta("1", "so far")
        try:
            await clock.sleep(seconds)
        finally:
            ended.append(clock.boot())
        yield Finished()

    return ScriptedRuntime(script)


async def test_a_stop_lets_a_running_turn_finish_within_its_grace():
    clock, ended = VirtualClock(), []
    plugin = StubPlugin()
    plugin.runtimes["scripted"] = slow_runtime(15, clock, ended)
    async with gateway(plugin, clock=clock, limits=Limits(grace=20)) as stage:
        await stage.platform.say("go")
        await stage.quiet()
    assert plugin.platform().shown() == ["so far"]


async def test_beyond_its_grace_a_turn_is_cut_visibly_and_durably(tmp_path):
    """Invariants 5 and 9."""
    clock, ended = VirtualClock(), []
    plugin = StubPlugin()
    plugin.runtimes["scripted"] = slow_runtime(1000, clock, ended)
    file = tmp_path / "store.db"
    async with gateway(plugin, clock=clock, store=file, limits=Limits(grace=20)) as stage:
        await stage.platform.say("go")
        await stage.platform.say("waits")
        await clock.advance(5)
        began = clock.boot()
    [cut] = ended
    assert 20 <= cut - began <= 22
    assert plugin.platform().shown() == ["so far\n\n*(interrupted by a restart)*"]
    plugin = StubPlugin()
    async with gateway(plugin, store=file, clock=VirtualClock()) as stage:
        await stage.until_final()
        assert plugin.platform().shown() == ["waits"]
        assert sorted(await stage.states("agent_runs")) == ["interrupted", "succeeded"]
        assert set(await stage.states("deliveries")) == {"delivered"}


async def test_a_turn_that_is_cut_says_so_before_the_stop_also_where_that_takes_a_while():
    """B9, FC-RST-08: what is owed is sent, and only then is the hook told."""
    clock, seen = VirtualClock(), []

    class Told(StubPlatform):
        @hookimpl
        async def dragoman_stopping(self):
            seen.append(self.shown())

    async def slowly(method, address, message):
        await clock.sleep(3)

    plugin = StubPlugin(platforms={"stub": Told()})
    plugin.runtimes["scripted"] = slow_runtime(1000, clock, [])
    async with gateway(plugin, clock=clock, limits=Limits(grace=1)) as stage:
        await stage.platform.say("go")
        await clock.advance(5)
        stage.platform.before = slowly
    assert seen == [["so far\n\n*(interrupted by a restart)*"]]


async def test_a_stop_ends_although_the_store_takes_nothing_more(monkeypatch):
    """Invariant 9: what cannot be written is left to the next start."""
    from dragoman import StoreUnavailable

    clock, ended = VirtualClock(), []
    plugin = StubPlugin()
    plugin.runtimes["scripted"] = slow_runtime(1000, clock, ended)
    async with gateway(plugin, clock=clock, limits=Limits(grace=1)) as stage:
        await stage.platform.say("go")
        await stage.quiet()

        async def full(self, operation):
            raise StoreUnavailable("disk full")

        monkeypatch.setattr(type(stage.app.store), "apply", full)
        began = clock.boot()
    assert clock.boot() - began < 20


async def test_nothing_is_left_running_after_a_stop():
    before = asyncio.all_tasks()
    plugin = StubPlugin()
    plugin.platform().capabilities = can(typing=True)
    async with gateway(plugin) as stage:
        for number in range(20):
            await stage.platform.say("hello", channel=str(number))
    assert asyncio.all_tasks() == before


async def test_messages_that_arrive_during_a_stop_are_answered_by_the_next_process(tmp_path):
    """Invariants 1 and 3: a stop between receipt, decision and turn strands nothing."""
    for delay in range(8):
        file = tmp_path / f"{delay}.db"
        sent = 0
        async with gateway(store=file) as stage:
            await stage.platform.connected.wait()

            async def talk():
                nonlocal sent
                for number in range(30):
                    if stage.platform._deliver is None:
                        return
                    await stage.platform.say(str(number), channel=str(number % 3))
                    sent += 1

            async with anyio.create_task_group() as people:
                people.start_soon(talk)
                await anyio.sleep(0.003 * delay)
                stage.app.stop()
                people.cancel_scope.cancel()
            first = stage.plugin.platform()
        async with gateway(store=file) as stage:
            await stage.until_final()
            states = await stage.states("inbound_events")
            assert set(states) <= {"answered"}
            assert len(states) >= sent
            shown = len(first.messages) + len(stage.platform.messages)
            assert shown == len(states)
            assert "interrupted" not in await stage.states("agent_runs")


async def test_sinks_get_the_end_of_the_last_turn_before_a_stop():
    got = []

    class Slow:
        @asynccontextmanager
        async def turn(self, turn):
            yield self
            got.append("closed")

        async def write(self, events):
            await anyio.sleep(0.05)
            got.extend(type(event).__name__ for event in events)

    plugin = StubPlugin()
    plugin.sinks["trace"] = Slow()
    async with gateway(
        plugin, components=[table("sinks", "trace"), table("platforms", "stub")]
    ) as stage:
        await stage.platform.say("hello")
        await stage.platform.until_shown("hello")
    assert got == ["TextBlock", "Finished", "closed"]


@pytest.mark.parametrize("way", ["raises", "hangs", "raises at once"])
async def test_a_sink_that_fails_or_hangs_stops_no_turn(way, caplog, monkeypatch):
    """Invariants 10 and 11."""
    monkeypatch.setattr("dragoman.flow.sinks.TURNS", 3)
    monkeypatch.setattr("dragoman.application.FLUSH_SECONDS", 0.1)

    class Bad:
        @asynccontextmanager
        async def turn(self, turn):
            if way == "raises at once":
                raise ValueError("what somebody wrote")
            yield self

        async def write(self, events):
            if way == "hangs":
                await anyio.sleep_forever()
            raise ValueError("what somebody wrote")

    plugin = StubPlugin()
    plugin.sinks["bad"] = Bad()
    async with gateway(
        plugin, components=[table("sinks", "bad"), table("platforms", "stub")]
    ) as stage:
        for number in range(5):
            await stage.platform.say(str(number))
            await stage.platform.until_shown(str(number))
        assert ("bad hangs" in caplog.text) == (way == "hangs")
        assert "what somebody wrote" not in caplog.text


async def test_typing_shows_that_an_answer_comes_and_its_failures_do_not_matter():
    clock = VirtualClock()
    at = []

    class Typist(StubPlatform):
        async def typing(self, address):
            at.append(clock.boot())
            if len(at) == 1:
                raise KeyError("a bug")
            if len(at) == 2:
                from dragoman import RateLimited

                raise RateLimited(9)

    plugin = StubPlugin()
    plugin.platforms["stub"] = Typist(capabilities=can(typing=True, typing_interval=4, edit=False))
    plugin.runtimes["scripted"] = slow_runtime(20, clock, [])
    async with gateway(plugin, clock=clock) as stage:
        await stage.platform.say("go")
        await clock.advance(25)
        await stage.quiet()
        assert [round(t, 3) for t in at] == [0.3, 4.3, 13.3, 17.3]
        assert stage.platform.shown() == ["so far"]


# -- logging ---------------------------------------------------------------------------------------


def _logger(as_json):
    redactor = Redactor()
    redactor.learn(Secret("env TOKEN", "123456:SECRET"))
    lines = []

    class Handler(logging.Handler):
        def emit(self, record):
            lines.append(self.format(record))

    log = logger("platforms.x", redactor)
    log.parent = None
    handler = Handler()
    handler.setFormatter(JsonFormatter() if as_json else logging.Formatter("%(message)s"))
    log.addHandler(handler)
    return log, lines


@pytest.mark.parametrize("as_json", [True, False])
def test_logs_of_components_have_secrets_taken_out_tracebacks_included(as_json):
    """Invariant 12."""
    log, lines = _logger(as_json)
    log.warning("GET https://x/bot%s/getMe", "123456:SECRET")
    log.warning({"url": "123456:SECRET"})
    try:
        raise ValueError("refused 123456:SECRET")
    except ValueError:
        log.exception("failed with %s", ["123456:SECRET"])
    text = "\n".join(lines)
    assert "SECRET" not in text
    assert text.count("[secret]") >= 4
    assert "Traceback" in text


def test_a_log_call_whose_arguments_do_not_fit_raises_nothing():
    log, lines = _logger(as_json=False)
    log.warning("%d of %d", *["one"])
    log.warning("%(name)s", {"other": 1})
    assert len(lines) == 2


def test_json_lines_carry_their_context():
    log, lines = _logger(as_json=True)
    log.warning("sent", extra={"delivery": "msg_1", "turn": "turn_1"})
    line = json.loads(lines[0])
    assert (line["delivery"], line["turn"], line["message"]) == ("msg_1", "turn_1", "sent")
    assert line["at"].endswith("+00:00")


def test_redacting_twice_changes_nothing():
    redactor = Redactor()
    record = logging.LogRecord("x", logging.INFO, __file__, 1, "%s%%", ("50",), None)
    for _ in range(2):
        assert RedactingFilter(redactor).filter(record)
    assert record.getMessage() == "50%"
