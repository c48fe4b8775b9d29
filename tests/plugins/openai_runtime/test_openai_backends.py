"""Histories outside our own store: each file or server with its traps, below the real SDK."""

import json
import sqlite3
import sys
import time
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import anyio
import pytest

from dragoman import (
    Address,
    Failed,
    FailureKind,
    Finished,
    Secret,
    SystemClock,
    TurnRequest,
)
from dragoman_openai.session_table import CompactTable, EncryptTable, SessionTable
from dragoman_openai.writes import Writes
from peers.databases import Postgres, Redis
from peers.needs import need

pytestmark = pytest.mark.anyio
KEY = Secret("env:KEY", "0123456789abcdef0123456789abcdef")
OTHER = Secret("env:KEY", "fedcba9876543210fedcba9876543210")
KINDS = ["sqlite", "async-sqlite", "advanced-sqlite", "redis", "sqlalchemy"]


@pytest.fixture(scope="module")
def redis():
    need("redis", servers=True)
    with Redis() as server:
        yield server


@pytest.fixture(scope="module")
def postgres():
    need("sqlalchemy", "asyncpg", servers=True)
    with Postgres() as server:
        yield server


@pytest.fixture
def table(request):
    """Makes the table of a back end, for this test alone."""

    def make(kind="sqlite", **more):
        if kind == "async-sqlite":
            need("aiosqlite")
        if kind == "redis":
            more = {"url": request.getfixturevalue("redis").url, **more}
        if kind == "sqlalchemy":
            more = {"url": request.getfixturevalue("postgres").url, **more}
        return SessionTable(backend=kind, **more)

    return make


def sent(desk):
    """What the newest model call held of what was said."""
    said = [m for m in desk.model.inputs()[-1] if m["role"] in ("user", "assistant")]
    return [message["content"] for message in said if message["content"]]


def kinds_outside(folder):
    """The items of every history in the file, by name."""
    found = {}
    with closing(sqlite3.connect(folder / "sessions.sqlite")) as db:
        for name, item in db.execute(
            "SELECT session_id, message_data FROM agent_messages ORDER BY id"
        ):
            made = json.loads(item)
            found.setdefault(name, []).append(made.get("role") or made["type"])
    return list(found.values())


HELLO = ["say hello", "Hello from the model. Nice to meet you."]


@pytest.mark.parametrize("kind", KINDS)
async def test_d3_two_turns_over_a_restart(desk, table, kind):
    """D3: what core stored is brought in once, and our own records keep no copy in force."""
    for number, text in enumerate(("say hello", "and again")):
        async with desk.open(session=table(kind)) as runtime:
            assert not runtime.capabilities.fenced
            events = await desk.again(runtime, text, number)
            assert isinstance(events[-1], Finished)
    assert sent(desk) == [*HELLO, "and again"]
    assert desk.host.items() == []


@pytest.mark.parametrize("kind", KINDS)
async def test_d3_a_turn_that_runs_again_is_told_nothing_twice(desk, table, kind):
    """D3: what the attempt that was cut off has added is left behind, and kept."""
    async with desk.open(session=table(kind)) as runtime:
        await desk.again(runtime, "say hello", 0)
        await desk.again(runtime, "weather", 1)
        await desk.again(runtime, "weather", 1, attempt=2)
    assert sent(desk) == [*HELLO, "weather", "Let me look."]


async def test_d3_the_same_words_are_not_the_same_message(desk, table):
    """D3: a second attempt whose first brought nothing in is told apart by its event."""
    async with desk.open(session=table()) as runtime:
        await desk.again(runtime, "say hello", 0)
        await desk.again(runtime, "say hello", 1, attempt=2)
    assert sent(desk) == [*HELLO, "say hello"]


async def test_d3_what_a_turn_did_not_bring_in_comes_with_the_next(desk, table):
    """D3: a message that was stored, and whose turn never ran."""
    async with desk.open(session=table()) as runtime:
        await desk.again(runtime, "say hello", 0)
        desk.host.put({"role": "user", "content": "unheard", "dragoman_event": 1})
        await desk.again(runtime, "and again", 2)
    assert sent(desk) == [*HELLO, "unheard", "and again"]


