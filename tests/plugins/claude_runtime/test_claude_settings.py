"""Each setting of the table on the real program: what its model is asked, and what comes of it."""

from zoneinfo import ZoneInfo

import anyio
import pytest

from dragoman import (
    ApprovalState,
    Decision,
    Failed,
    FailureKind,
    Finished,
    ManifestError,
    Notice,
    Paused,
    Usage,
)
from dragoman.testing.runtime_stage import staged
from dragoman.testing.runtime_suite import Act, Say, outcome
from dragoman_claude import versions
from dragoman_claude.config import BudgetTable, SubagentTable
from peers.claude_server import Call, ClaudeServer, Spent, Status
from plugins.claude_runtime import configured
from plugins.claude_runtime.tabled import system_text, tabled, tool_names

pytestmark = pytest.mark.anyio
HERE = "plugins.claude_runtime.configured"
ACTS = "plugins.claude_runtime.contract_tools"


@pytest.fixture(scope="module")
def model_server():
    with ClaudeServer() as server:
        yield server


@pytest.fixture(autouse=True)
def nothing_was_heard():
    configured.HEARD.clear()


async def test_what_the_model_is_asked_follows_the_table(model_server, tmp_path):
    """D11: model, effort, thinking, tools, instructions of a file, the time zone, the environment."""
    path = tmp_path / "instructions.md"
    path.write_text("Be brief: “always”.")
    judged = tabled(
        model_server,
        instructions_file=path,
        model="claude-opus-5",
        effort="low",
        thinking="off",
        tools=("Bash", "Read"),
        allow=("Bash",),
        add_dirs=(tmp_path,),
        settings={"env": {"BY_SETTINGS": "yes"}},
        environment={"COLOUR": "blue"},
        time_zone="Pacific/Pago_Pago",
    )
    look = {"command": "echo $COLOUR $TZ $BY_SETTINGS", "description": "look"}
    read = {"file_path": str(path)}
    judged.script("look", Call("Bash", arguments=look), Call("Read", arguments=read), Say(("Ok.",)))
    async with staged(judged) as stage, stage.opened() as runtime:
        days = [stage.host.clock.now().astimezone(ZoneInfo("Pacific/Pago_Pago"))]
        talk = await stage.say(runtime, "look")
        days.append(stage.host.clock.now().astimezone(days[0].tzinfo))
    assert talk.end == Finished()
    body = judged.asked_last
    assert any(f"Today's date is {day:%Y-%m-%d}" in str(body["messages"]) for day in days)
    assert (body["model"], body["output_config"]["effort"]) == ("claude-opus-5", "low")
    assert body["thinking"] == {"type": "disabled"}
    assert tool_names(body) == ["Bash", "Read", "mcp__gateway__read_file"]
    assert system_text(body).endswith("Be brief: “always”.")
    [said, shown] = judged.results
    assert said == "blue Pacific/Pago_Pago yes"
    assert "“always”" in shown


async def test_instructions_are_as_they_are_now_also_in_an_old_conversation(model_server):
    """D11: the program keeps those of the first turn by itself; a preset, and a change of it."""
    judged = tabled(model_server, instructions="The first ones.")
    judged.script("hello", Say(("Hi.",)))
    async with staged(judged) as stage:
        session = stage.session()
        tables = [
            {"instructions": "The first ones."},
            {"instructions": "The second ones.", "preset": "claude_code"},
            {"preset": "claude_code", "thinking": "adaptive"},
        ]
        texts = []
        for table in tables:
            judged.table = table
            async with stage.opened() as runtime:
                await stage.say(runtime, "hello", session=session)
            texts.append(system_text(judged.asked_last))
    assert [text.rpartition("\n")[2] for text in texts[:2]] == [
        "The first ones.",
        "The second ones.",
    ]
    assert len(texts[0]) < 500 < 3000 < len(texts[1])
    assert "ones." not in texts[2]
    assert judged.asked_last["thinking"]["type"] == "adaptive"
    assert len(judged.page.asked[-1]) == 5, "it was one conversation"


async def test_another_model_answers_while_the_first_is_overloaded(model_server):
    """D11, D13: after three refusals; people are told."""
    judged = tabled(
        model_server,
        model="claude-opus-5",
        fallback_model="claude-haiku-5",
        environment={"CLAUDE_CODE_MAX_RETRIES": "5"},
    )
    busy = Status(FailureKind.RATE_LIMIT, "busy", status=529, error="overloaded_error")
    judged.script("hello", busy)

    async def calm() -> None:
        while len(judged.page.bodies) < 3:
            await stage.host.clock.sleep(0.01)
        judged.script("hello", Say(("Hi.",)))

    async with (
        staged(judged) as stage,
        stage.opened() as runtime,
        anyio.create_task_group() as group,
    ):
        group.start_soon(calm)
        talk = await stage.say(runtime, "hello")
        group.cancel_scope.cancel()
    assert (talk.end, talk.texts) == (Finished(), ["Hi."])
    models = [body["model"] for body in judged.page.bodies]
    assert models == ["claude-opus-5"] * 3 + ["claude-haiku-5"]
    assert "claude-haiku-5 answers instead" in [one.text for one in talk.of(Notice)][-1]
    assert [one.model for one in talk.of(Usage)] == ["claude-haiku-5"]


