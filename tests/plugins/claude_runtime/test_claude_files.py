"""What file tools reach: the conversation's folder, and nothing that is another's."""

import json

import pytest

from peers.claude_server import ClaudeServer
from plugins.claude_runtime.attacks import house

pytestmark = pytest.mark.anyio

READING = ("Read", "Glob", "Grep")
WRITING = ("Read", "Write", "Edit")
CANARY = "CANARY"


@pytest.fixture(scope="module")
def files_server():
    with ClaudeServer() as server:
        yield server


def read(path):
    return "Read", {"file_path": str(path)}


def glob(pattern, **more):
    return "Glob", {"pattern": str(pattern), **more}


def grep(path, **more):
    return "Grep", {"pattern": CANARY, "path": str(path), "output_mode": "content", **more}


def write(path, text="written"):
    return "Write", {"file_path": str(path), "content": text}


def neighbours(home):
    """Two conversations, and links in the first one's folder to what is the second's."""
    ann, bob = home.session(), home.session()
    mine, theirs = home.workspace(ann), home.workspace(bob)
    (mine / "mine.txt").write_text("mine alone\n")
    (theirs / "theirs.txt").write_text(f"{CANARY} of another\n")
    (mine / "folder").symlink_to(theirs)
    (mine / "file").symlink_to(theirs / "theirs.txt")
    (mine / "nothing").symlink_to(theirs / "new.txt")
    (home.root / "store.txt").write_text(f"{CANARY} of the store\n")
    return ann, bob


def outside(home, mine, theirs):
    """Ways that lead out of a conversation's folder."""
    yield from map(read, (theirs / "theirs.txt", "/etc/passwd", home.root / "store.txt"))
    yield from map(read, ("/proc/self/environ", "/proc/self/cmdline", "/proc/1/environ"))
    yield from map(read, ("~/.claude.json", "~root/.bashrc", "$HOME/.bashrc", "/dev/stdin"))
    yield read(f"{mine}/../../{theirs.parent.name}/workspace/theirs.txt")
    yield read(f"../../{theirs.parent.name}/workspace/theirs.txt")
    yield read(f"/proc/self/root{theirs}/theirs.txt")
    yield read(f"/proc/self/cwd/../../{theirs.parent.name}/workspace/theirs.txt")
    yield read(f"{mine}/./folder//theirs.txt")
    yield from map(read, ("folder/theirs.txt", "file"))
    yield from (glob("*", path=str(path)) for path in (theirs, home.root, "folder", "/etc"))
    yield from map(glob, (theirs / "*", "../../*/workspace/*", "folder/*", "/etc/pass*", "~/*"))
    yield glob("{.,../..}/**/*.txt")
    yield from map(grep, (theirs, home.root, "../..", "folder", "file", "/proc/self/environ"))
    yield from (grep(".", glob=out) for out in ("../../**", f"{theirs}/*", "folder/*"))
    yield grep(".", glob="--follow")
    yield "Grep", {"pattern": "--follow", "path": "."}
    yield "Grep", {"pattern": "root", "path": "/etc/passwd", "output_mode": "content"}


async def test_what_reads_reads_the_conversations_folder(files_server):
    """D11: neither absolute paths, nor dots, links, homes or processes lead to what is another's."""
    async with house(files_server, tools=READING) as home:
        ann, bob = neighbours(home)
        mine, theirs = home.workspace(ann), home.workspace(bob)
        await home.say(bob, f"the {CANARY} of what was said")
        assert CANARY in (await home.call(bob, read("theirs.txt")))[0]
        said = len(home.bodies)
        inside = [read("mine.txt"), read(mine / "mine.txt"), glob("*.txt"), grep(".")]
        inside[-1][1]["pattern"] = "alone"
        for told in await home.call(ann, *inside):
            assert "mine" in told
        ways = list(outside(home, mine, theirs))
        for way, told in zip(ways, await home.call(ann, *ways), strict=True):
            assert not any(word in told for word in (CANARY, "root:", "HOME=", "theirs.txt:")), way
            assert told.startswith(REFUSED), (way, told)
        assert CANARY not in json.dumps([body["messages"][0] for body in home.bodies[said:]])


REFUSED = (
    '"Claude requested permissions to read from ',
    '"<tool_use_error>',
    '"File does not exist.',
    '"No files found',
    '"No matches found',
)