async def test_d3_a_history_moves_from_our_own_store(desk, table):
    """D3: a change of back end takes the conversation along."""
    async with desk.open() as runtime:
        await desk.again(runtime, "say hello", 0)
    async with desk.open(session=table()) as runtime:
        await desk.again(runtime, "and again", 1)
    assert sent(desk) == [*HELLO, "and again"]


async def test_d3_a_reset_begins_anew_and_keeps_what_was(desk, table):
    """D3: core begins a generation of every list of the session."""
    async with desk.open(session=table()) as runtime:
        await desk.again(runtime, "say hello", 0)
        for records in desk.host.spaces.values():
            await records.new_generation()
        await desk.again(runtime, "and again", 1)
    assert sent(desk) == ["and again"]
    assert sorted(map(len, kinds_outside(desk.folder))) == [2, 2]


async def test_d3_a_turn_without_its_lease_writes_nothing_outside(desk, table):
    """D3, invariant 4: asked just before each write."""
    async with desk.open(session=table()) as runtime:
        await desk.again(runtime, "say hello", 0)
        desk.host.lost = True
        events = await desk.again(runtime, "and again", 1)
    assert events[-1].kind is FailureKind.LOCK_CONFLICT
    assert kinds_outside(desk.folder) == [["user", "assistant"]]


async def test_d3_messages_that_a_running_turn_takes_in_reach_the_history(desk, table):
    """D3: `bring_in`, as a run calls it that takes messages in; asked twice, it does it once."""
    async with desk.open(session=table()) as runtime:
        await desk.again(runtime, "say hello", 0)
        await _brought_in(desk, runtime, "oh", 7)
        await desk.again(runtime, "and again", 9)
    assert sent(desk) == [*HELLO, "oh", "and again"]


async def test_fc_rst_04_a_refused_history_goes_on_from_its_last_turn_outside_too(desk, table):
    """FC-RST-04: the old items stay in the file, under the name that is not in force any more."""
    async with desk.open(session=table()) as runtime:
        await desk.again(runtime, "say hello", 0)
        await desk.again(runtime, "torn outside", 1)
        await desk.again(runtime, "and again", 2)
    assert sent(desk) == ["torn outside", "Mended.", "and again"]
    assert kinds_outside(desk.folder)[0] == ["user", "assistant", "user"]


@pytest.mark.parametrize("kind", ["sqlite", "async-sqlite", "advanced-sqlite"])
async def test_d3_a_turn_leaves_no_file_open(desk, table, kind):
    """D3: these sessions have connections of their own, and forgotten ones stay open."""

    def open_files():
        return sum("sessions.sqlite" in str(each.readlink()) for each in _descriptors())

    async with desk.open(session=table(kind)) as runtime:
        for number in range(5):
            await desk.again(runtime, "say hello", number)
            assert open_files() == 0


def _descriptors():
    for each in Path("/proc/self/fd").iterdir():
        if each.is_symlink():
            yield each


async def test_d3_one_client_serves_all_turns_and_is_closed_at_the_end(desk, table, redis):
    """D3: connections do not grow with the conversations, and none is left."""

    def connections():
        return redis.command("CLIENT", "LIST").count(b" addr=") - 1  # the one that asks

    async with desk.open(session=table("redis", ttl=3600)) as runtime:
        for number in range(4):
            await desk.again(runtime, "say hello", number)
        assert 1 <= connections() <= 2
        name = json.loads(desk.host.records("openai.outside").generations[-1][-1])["name"]
        left = redis.command("TTL", f"dragoman:{name}:messages")
        assert 3500 < int(left[1:]) <= 3600
    with anyio.fail_after(10):
        while connections():  # noqa: ASYNC110 - a server rings no bell
            await anyio.sleep(0.01)


async def test_d3_one_engine_serves_all_turns_and_is_disposed_of(desk, table, postgres):
    """D3: a pool's connections are closed with the runtime."""

    def connections():
        where = "WHERE application_name <> 'psql' AND backend_type = 'client backend'"
        return int(postgres.query(f"SELECT count(*) FROM pg_stat_activity {where}"))

    async with desk.open(session=table("sqlalchemy")) as runtime:
        for number in range(3):
            await desk.again(runtime, "say hello", number)
        assert 1 <= connections() <= 2
    with anyio.fail_after(10):
        while connections():  # noqa: ASYNC110 - a server rings no bell
            await anyio.sleep(0.01)