async def test_a_turn_has_so_many_model_calls_and_an_answer_has_a_shape(model_server):
    """D11, D13: ``max_turns`` ends a loop; ``output`` makes JSON of what the model fills in."""
    judged = tabled(
        model_server, max_turns=3, functions=(f"{HERE}:plain",), output=f"{HERE}:Answer"
    )
    again = Call("plain", arguments={"count": 1})
    judged.script("loop", *[step for _ in range(9) for step in (again, Say((".",)))])
    wrong = Call("StructuredOutput", arguments={"answer": "many"})
    right = Call("StructuredOutput", arguments={"answer": 42})
    judged.script("count", wrong, Say(("Hm.",)), right)
    async with staged(judged) as stage, stage.opened() as runtime:
        loop = await stage.say(runtime, "loop")
        assert loop.end == Failed(FailureKind.TURN_LIMIT, "max_turns")
        assert len(judged.page.bodies) == 3
        talk = await stage.say(runtime, "count")
    assert (talk.end, talk.texts[-1]) == (Finished(), '{"answer": 42}')
    [tool] = [one for one in judged.asked_last["tools"] if one["name"] == "StructuredOutput"]
    assert set(tool["input_schema"]["properties"]) == {"answer", "why"}


async def test_budgets_end_a_turn_that_goes_on_and_refuse_one_that_would_begin(model_server):
    """D14: nothing is called any more once a conversation has cost what it may."""
    judged = tabled(
        model_server,
        model="claude-sonnet-5",
        budget=BudgetTable(turn=0.3, conversation=0.5),
        functions=(f"{HERE}:plain",),
    )
    again = Call("plain", arguments={"count": 1})
    judged.script("dear", Spent(200_000, 10), again, Say(("Dear.",)))
    judged.script("cheap", Spent(1_000, 10), Say(("Cheap.",)))
    async with staged(judged) as stage, stage.opened() as runtime:
        session = stage.session()
        ends = []
        for said in ("cheap", "dear", "cheap", "dear", "cheap"):
            talk = await stage.say(runtime, said, session=session)
            ends.append((said, talk.end, len(judged.page.bodies)))
    over = Failed(FailureKind.BUDGET, "budget_exhausted")
    assert ends == [
        ("cheap", Finished(), 1),
        ("dear", over, 2),  # and not a third call behind the tool's result
        ("cheap", Finished(), 3),
        ("dear", over, 4),
        ("cheap", Failed(FailureKind.BUDGET, "the session has cost $0.80 of $0.50"), 4),
    ]


async def test_an_agent_that_is_asked_is_kept_apart_and_cannot_ask_people(model_server):
    """D11, D9, D10: its words are no part of the answer, its calls pass the same gate."""
    helper = SubagentTable(
        description="Helps.",
        instructions="You are the helper.",
        tools=("mcp__gateway__act", "mcp__gateway__act_if_allowed"),
        model="haiku",
    )
    judged = tabled(
        model_server,
        tools=("Agent",),
        functions=(f"{ACTS}:act", f"{ACTS}:act_if_allowed"),
        ask=("mcp__gateway__act_if_allowed",),
        agents={"helper": helper},
    )
    part = {"description": "part", "prompt": "do the part", "subagent_type": "helper"}
    judged.script("delegate", Call("Agent", arguments=part), Say(("All done.",)))
    judged.script("do the part", Act("one"), Act("two", asks=True), Say(("Inner words.",)))
    async with staged(judged) as stage, stage.opened() as runtime:
        talk = await stage.say(runtime, "delegate")
    assert (talk.end, talk.texts) == (Finished(), ["All done."])
    assert judged.page.effects == ["one"]
    inner = next(body for body in judged.page.bodies if "haiku" in body["model"])
    assert tool_names(inner) == ["mcp__gateway__act", "mcp__gateway__act_if_allowed"]
    assert "You are the helper." in system_text(inner)
    results = [line.text for lines in judged.page.asked for line in lines if line.role == "tool"]
    assert outcome("one") in results
    assert any("nobody can be asked" in text for text in results)
    assert [key[1] for key in talk.host.session.journal] == ["Agent", "act"]
    assert {one.model for one in talk.of(Usage)} >= {inner["model"]}


