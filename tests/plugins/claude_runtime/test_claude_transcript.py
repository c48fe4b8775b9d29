"""The SDK's store over the records of a real SQLite file, with leases; and the files written of it."""

import json
import stat

import anyio
import attrs
import pytest
from claude_agent_sdk.testing import run_session_store_conformance

from dragoman import StaleLease, StoreUnavailable, SystemClock
from dragoman.flow.turnhost import FencedRecords
from dragoman.store.sqlite import open_sqlite
from dragoman.testing.cancelling import cancelled_at
from dragoman.testing.clock import VirtualClock, settle
from dragoman.testing.store import Scene
from dragoman_claude import history
from dragoman_claude.transcript import DEADLINE, WAITING, Mirror, Transcript
from dragoman_claude.transcript_file import write_transcript

pytestmark = pytest.mark.anyio

ID = "0e0e7b1c-6f0a-4d5e-9a3f-000000000001"
OTHER = "0e0e7b1c-6f0a-4d5e-9a3f-000000000002"
KEY = {"project_key": "-work", "session_id": ID}
SUB = {**KEY, "subpath": "subagents/agent-1"}


def line(uuid=None, kind="assistant", **more):
    return {"type": kind, **({"uuid": uuid} if uuid else {}), **more}


@pytest.fixture
async def scene(tmp_path):
    async with open_sqlite(tmp_path / "dragoman.db") as store:
        yield Scene(store)


@attrs.define(eq=False)
class Turn:
    """A turn with a lease, and what its session holds."""

    scene: Scene
    grant: object
    lost: list[str] = attrs.field(factory=list)

    @property
    def records(self):
        return FencedRecords(self.scene.store, self.grant.lease, "claude")

    async def loses_its_session(self):
        await self.scene.store.apply(self.scene.finish(self.grant, next_turn=False))

    async def items(self):
        return list(await self.records.read())

    async def uuids(self):
        return [history.decode(item)["entry"].get("uuid") for item in await self.items()]

    def bind(self, transcript, records=None):
        transcript.bind(records or self.records, lambda: self.lost.append("lost"))
        return transcript


@pytest.fixture
async def turn(scene):
    return Turn(scene, await scene.running())


@pytest.fixture
def transcript(turn):
    return turn.bind(Transcript(ID, SystemClock()))


@attrs.define(eq=False)
class Shaky:
    """Records whose next writes fail, or do not return, before or after they were carried out."""

    records: FencedRecords
    fails: list[str] = attrs.field(factory=list)
    writes: int = 0

    async def read(self, limit=None):
        return await self.records.read(limit)

    async def append(self, items):
        self.writes += 1
        fail = self.fails.pop(0) if self.fails else ""
        if fail != "before":
            await self.records.append(items)
        if fail == "hangs":
            await anyio.sleep_forever()
        if fail:
            raise StoreUnavailable(fail)

    async def new_generation(self, items=()):
        await self.records.new_generation(items)


@attrs.define(eq=False)
class Sessions:
    """All sessions of a deployment: the SDK's suite asks one store about several."""

    scene: Scene
    open: dict = attrs.field(factory=dict)

    async def append(self, key, entries):
        await (await self._session(key)).append(key, entries)

    async def load(self, key):
        return await (await self._session(key)).load(key)

    async def list_subkeys(self, key):
        return await (await self._session(key)).list_subkeys(key)

    async def _session(self, key):
        name = f"{key['project_key']}/{key['session_id']}/{id(self)}"
        if name not in self.open:
            turn = Turn(self.scene, await self.scene.running(channel=name))
            self.open[name] = turn.bind(Transcript(key["session_id"], SystemClock()))
        return self.open[name]


async def test_the_suite_of_the_sdk_passes_over_a_real_store(scene):
    """D11: what is required of a store, and subagents; nothing is ever deleted by the SDK."""
    made = []

    def make():
        made.append(Sessions(scene))
        return made[-1]

    await run_session_store_conformance(make)
    assert len(made) >= 8


