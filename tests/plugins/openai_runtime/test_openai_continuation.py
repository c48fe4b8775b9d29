"""What the model service keeps itself: chains of responses, conversations, and compaction."""

import json
import re
import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from dragoman import Failed, FailureKind, Finished, Secret, StoreUnavailable, Usage
from dragoman_openai import OpenAIConfig
from dragoman_openai.session_table import CompactTable, EncryptTable, SessionTable
from peers.model_service import ModelService

pytestmark = pytest.mark.anyio
CHAINS = ["previous_response", "auto_previous_response"]
WAYS = [*CHAINS, "conversation"]
HELLO = ["say hello", "Hello from the model. Nice to meet you."]


@pytest.fixture
def service(desk):
    """The model server, with a stand-in for the rest of the service before it."""
    made = ModelService(upstream=desk.model.base_url)
    made.start()
    yield made
    made.stop()
    assert made.errors == []


@pytest.fixture
def opened(desk, service):
    """Opens a runtime against the service."""
    return lambda **more: desk.open(base_url=service.base_url, **more)


async def say(desk, runtime, text, event, **more):
    desk.events = event
    return await desk.say(runtime, text, **more)


def given(service, number=-1):
    """What a model call was given as input, in one word or text each."""
    return [
        item["content"] if isinstance(item.get("content"), str) else item["type"]
        for item in service.calls[number]["input"]
    ]


def past(call):
    return call.get("previous_response_id") or call.get("conversation")


@pytest.mark.parametrize("way", WAYS)
async def test_d4_only_what_is_new_is_sent(desk, service, opened, way):
    """D4: over a restart of the runtime; a tool's calls stay within their turn."""
    async with opened(continuation=way) as runtime:
        await say(desk, runtime, "weather", 0)
    async with opened(continuation=way) as runtime:
        events = await say(desk, runtime, "and again", 1)
    assert isinstance(events[-1], Finished)
    assert given(service) == ["and again"]
    assert past(service.calls[-1])
    turn = ["user", "assistant", "call", "out", "assistant"]
    assert desk.host.kinds() == [*turn, "user", "assistant"]


@pytest.mark.parametrize("way", WAYS)
async def test_d4_what_a_failed_turn_said_is_told_with_the_next(desk, service, opened, way):
    """D4: the service never answered it, so it cannot know it."""
    async with opened(continuation=way) as runtime:
        await say(desk, runtime, "say hello", 0)
        before = past(service.calls[-1])
        end = (await say(desk, runtime, "broke for good", 1))[-1]
        assert isinstance(end, Failed)
        await say(desk, runtime, "and again", 2)
    assert given(service) == ["broke for good", "and again"]
    assert past(service.calls[-1]) == past(service.calls[-2])
    assert before is None or before == past(service.calls[-1])


@pytest.mark.parametrize("way", CHAINS)
async def test_d4_a_turn_that_runs_again_goes_on_from_the_stored_response(
    desk, service, opened, way
):
    """D4: core has taken back what the attempt wrote; the chain forks before it."""
    async with opened(continuation=way) as runtime:
        await say(desk, runtime, "say hello", 0)
        kept = {name: list(each.generations[-1]) for name, each in desk.host.spaces.items()}
        await say(desk, runtime, "and again", 1)
        for name, items in kept.items():
            desk.host.records(name).generations[-1] = items
        await say(desk, runtime, "and again", 1, attempt=2)
    assert given(service) == given(service, -2) == ["and again"]
    assert past(service.calls[-1]) == past(service.calls[-2])


async def test_d4_a_conversation_is_rolled_back_before_a_turn_runs_again(desk, service, opened):
    """D4: what the cut attempt has put there would be there twice."""
    async with opened(continuation="conversation") as runtime:
        await say(desk, runtime, "say hello", 0)
        kept = {name: list(each.generations[-1]) for name, each in desk.host.spaces.items()}
        await say(desk, runtime, "weather", 1)
        for name, items in kept.items():
            desk.host.records(name).generations[-1] = items
        await say(desk, runtime, "weather", 1, attempt=2)
    [items] = service.conversations.values()
    said = [item["content"][0]["text"] for item in items if item.get("role") == "user"]
    assert said == ["say hello", "weather"]
    assert [item["type"] for item in items].count("function_call") == 1


@pytest.mark.parametrize("way", WAYS)
async def test_d4_a_past_that_the_service_has_lost_is_given_to_it_again(
    desk, service, opened, way, caplog
):
    """D4: responses are kept for weeks only; our records have it all."""
    async with opened(continuation=way) as runtime:
        await say(desk, runtime, "say hello", 0)
        mark = json.loads(desk.host.records("openai.continuation").generations[-1][-1])
        service.forgotten.add(mark["id"])
        events = await say(desk, runtime, "and again", 1)
    assert isinstance(events[-1], Finished)
    assert given(service) == [*HELLO, "and again"] or given(service) == [
        "say hello",
        "message",
        "and again",
    ]
    assert "has lost the conversation; it is given the history anew" in caplog.text