async def test_d3_a_server_that_is_gone_is_a_passing_trouble(desk):
    """D3: a typed end within seconds; the message waits, and comes with the next turn."""
    need("redis", servers=True)
    with Redis() as server:
        session = SessionTable(backend="redis", url=server.url)
        async with desk.open(session=session) as runtime:
            await desk.again(runtime, "say hello", 0)
            server.stop()
            with anyio.fail_after(30):
                end = (await desk.again(runtime, "and again", 1))[-1]
    assert isinstance(end, Failed)
    assert end.kind is FailureKind.TRANSPORT
    assert end.detail.startswith("the session back end redis failed: ")
    assert [item["content"] for item in desk.host.items()] == ["and again"]


async def test_d3_tables_that_must_not_be_created_are_missed(desk, postgres):
    """D3: `create_tables` is on by default, and can be left to migrations."""
    assert "agent_sessions" in postgres.query("SELECT tablename FROM pg_tables")
    url = postgres.url.replace("/postgres", "/template1")
    session = SessionTable(backend="sqlalchemy", url=url, create_tables=False)
    async with desk.open(session=session) as runtime:
        end = (await desk.again(runtime, "say hello", 0))[-1]
    assert end.detail == "the session back end sqlalchemy failed: ProgrammingError"


async def test_d3_usage_is_counted_where_a_session_counts_it(desk, table):
    """D3: the advanced session has to be told by hand."""
    async with desk.open(session=table("advanced-sqlite")) as runtime:
        await desk.again(runtime, "say hello", 0)
    with closing(sqlite3.connect(desk.folder / "sessions.sqlite")) as db:
        assert db.execute("SELECT input_tokens, output_tokens FROM turn_usage").fetchall() == [
            (11, 7)
        ]


@pytest.mark.parametrize("kind", ["sqlite", "redis"])
async def test_d3_items_are_encrypted_and_stay_readable(desk, table, kind, monkeypatch):
    """D3: the wrapper's own default forgets after ten minutes; ours keeps for years."""
    session = table(kind, encrypt=EncryptTable(key=KEY))
    for number, text in enumerate(("say hello", "and again")):
        async with desk.open(session=session) as runtime:
            await desk.again(runtime, text, number)
        later = SimpleNamespace(time=lambda: time.time() + 2e8)
        monkeypatch.setattr("cryptography.fernet.time", later)
    assert sent(desk) == [*HELLO, "and again"]
    if kind == "sqlite":
        assert b"say hello" not in (desk.folder / "sessions.sqlite").read_bytes()


async def test_d3_another_key_is_a_located_error_not_an_empty_history(desk, table):
    """D3: the wrapper would read every history as empty, and say nothing."""
    async with desk.open(session=table(encrypt=EncryptTable(key=KEY))):
        pass
    problems = await desk.problems("assistant", session=table(encrypt=EncryptTable(key=OTHER)))
    assert [line.partition(":")[0] for line in problems] == ["runtimes.support.session.encrypt.key"]
    elsewhere = table(path=desk.folder / "other.sqlite", encrypt=EncryptTable(key=OTHER))
    async with desk.open(session=elsewhere):
        pass


@pytest.mark.parametrize(
    ("module", "kind", "more", "extra"),
    [
        ("redis.asyncio", "redis", {"url": "redis://127.0.0.1"}, "redis"),
        ("sqlalchemy.ext.asyncio", "sqlalchemy", {"url": "sqlite+aiosqlite://"}, "sqlalchemy"),
        ("pymongo", "mongodb", {"url": "mongodb://127.0.0.1"}, "mongodb"),
        ("dapr.aio.clients", "dapr", {"url": "127.0.0.1:1", "store": "x"}, "dapr"),
        ("aiosqlite", "async-sqlite", {}, "async-sqlite"),
        ("cryptography.fernet", "sqlite", {"encrypt": EncryptTable(key=KEY)}, "encrypt"),
    ],
)
async def test_d3_a_missing_library_is_a_located_error(
    desk, monkeypatch, module, kind, more, extra
):
    """D3: with what to install."""
    monkeypatch.setitem(sys.modules, module, None)
    [problem] = await desk.problems("assistant", session=SessionTable(backend=kind, **more))
    assert problem.startswith("runtimes.support.session")
    assert f"{module.partition('.')[0]} is not installed" in problem
    assert problem.endswith(f'pip install "dragoman-openai[{extra}]"')


