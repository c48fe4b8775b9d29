"""The operator's functions as tools of the real program."""

import base64
import struct
import zlib
from pathlib import Path

import attrs
import pytest

from dragoman import Attachment, FetchedFile, Finished, ManifestError, ToolFinished
from dragoman.testing.leftovers import logged
from dragoman.testing.runtime_stage import staged
from dragoman.testing.runtime_suite import Say
from dragoman.testing.runtime_turnhost import SuiteTurnHost
from dragoman_claude import tools
from dragoman_claude.tools import Toolbox
from peers.claude_server import Call, ClaudeServer
from plugins.claude_runtime import configured
from plugins.claude_runtime.tabled import tabled

pytestmark = pytest.mark.anyio
HERE = "plugins.claude_runtime.configured"


def _chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


_SIZE = struct.pack(">IIBBBBB", 2, 2, 8, 2, 0, 0, 0)
_ROWS = zlib.compress(b"\0" + b"\xff\0\0" * 2 + b"\0" + b"\0\0\xff" * 2)
PNG = b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", _SIZE) + _chunk(b"IDAT", _ROWS) + _chunk(b"IEND", b"")


@pytest.fixture(scope="module")
def model_server():
    with ClaudeServer() as server:
        yield server


async def test_functions_of_all_kinds_are_called_and_their_failures_told(model_server):
    """D10, invariant 12: the model reads what went wrong, and nothing that an exception quotes."""
    names = ("who", "plain", "measured", "monday", "broken", "endless", "table")
    judged = tabled(
        model_server,
        functions=tuple(f"{HERE}:{name}" for name in names),
        read_only_tools=("plain", "measured"),
        time_zone="Asia/Tokyo",
    )
    calls = [
        Call("who", arguments={"word": "hi"}),
        Call("plain", arguments={"count": 41}),
        Call("plain", arguments={"count": "many"}),
        Call("measured", arguments={"length": 1.5}),
        Call("measured", arguments={"length": 2, "unit": "km"}),
        Call("monday"),
        Call("broken"),
        Call("endless"),
        Call("table"),
    ]
    judged.script("call all", *calls, Say(("Called.",)))
    configured.HEARD.clear()
    with logged() as lines:
        async with staged(judged) as stage, stage.opened() as runtime:
            talk = await stage.say(runtime, "call all")
    assert talk.end == Finished()
    who, plain, wrong, metres, kilometres, monday, broken, endless, table = judged.results
    assert who == "Ada says hi on suite"
    assert (plain, metres, kilometres) == ("42", "1.5 m", "2 km")
    assert wrong.startswith("Not run: the arguments do not fit.")
    assert (monday, broken) == ("come back on Monday", tools._BROKEN)
    assert endless.startswith("xxx")
    assert endless.endswith("[The rest is left out: 200000 characters in all.]")
    assert table.split() == ["{", '"a":', "[", "1,", "2", "]", "}"]
    failed = {one.call_id: one.failed for one in talk.of(ToolFinished)}
    assert [failed[one] for one in sorted(failed)] == [
        text in {wrong, monday, broken} for text in judged.results
    ]
    assert any("tool broken raised ValueError" in line for line in lines)
    assert "canary" not in str((lines, judged.page.bodies))
    [context] = configured.HEARD
    assert (context.conversation_id, context.time_zone) == (
        talk.request.conversation_id,
        "Asia/Tokyo",
    )
    assert context.call_key
    assert context.effect_key
    assert f"{context.now:%Z}" == "JST"
    offered = {tool["name"]: tool for tool in judged.asked_last["tools"]}
    described = offered["mcp__gateway__who"]
    assert described["description"] == "Say who asks.\n\nThe word is said as well."
    assert list(described["input_schema"]["properties"]) == ["word"]
    assert set(offered) == {f"mcp__gateway__{name}" for name in (*names, "read_file")}