async def test_lines_are_items_behind_what_people_said(turn, transcript):
    """D11: in order, subagents named, and the newest is known by its uuid."""
    await turn.records.append([history.said(7, "hello"), history.chosen(ID)])
    await transcript.append(KEY, [line("u1", "user", promptSource="sdk"), line("u2")])
    await transcript.append(SUB, [line("s1")])
    assert transcript.newest == "u2"
    stored = await turn.items()
    assert history.read_state(stored) == history.State(id=ID, newest="u2", resumable=True)
    assert [history.decode(item).get("sub") for item in stored[2:]] == [None, None, SUB["subpath"]]


async def test_what_no_resumption_needs_is_not_kept(turn, transcript):
    """D14: the running cost begins at zero in each program."""
    kinds = ("queue-operation", "cost-state", "last-prompt", "atis-latch")
    await transcript.append(KEY, [line(kind=kind) for kind in kinds])
    assert [history.decode(item)["entry"]["type"] for item in await turn.items()] == ["atis-latch"]


async def test_a_line_is_stored_once_however_often_it_is_told(turn, transcript):
    """D11: a batch that was acknowledged, and its overlap with another."""
    batch = [line("u1"), line("u2")]
    for entries in (batch, batch, [line("u2"), line("u3")]):
        await transcript.append(KEY, entries)
    await transcript.append(SUB, [line("u1")])
    assert await turn.uuids() == ["u1", "u2", "u3", "u1"]
    assert transcript.newest == "u3"


@pytest.mark.parametrize("fails", [["before"], ["after"], ["before", "after"], ["after", "before"]])
async def test_a_batch_that_failed_is_stored_once_when_it_is_told_again(turn, fails):
    """D11: whether the failed write had been carried out or not."""
    records = Shaky(turn.records, list(fails))
    transcript = turn.bind(Transcript(ID, SystemClock()), records)
    batch = [line("u1"), line("u2")]
    for _ in fails:
        with pytest.raises(StoreUnavailable):
            await transcript.append(KEY, batch)
    await transcript.append(KEY, batch)
    assert await turn.uuids() == ["u1", "u2"]
    assert (transcript.newest, transcript.broken) == ("u2", False)


async def test_a_line_without_a_name_is_stored_once_when_its_write_had_failed(turn):
    """D11: nothing but the SDK's own list tells that it is given again."""
    transcript = turn.bind(Transcript(ID, SystemClock()), Shaky(turn.records, ["before"]))
    batch = [line("u1"), line()]
    with pytest.raises(StoreUnavailable):
        await transcript.append(KEY, batch)
    await transcript.append(KEY, batch)
    assert await turn.uuids() == ["u1", None]


async def test_a_batch_that_the_sdk_gave_up_is_stored_with_the_next(turn):
    """D11: in order; and the turn asks for it before it ends."""
    transcript = turn.bind(Transcript(ID, SystemClock()), Shaky(turn.records, ["before"] * 3))
    with pytest.raises(StoreUnavailable):
        await transcript.append(KEY, [line("u1"), line()])
    with pytest.raises(StoreUnavailable):
        await transcript.append(KEY, [line("u2")])
    with pytest.raises(StoreUnavailable):
        await transcript.flush()
    await transcript.flush()
    await transcript.append(KEY, [line("u3")])
    assert await turn.uuids() == ["u1", None, "u2", "u3"]


async def test_a_write_that_does_not_return_is_left_and_looked_for(turn):
    """D11: the SDK's reader waits no longer than the deadline."""
    clock = VirtualClock()
    transcript = turn.bind(Transcript(ID, clock), Shaky(turn.records, ["hangs"]))
    batch, raised = [line("u1")], []

    async def append():
        try:
            await transcript.append(KEY, batch)
        except StoreUnavailable as error:
            raised.append(error)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(append)
        with anyio.fail_after(5):
            while not await turn.items():
                await anyio.lowlevel.checkpoint()
        await settle()
        assert not raised
        await clock.advance(DEADLINE)
    assert len(raised) == 1
    await transcript.append(KEY, batch)
    assert await turn.uuids() == ["u1"]