@pytest.mark.parametrize("way", WAYS)
async def test_d4_a_reset_begins_anew(desk, service, opened, way):
    """D4: core begins a generation of every list."""
    async with opened(continuation=way) as runtime:
        await say(desk, runtime, "say hello", 0)
        first = past(service.calls[-1])
        for records in desk.host.spaces.values():
            await records.new_generation()
        await say(desk, runtime, "and again", 1)
    assert given(service) == ["and again"]
    assert past(service.calls[-1]) is None or past(service.calls[-1]) != first


async def test_d4_from_a_session_to_the_service_and_back(desk, service, opened):
    """D4: a change of the manifest takes the conversation along, both ways."""
    async with opened() as runtime:
        await say(desk, runtime, "say hello", 0)
    async with opened(continuation="previous_response") as runtime:
        await say(desk, runtime, "and again", 1)
    assert len(given(service)) == 3
    async with opened() as runtime:
        await say(desk, runtime, "and again", 2)
    assert len(given(service)) == 5


@pytest.mark.parametrize("way", WAYS)
async def test_d4_output_guardrails_are_refused_at_open(desk, way):
    """D4: the service would keep what they refuse."""
    [problem] = await desk.problems("guarded_output", continuation=way)
    assert problem.startswith("runtimes.support.continuation: ")
    assert 'set continuation = "session"' in problem


def config(**changes):
    return OpenAIConfig(instructions="x", base_url="http://127.0.0.1:1/v1", **changes)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"continuation": "conversation", "session": SessionTable()},
            "continuation 'conversation' and session exclude each other",
        ),
        ({"continuation": "previous_response", "api": "chat"}, 'needs api = "responses"'),
        ({"session": SessionTable(backend="conversations"), "api": "chat"}, "needs api"),
        ({"session": SessionTable(compact=CompactTable()), "api": "chat"}, "needs api"),
        (
            {"session": SessionTable(compact=CompactTable()), "history_items": 100},
            "session.compact.above must be less than history_items (100)",
        ),
    ],
)
def test_d4_two_ways_at_once_are_refused(changes, words):
    """D4."""
    with pytest.raises(ValueError, match=re.escape(words)):
        config(**changes)


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"backend": "redis"}, "url is missing for backend 'redis'; write url = "),
        ({"backend": "dapr", "url": "x"}, "store is missing"),
        ({"backend": "sqlite", "ttl": 100}, "ttl has no meaning for backend 'sqlite'"),
        ({"backend": "redis", "url": "redis://a:hunter2@b"}, "must not hold a password"),
        ({"encrypt": True}, "dragoman's own store has no encryption"),
        ({"backend": "conversations", "encrypt": True}, "encrypt cannot be used"),
        ({"backend": "conversations", "compact": CompactTable()}, "compact cannot be used"),
        ({"backend": "redis", "url": "redis://a", "path": "x"}, "or async-sqlite or sqlite"),
    ],
)
def test_d3_a_key_that_a_back_end_does_not_have_is_refused(keys, words):
    """D3: with what to do about it."""
    if keys.get("encrypt"):
        keys = {**keys, "encrypt": EncryptTable(key=Secret("env:K", "x" * 32))}
    with pytest.raises(ValueError, match=re.escape(words)) as caught:
        SessionTable(**keys)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, []),
        ({"continuation": "previous_response"}, []),
        ({"continuation": "conversation"}, ["not fenced", "unproven"]),
        ({"session": SessionTable(backend="sqlite")}, ["not fenced"]),
        ({"session": SessionTable(backend="conversations")}, ["not fenced", "unproven"]),
        ({"session": SessionTable(backend="mongodb", url="x")}, ["not fenced", "unproven"]),
    ],
)
def test_d3_check_says_what_is_not_fenced_and_what_is_unproven(changes, said):
    """D3: as warnings, from the manifest alone."""
    found = config(**changes).notices()
    assert [one.text.partition(":")[0] for one in found] == said
    assert {one.level for one in found} <= {"warning"}


def compacting(**more):
    return {"session": SessionTable(compact=CompactTable(above=2), **more)}


@pytest.mark.parametrize("kind", ["dragoman", "sqlite"])
async def test_d6_a_long_history_is_shortened_before_the_next_turn(desk, service, opened, kind):
    """D6: between turns, on a copy; the messages of the turn that begins stay as they are."""
    async with opened(**compacting(backend=kind)) as runtime:
        for number in range(2):
            await say(desk, runtime, "say hello", number)
        assert service.compactions == []
        await say(desk, runtime, "and again", 2)
    [asked] = service.compactions
    assert asked["model"] == "gpt-4.1"
    assert len(asked["input"]) == 4
    assert given(service) == ["compaction", "and again"]
    if kind == "dragoman":
        first = desk.host.records("openai").generations[0]
        assert len(first) == 5  # what was stored is stored