async def test_what_cannot_be_a_tool_is_told_all_at_once(model_server, tmp_path):
    """E3: with its place, before the first message."""
    functions = ("undescribed", "unresolved", "plain", "plain", "nowhere", "Answer.nothing")
    judged = tabled(
        model_server,
        instructions_file=tmp_path / "missing.md",
        functions=(*(f"{HERE}:{name}" for name in functions), "no_such_module:act"),
        read_only_tools=("plane",),
        hooks=f"{HERE}:no_event",
        output=f"{HERE}:HEARD.nothing",
    )
    async with staged(judged) as stage:
        with pytest.raises(ManifestError) as caught:
            async with stage.opened():
                pass
    told = caught.value.problems
    assert all(problem.startswith("runtimes.suite.") for problem in told)
    wanted = [
        "undescribed has no docstring",
        "cannot be a tool: name 'Missing' is not defined",
        "two tools named plain",
        "no 'nowhere'",
        "no 'nothing'",
        "cannot be found (no_such_module)",
        "no function is named plane",
        "instructions_file: cannot be read",
        "output: ",
        "hooks: ",
    ]
    for words in wanted:
        assert any(words in problem for problem in told), (words, told)
    assert len(told) == len(wanted)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("no_dict", "has to return a dict of events, and returned list"),
        ("no_event", "PreToolUsage is no event; there are PreToolUse,"),
        ("no_matchers", "PreToolUse needs a list of claude_agent_sdk.HookMatcher"),
        ("raising", "raised RuntimeError: no hooks today"),
        ("nowhere", "there is no 'nowhere'"),
    ],
)
async def test_hooks_that_are_none_are_refused(model_server, name, says):
    """E3."""
    judged = tabled(model_server, hooks=f"{HERE}:{name}")
    async with staged(judged) as stage:
        with pytest.raises(ManifestError) as caught:
            async with stage.opened():
                pass
    [problem] = caught.value.problems
    assert problem.startswith("runtimes.suite.hooks: ")
    assert says in problem


@attrs.define(eq=False)
class WithFiles(SuiteTurnHost):
    """A conversation in which files were sent, by the last part of their references."""

    files: dict[str, Path] = attrs.field(factory=dict)

    async def fetch(self, reference):
        path = self.files[reference.rpartition(".")[2]]
        return FetchedFile(path, path.name, "", path.stat().st_size)


async def test_pictures_and_documents_are_shown_to_the_model(model_server, tmp_path):
    """C8, D11: behind the words that they came with."""
    picture, document = tmp_path / "a.png", tmp_path / "b.pdf"
    picture.write_bytes(PNG)
    document.write_bytes(b"%PDF-1.4\n%%EOF\n")
    sent = (
        Attachment("f1", "photo", name="a.png", mime="image/png", size=len(PNG)),
        Attachment("f2", "document", name="b.pdf", mime="application/pdf", size=15),
    )
    judged = tabled(model_server)
    judged.script(":]", Say(("Seen.",)))  # what stands before each file
    async with staged(judged) as stage, stage.opened() as runtime:
        host = WithFiles(stage.session(), "turn_files", files={"1": picture, "2": document})
        message = stage.message("look at this", attachments=sent)
        talk = await stage.say(runtime, message, host=host)
    assert (talk.end, talk.texts) == (Finished(), ["Seen."])
    content = judged.asked_last["messages"][0]["content"]
    assert [one["type"] for one in content if one["type"] != "text"] == ["image", "document"]
    shown = {block["type"]: block["source"]["data"] for block in content if "source" in block}
    assert base64.b64decode(shown["image"]).startswith(b"\x89PNG")
    assert base64.b64decode(shown["document"]) == document.read_bytes()


def test_a_tool_whose_conversation_has_no_memory_offers_none():
    """D10."""
    own = {one.name: one for one in tools.load((), (), "runtimes.suite")}
    assert {one.name for one in Toolbox(own, None)._offered()} == {"read_file"}