@pytest.mark.parametrize("wait", range(1, 6))
async def test_a_cancelled_append_is_whole_or_not_there(turn, transcript, wait):
    """D11: the SDK cancels what takes it too long, and does not ask again."""
    await cancelled_at(transcript.append(KEY, [line("u1"), line("u2")]), wait)
    await transcript.append(KEY, [line("u3")])
    assert await turn.uuids() == ["u1", "u2", "u3"]


async def test_a_turn_that_lost_its_session_is_told_and_stores_nothing(turn, transcript):
    """B3: the SDK is not told: it would try again, and let its reader wait."""
    await transcript.append(KEY, [line("u1")])
    before = await turn.items()
    await turn.loses_its_session()
    await transcript.append(KEY, [line("u2")])
    await transcript.append(KEY, [line("u3")])
    assert turn.lost == ["lost"]
    assert transcript.broken
    with pytest.raises(StaleLease):
        await transcript.flush()
    assert await turn.items() == before


async def test_a_line_that_cannot_be_taken_is_no_hole_that_nobody_knows_of(turn, transcript):
    """D11: the SDK goes on without it, so the turn has to end."""
    with pytest.raises(TypeError):
        await transcript.append(KEY, [line("u1", text={1, 2})])
    assert transcript.broken
    with pytest.raises(StoreUnavailable, match="lost"):
        await transcript.flush()


def call(name, uuid="u1"):
    return line(uuid, message={"content": [{"type": "tool_use", "id": name, "name": "pay"}]})


@pytest.mark.parametrize("local", [False, True])
async def test_a_call_may_begin_once_the_records_have_it(turn, local):
    """D10: whatever dies after that, the call is known to have been made."""
    transcript = turn.bind(Transcript(ID, SystemClock(), local=local))
    found = []

    async def begin():
        found.append(await transcript.holds("t1"))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(begin)
        await transcript.append(KEY, [call("t2", "u2")])
        await settle()
        assert found == []
        await transcript.append(KEY, [call("t1")])
    assert found == [True]
    assert await transcript.holds("t1")


@pytest.mark.parametrize("end", ["time", "loss"])
async def test_a_call_that_the_records_do_not_get_may_not_begin(turn, end):
    """B3: and neither may one of a turn that has lost its session."""
    clock = VirtualClock()
    transcript = turn.bind(Transcript(ID, clock))
    found = []

    async def begin():
        found.append(await transcript.holds("t1"))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(begin)
        await settle()
        if end == "loss":
            await turn.loses_its_session()
            await transcript.append(KEY, [call("t1")])
        else:
            await clock.advance(DEADLINE)
    assert found == [False]


async def test_lines_between_turns_are_written_in_front_of_the_next(scene, turn, transcript):
    """D11: nothing is written without a lease."""
    await transcript.append(KEY, [line("u1")])
    await transcript.flush()
    transcript.unbind()
    await transcript.append(KEY, [line("late")])
    assert transcript.newest == "u1"
    assert await turn.uuids() == ["u1"]
    await turn.loses_its_session()
    following = Turn(scene, await scene.running())
    following.bind(transcript)
    await transcript.append(KEY, [line("u2")])
    assert await following.uuids() == ["u1", "late", "u2"]
    assert transcript.newest == "u2"