async def test_what_is_its_programs_own_is_not_read_either(files_server):
    """D11: neither keys nor settings, of whichever program; but for the own transcript."""
    async with house(files_server, tools=READING, settings={"env": {"ODD": CANARY}}) as home:
        ann, bob = home.session(), home.session()
        await home.say(ann, "hello")
        [own] = home.runs()
        await home.say(bob, "hello")
        [other] = home.runs() - {own}
        [mine], [theirs] = (list(run.rglob("*.jsonl")) for run in (own, other))
        keys = [path for run in (own, other) for path in run.rglob("*.key")]
        assert len(keys) == 2
        given = [run / name for run in (own, other) for name in ("settings.json", "instructions")]
        configs = [run / "config" / ".claude.json" for run in (own, other)]
        for told in await home.call(ann, *map(read, (theirs, *keys, *given, *configs))):
            assert told.startswith('"Claude requested permissions to read from ')
        assert "hello" in (await home.call(ann, read(mine)))[0]


async def test_edits_that_nobody_is_asked_about_stay_in_the_folder(files_server):
    """D11: and leave what a program or git would run."""
    changes = {"tools": WRITING, "permission_mode": "acceptEdits"}
    async with house(files_server, **changes) as home:
        ann, bob = neighbours(home)
        mine, theirs = home.workspace(ann), home.workspace(bob)
        [told] = await home.call(ann, write(mine / "new.txt"))
        assert "created" in told
        assert (mine / "new.txt").read_text() == "written"
        before = contents(home.root, mine)
        ways = [
            *map(write, (theirs / "x", home.root / "x", "../x", "folder/x", "file", "nothing")),
            *(write(mine / path) for path in LOADED),
            read(mine / "file"),
            ("Edit", {"file_path": "file", "old_string": CANARY, "new_string": "changed"}),
        ]
        refusals = "requested permissions", "tool_use_error", "it is a symbolic link"
        for way, told in zip(ways, await home.call(ann, *ways), strict=True):
            assert any(refusal in told for refusal in refusals), (way, told)
        assert contents(home.root, mine) == before
        assert not any((mine / path).exists() for path in LOADED)


LOADED = (
    ".claude/settings.json",
    ".claude/settings.local.json",
    ".claude/agents/x.md",
    ".claude/commands/x.md",
    ".mcp.json",
    ".git/config",
    ".git/hooks/pre-commit",
    ".bashrc",
    ".gitconfig",
)
"""What some program reads from a folder, and then runs something."""


def contents(root, but):
    """What is in the data directory, except in programs' own folders and the one that may change."""
    found = (path for path in root.rglob("*") if path.is_file() and "runs" not in path.parts)
    return {path: path.read_text() for path in found if but not in path.parents}


async def test_edits_are_asked_about_by_default(files_server):
    """D9, D11: one at a time, and nothing is written before."""
    async with house(files_server, tools=WRITING) as home:
        ann = home.session()
        asked = await home.asks(ann, write(home.workspace(ann) / "new.txt"))
        assert asked.tool == "Write"
        assert not (home.workspace(ann) / "new.txt").exists()


async def test_a_read_that_is_allowed_reads_all_that_the_gateway_can(files_server):
    """D11: as the table of what people can reach says."""
    async with house(files_server, tools=READING, allow=("Read",)) as home:
        ann, bob = neighbours(home)
        ways = read(home.workspace(bob) / "theirs.txt"), read("/etc/passwd")
        theirs, users = await home.call(ann, *ways)
        assert CANARY in theirs
        assert "root:" in users


async def test_folders_that_are_added_are_everybodys(files_server, tmp_path):
    """D11: and nothing else beside the conversation's own."""
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / "both.txt").write_text("for all")
    (tmp_path / "beside.txt").write_text(CANARY)
    async with house(files_server, tools=READING, add_dirs=(tmp_path / "shared",)) as home:
        ways = read(tmp_path / "shared" / "both.txt"), read(tmp_path / "beside.txt")
        ways += (read(tmp_path / "shared" / ".." / "beside.txt"),)
        shared, *others = await home.call(home.session(), *ways)
        assert "for all" in shared
        assert all("requested permissions" in told for told in others)