async def test_hooks_of_the_operator_cannot_loosen_the_gate(model_server, tmp_path):
    """D11, invariant 7: their consent says nothing, and what they change is what is decided on."""
    judged = tabled(
        model_server,
        functions=(f"{ACTS}:act", f"{ACTS}:act_if_allowed", f"{HERE}:plain"),
        ask=("mcp__gateway__act_if_allowed",),
        deny=("mcp__gateway__pl*",),
        tools=("Read",),
        add_dirs=(tmp_path / "near",),
        hooks=f"{HERE}:hooks",
    )
    near, far = tmp_path / "near" / "two lines", tmp_path / "far"
    near.parent.mkdir()
    near.write_text("one\ntwo\n")
    far.write_text("secret")
    reads = [Call("Read", arguments={"file_path": str(path)}) for path in (near, far)]
    judged.script("read both", *reads, Say(("Read.",)))
    whats = ("change it", "forbidden", "asked about", "told", "raising", "plain")
    denied = Call("plain", arguments={"count": 1})
    judged.script("try all", *[Act(what) for what in whats], denied, Say(("Tried.",)))
    judged.script("ask first", Act("change that", asks=True), Say(("Never.",)))
    async with staged(judged) as stage, stage.opened() as runtime:
        talk = await stage.say(runtime, "try all")
        results = judged.results
        await stage.say(runtime, "read both")
        one, other = judged.results
        asked = await stage.say(runtime, "ask first")
        [question] = asked.grammar.asked
        yes = Decision(question.call_id, question.tool, ApprovalState.APPROVED)
        going_on = await stage.go_on(runtime, asked, yes)
    assert talk.end == Finished()
    assert judged.page.effects[:-1] == ["other it", "told", "plain"]
    assert "By the way, it rains." in str(judged.page.bodies[1])
    refused = dict(zip([*whats, "denied"], results, strict=True))
    assert "not by us" in refused["forbidden"]
    assert "only the table's ask" in refused["asked about"]
    assert "canary" not in refused["raising"]
    assert "No such tool" in refused["denied"]
    journal = [arguments for _, _, arguments, _ in talk.host.session.journal]
    assert journal == ['{"what": "other it"}', '{"what": "told"}', '{"what": "plain"}']
    assert configured.HEARD.count(("after", "mcp__gateway__act")) == 3
    assert isinstance(asked.end, Paused)
    assert question.arguments == '{"what": "other that"}'
    assert going_on.end == Finished()
    assert judged.page.effects[-1] == "other that"
    assert ("one" in one, "two" in one) == (True, False)
    assert "secret" not in other


MODES = {
    "default": (Paused, Paused),
    "acceptEdits": (Finished, Paused),
    "dontAsk": (Finished, Finished),
}


@pytest.mark.parametrize(
    "mode", [pytest.param("default", marks=pytest.mark.proof), "acceptEdits", "dontAsk"]
)
async def test_what_no_rule_names_is_treated_as_the_mode_says(model_server, tmp_path, mode):
    """D11, invariant 16: no mode lets the agent read outside its folder."""
    judged = tabled(model_server, permission_mode=mode, tools=("Write", "Bash", "Read"))
    secret = tmp_path / "secret.txt"
    secret.write_text("canary")
    touched = tmp_path / "touched"
    calls = [
        Call("Write", arguments={"file_path": "note.txt", "content": "x"}),
        Call("Bash", arguments={"command": f"touch {touched}", "description": "touch"}),
        Call("Read", arguments={"file_path": str(secret)}),
    ]
    ends, notes = [], []
    async with staged(judged) as stage, stage.opened() as runtime:
        session = stage.session()
        for number, call in enumerate(calls):
            judged.script(f"do {number}", call, Say(("Ok.",)))
            session = stage.session() if ends[-1:] == [Paused] else session
            talk = await stage.say(runtime, f"do {number}", session=session)
            ends.append(type(talk.end))
            workspace = stage.host.data_dir / "sessions" / session.id / "workspace"
            notes.append((workspace / "note.txt").exists())
    assert tuple(ends) == (*MODES[mode], Finished)
    assert notes[0] == (mode == "acceptEdits")
    assert not touched.exists()
    assert "canary" not in str(judged.page.bodies)


async def test_a_release_that_was_not_tested_is_told_and_an_old_one_is_refused(
    model_server, monkeypatch
):
    """D11: which one runs is known before a message comes."""
    judged = tabled(model_server)
    async with staged(judged) as stage:
        async with stage.opened() as runtime:
            [found] = await runtime.probe()
            assert found.level == "ok"
            assert "0.2.189" in found.text
            monkeypatch.setattr(versions, "program_version", "2.1.400")
            [found] = await runtime.probe()
            assert (found.level, "claude-agent-sdk==" in found.remedy) == ("warning", True)
        monkeypatch.setattr(versions, "program_version", "2.1.247")
        with pytest.raises(ManifestError, match=r"older than 2\.1\.248"):
            async with stage.opened():
                pass


async def test_a_program_that_says_it_is_old_is_ended(model_server, monkeypatch):
    """D11: to it, people's words would be commands."""
    monkeypatch.setattr(versions, "_LEAST", (3, 0, 0))
    monkeypatch.setattr(versions, "program_version", "3.0.0")
    judged = tabled(model_server)
    async with staged(judged) as stage, stage.opened() as runtime:
        talk = await stage.say(runtime, "hello")
    assert isinstance(talk.end, Failed)
    assert talk.end.kind is FailureKind.INTERNAL
    assert "older than 3.0.0" in talk.end.detail