async def test_d14_a_compaction_is_a_call_of_a_model_too(desk, service, opened):
    """A10, D14: what was sent for it is kept, and what it used is counted with its turn."""
    async with opened(**compacting()) as runtime:
        for number in range(3):
            events = await say(desk, runtime, "say hello", number)
    (call,) = [call for call in desk.host.calls if call.response_id and '"stream"' not in call.sent]
    assert (call.outcome, call.model) == ("completed", CompactTable().model)
    assert json.loads(call.sent) == service.compactions[0]
    used = [event for event in events if isinstance(event, Usage) and event.model == call.model]
    assert used == [Usage(1, 1, 1, call.model)]


async def test_d6_a_compaction_that_fails_is_a_warning(desk, service, opened, caplog):
    """D6: the turn goes on with the long history."""
    service.failing.add("responses/compact")
    async with opened(**compacting()) as runtime:
        for number in range(3):
            events = await say(desk, runtime, "say hello", number)
    assert isinstance(events[-1], Finished)
    assert len(given(service)) == 5
    assert "the history could not be compacted (InternalServerError)" in caplog.text


async def test_d6_a_compaction_that_cannot_be_stored_leaves_the_history(desk, service, opened):
    """D6: one write makes the change; without it the old history is in force, whole."""
    async with opened(**compacting()) as runtime:
        for number in range(2):
            await say(desk, runtime, "say hello", number)
        desk.host.refusal = StoreUnavailable("no room")
        end = (await say(desk, runtime, "and again", 2))[-1]
        assert end.kind is FailureKind.INTERNAL
        desk.host.refusal = None
    assert desk.host.kinds() == ["user", "assistant", "user", "assistant", "user"]
    assert len(service.compactions) == 1


async def test_d3_conversations_are_begun_once_and_told_each_item_once(desk, service, opened):
    """D3, unproven: the name is stored before its first use, and a retry adds nothing twice."""
    session = SessionTable(backend="conversations")
    async with opened(session=session) as runtime:
        await say(desk, runtime, "say hello", 0)
        await say(desk, runtime, "and again", 1)
        await say(desk, runtime, "and again", 1, attempt=2)
    names = [
        json.loads(item)["name"] for item in desk.host.records("openai.outside").generations[-1]
    ]
    assert list(service.conversations) == names
    assert [len(items) for items in service.conversations.values()] == [4, 4]


async def test_d3_dapr_keeps_a_history(desk):
    """D3, unproven: writes ask for strong consistency, and name what they have read."""
    pytest.importorskip("dapr")
    from peers.dapr_sidecar import DaprSidecar

    with DaprSidecar() as sidecar, pytest.MonkeyPatch.context() as patch:
        from dapr.conf import settings

        patch.setattr(settings, "DAPR_HTTP_PORT", sidecar.health.port)
        session = SessionTable(
            backend="dapr", url=f"127.0.0.1:{sidecar.port}", store="statestore", ttl=3600
        )
        desk.watch_tasks = False
        async with desk.open(session=session) as runtime:
            await say(desk, runtime, "say hello", 0)
            await say(desk, runtime, "and again", 1)
        assert len(sidecar.state) == 2
        assert {option.consistency for option in sidecar.options} == {2}
    assert len(desk.model.inputs()[-1]) == 4


async def test_d3_a_sidecar_that_is_not_there_holds_nobody_up(desk, monkeypatch):
    """D3: its library would wait for a minute, and hold the loop for it."""
    pytest.importorskip("dapr")
    from dapr.conf import settings

    from dragoman_openai.backends import servers

    monkeypatch.setattr(settings, "DAPR_HTTP_PORT", 9)
    monkeypatch.setattr(servers, "CALL", 0.2)
    session = SessionTable(backend="dapr", url="127.0.0.1:9", store="x")
    async with desk.open(session=session) as runtime:
        with anyio.fail_after(20):
            end = (await say(desk, runtime, "say hello", 0))[-1]
    assert end.kind is FailureKind.TRANSPORT


def test_d3_no_library_is_imported_that_was_not_chosen():
    """D3: the SDK's own modules for them are not looked at either."""
    code = (
        "import dragoman_openai.runtime, sys; "
        "print([m for m in ('redis', 'sqlalchemy', 'pymongo', 'dapr', 'aiosqlite')"
        " if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_d3_check_needs_nothing_but_the_manifest_to_say_so(tmp_path):
    """D3, E3: `dragoman check` warns, and finds no fault."""
    manifest = tmp_path / "dragoman.toml"
    manifest.write_text(
        'manifest = 1\n[platforms.console]\n[profiles.default]\nruntime = "support"\n'
        '[access]\nowners = ["console:local"]\n[runtimes.support]\nplugin = "openai"\n'
        'instructions = "x"\nbase_url = "http://127.0.0.1:9/v1"\n'
        '[runtimes.support.session]\nbackend = "dapr"\nurl = "127.0.0.1:9"\nstore = "x"\n'
    )
    dragoman = Path(sys.executable).parent / "dragoman"
    done = subprocess.run(
        [dragoman, "check", "-m", manifest], capture_output=True, text=True, check=True
    )
    warnings = [
        line.removeprefix("runtimes.support: warning: ") for line in done.stderr.splitlines()
    ]
    assert [line.partition(":")[0] for line in warnings] == ["not fenced", "unproven"]