async def test_more_than_can_wait_ends_the_program(turn, transcript):
    """D11: memory is bounded, and a transcript with a hole is not gone on with."""
    transcript.unbind()
    half = "x" * (WAITING // 2)
    await transcript.append(KEY, [line("u1", text=half)])
    assert not transcript.broken
    await transcript.append(KEY, [line("u2", text=half)])
    assert transcript.broken
    turn.bind(transcript)
    await transcript.append(KEY, [line("u3")])
    assert await turn.items() == []


async def test_a_program_that_goes_over_to_another_session_is_followed(turn, transcript):
    """D11: a list holds one session; what still comes of the one before is dropped."""
    await turn.records.append([history.chosen(ID)])
    await transcript.append(KEY, [line("u1"), line("u2")])
    await transcript.append({**KEY, "session_id": OTHER}, [line("u2"), line("u3")])
    await transcript.append(KEY, [line("u4")])
    await transcript.append({**KEY, "session_id": OTHER}, [line("u5")])
    stored = await turn.items()
    assert (transcript.id, transcript.newest) == (OTHER, "u5")
    assert history.read_state(stored).id == OTHER
    assert [entry["uuid"] for entry in history.entries(stored)[None]] == ["u2", "u3", "u5"]


async def test_a_local_transcript_leaves_marks(turn):
    """D11: enough to go on from the end of a turn, and to know what was told."""
    transcript = turn.bind(Transcript(ID, SystemClock(), local=True))
    await turn.records.append([history.said(7, "a")])
    await transcript.append(KEY, [line("u1", "attachment"), line(kind="atis-latch")])
    await transcript.append(SUB, [line("s1", "user", promptSource="sdk")])
    assert history.read_state(await turn.items()).untold == (history.Untold(7, "a"),)
    batch = [line("u2", "user", promptSource="sdk"), line("u3")]
    await transcript.append(KEY, batch)
    await transcript.append(KEY, batch)
    stored = await turn.items()
    assert history.read_state(stored) == history.State(newest="u3", resumable=True)
    assert len(stored) == 4


async def test_the_mirror_gives_nothing_back(transcript):
    """D11: the SDK writes no transcript into a directory of its own."""
    mirror = Mirror(transcript)
    await mirror.append(KEY, [line("u1")])
    assert await mirror.load(KEY) is None
    assert await transcript.load(KEY) == [line("u1")]


def files(folder):
    return {str(path.relative_to(folder)): path for path in folder.rglob("*") if path.is_file()}


def test_a_transcript_is_written_where_the_program_looks(tmp_path):
    """D11: for its owner only; with what describes its subagents."""
    stored = [
        history.said(7, "hello"),
        history.chosen(ID),
        history.entry_item(line("u1"), None),
        history.entry_item(line("u1"), None),
        history.entry_item(line("s1"), "subagents/agent-1"),
        history.entry_item({"type": "agent_metadata", "agentType": "old"}, "subagents/agent-1"),
        history.entry_item({"type": "agent_metadata", "agentType": "x"}, "subagents/agent-1"),
        history.entry_item(line("s2"), "subagents/workflows/run-1/agent-2"),
    ]
    config, work = tmp_path / "config", tmp_path / "work"
    main = write_transcript(config, work, ID, stored)
    write_transcript(config, work, ID, stored)
    folder = main.parent
    assert folder.parent == config / "projects"
    found = files(folder)
    assert set(found) == {
        f"{ID}.jsonl",
        f"{ID}/subagents/agent-1.jsonl",
        f"{ID}/subagents/agent-1.meta.json",
        f"{ID}/subagents/workflows/run-1/agent-2.jsonl",
    }
    assert [json.loads(each) for each in main.read_text().splitlines()] == [line("u1")]
    assert json.loads(found[f"{ID}/subagents/agent-1.meta.json"].read_text()) == {"agentType": "x"}
    assert {stat.S_IMODE(path.stat().st_mode) for path in found.values()} == {0o600}


@pytest.mark.parametrize(
    "sub", ["../agent-1", "subagents/../../x", "/etc/x", "", "subagents", "subagents/a\0b", "C:x"]
)
def test_no_name_leads_out_of_the_directory(tmp_path, sub):
    """D11: what the store holds is not trusted with paths."""
    write_transcript(tmp_path / "c", tmp_path, ID, [history.entry_item(line("s1"), sub)])
    assert [path.name for path in files(tmp_path).values()] == [f"{ID}.jsonl"]


@pytest.mark.parametrize("name", ["a title", "../x", ID.upper(), ""])
def test_no_file_is_written_for_what_is_no_id(tmp_path, name):
    with pytest.raises(ValueError, match="no id"):
        write_transcript(tmp_path, tmp_path, name, [])