@pytest.mark.parametrize(
    ("kind", "module", "url"),
    [
        ("redis", "redis", "http://:hunter2@here"),
        ("sqlalchemy", "sqlalchemy", "postgresql://me:hunter2@here/x"),
        ("sqlalchemy", "sqlalchemy", "hunter2"),
        ("mongodb", "pymongo", "http://me:hunter2@here"),
    ],
)
async def test_d3_an_address_of_no_use_is_located_and_not_shown(desk, kind, module, url):
    """D3, invariant 12."""
    need(module)
    session = SessionTable(backend=kind, url=Secret("env:URL", url))
    [problem] = await desk.problems("assistant", session=session)
    assert problem.startswith("runtimes.support.session.url: this address cannot be used")
    assert "hunter2" not in problem


async def test_d3_a_file_that_cannot_be_opened_is_located(desk):
    """D3."""
    session = SessionTable(backend="sqlite", path=desk.folder / "nowhere" / "x.sqlite")
    [problem] = await desk.problems("assistant", session=session)
    assert problem.startswith("runtimes.support.session.path: ")


async def test_d3_opening_asks_no_server(desk):
    """D3, E1: a server that is down keeps no gateway from starting."""
    need("redis", "sqlalchemy", "pymongo", "dapr")
    for kind, more in (
        ("redis", {"url": "redis://127.0.0.1:9"}),
        ("sqlalchemy", {"url": "postgresql+asyncpg://127.0.0.1:9/x"}),
        ("mongodb", {"url": "mongodb://127.0.0.1:9"}),
        ("dapr", {"url": "127.0.0.1:9", "store": "x"}),
    ):
        with anyio.fail_after(5):
            async with desk.open(session=SessionTable(backend=kind, **more)):
                pass


async def test_d3_compaction_goes_with_a_back_end(desk, table):
    """D3, D6: nothing is compacted below the limit, and a failed try changes nothing."""
    session = table(compact=CompactTable(above=2))
    async with desk.open(session=session) as runtime:
        for number, text in enumerate(("say hello", "say hello", "and again")):
            await desk.again(runtime, text, number)
    assert sent(desk) == [*HELLO, *HELLO, "and again"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("attempts", [1, 2])
async def test_fc_sto_05_what_is_too_long_is_taken_back_outside_too(desk, table, kind, attempts):
    """FC-STO-05: core takes its own records back; here the message is deleted."""
    async with desk.open(session=table(kind)) as runtime:
        await desk.again(runtime, "say hello", 0)
        kept = {name: list(each.generations[-1]) for name, each in desk.host.spaces.items()}
        if attempts == 2:
            await _brought_in(desk, runtime, "too big", 1)
            _take_back(desk, kept)
        end = (await desk.again(runtime, "too big", 1, attempt=attempts))[-1]
        assert end.kind is FailureKind.CONTEXT_OVERFLOW
        _take_back(desk, kept)
        await desk.again(runtime, "and again", 2)
    assert sent(desk) == [*HELLO, "and again"]


def _take_back(desk, kept):
    """Take the records of a turn back, as core does."""
    for name, items in kept.items():
        desk.host.records(name).generations[-1] = list(items)


async def _brought_in(desk, runtime, text, event):
    """Let a run take a message in, twice."""
    inbox = desk.host.records("openai")
    item = json.dumps({"role": "user", "content": text, "dragoman_event": event})
    inbox.generations[-1].append(item)
    request = TurnRequest(
        turn_id="turn_1",
        session_id="s1",
        conversation_id="c1",
        profile="default",
        address=Address("telegram", "7"),
        inputs=(),
    )
    async with anyio.create_task_group() as tasks:
        past = runtime._past(request, desk.host, Writes(tasks, SystemClock()))
        await past.bring_in([item])
        await past.bring_in([item])
        await past.close()
    assert await inbox.read() == []
