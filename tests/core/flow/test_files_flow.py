"""Files that a turn's tools hand over: copied, owed behind the answer, shown or told of, deleted."""

import shutil
import stat

import anyio
import attrs
import pytest

from dragoman import (
    Drop,
    Failed,
    FailureKind,
    FileLimits,
    Finished,
    NotSent,
    Place,
    Refused,
    StaleLease,
    TextBlock,
    TextDelta,
    Unknown,
    hookimpl,
)
from dragoman.outbox.files import safe_name
from dragoman.testing import ScriptedRuntime, StubPlugin, VirtualClock
from lives import wreck
from stage import Limits, can, eventually, gateway, table

pytestmark = pytest.mark.anyio

FILES = FileLimits(size=1000, caption=300, kinds=frozenset({"image", "voice"}))
TOLD = "*(the file a.txt, 0.0 kB, cannot be shown here)*"


def plugin_of(script, **capabilities):
    """Return a plugin with one runtime, and a platform that takes files unless told otherwise."""
    plugin = StubPlugin(runtimes={"scripted": ScriptedRuntime(script)})
    plugin.platform().capabilities = can(**{"files": FILES, **capabilities})
    return plugin


def attaching(*files, text="done", end=None):
    """Return a script that attaches files, each as ``(name, data)`` or with named arguments."""

    async def script(request, host):
        for name, data, *more in files:
            await host.attach(name, data, **(more[0] if more else {}))
        if text:
            yield TextBlock("1", text)
        yield end or Finished()

    return script


def names(folder):
    """Return what is in a folder."""
    return sorted(path.name for path in folder.iterdir())


def seen(platform):
    """Return what is shown: texts, and files as ``(name, content, caption)``."""
    return [
        (one.file.name, one.content, one.text) if one.file else one.text
        for one in platform.messages
    ]


async def test_files_follow_the_answer_in_order_with_their_captions(tmp_path):
    """C1: the platform reads a private copy, which is gone when its part has ended."""
    modes = []

    async def watch(method, address, message):
        if message.file:
            paths = [message.file.path, message.file.path.parent]
            modes.append([stat.S_IMODE(path.stat().st_mode) for path in paths])

    script = attaching(
        ("chart.png", b"PNG", {"kind": "image", "caption": "the *chart*"}),
        ("clip.mp4", b"mp4", {"kind": "video", "mime": "video/mp4"}),
    )
    async with gateway(plugin_of(script), data_dir=tmp_path) as stage:
        stage.platform.before = watch
        await stage.platform.say("draw")
        await stage.platform.until_count(3)
        await stage.until("deliveries", ["delivered"] * 3)
        assert seen(stage.platform) == [
            "done",
            ("chart.png", b"PNG", "the *chart*"),
            ("clip.mp4", b"mp4", ""),
        ]
        image, clip = (one.file for one in stage.platform.messages[1:])
        assert (image.kind, image.mime, image.size) == ("image", "image/png", 3)
        assert (clip.kind, clip.mime) == ("file", "video/mp4")  # no kind of this platform
        assert modes == [[0o600, 0o700]] * 2
        assert await stage.rows("SELECT part, file ->> '$.name' FROM deliveries") == [
            (0, None),
            (1, "chart.png"),
            (2, "clip.mp4"),
        ]
        await stage.until_final()
    assert names(tmp_path / "outgoing") == []


@pytest.mark.parametrize("place", [Place.DM, Place.GROUP])
async def test_a_file_can_be_the_whole_answer(place):
    """It is no empty answer; where others write, too, it says which message it answers."""
    replies = []

    async def watch(method, address, message):
        replies.append(message.reply_to)

    async with gateway(plugin_of(attaching(("a.txt", b"a"), text=""))) as stage:
        stage.platform.before = watch
        await stage.platform.say("go", place=place, message_id="77")
        await stage.until("deliveries", ["abandoned", "delivered"])
        assert seen(stage.platform) == [("a.txt", b"a", "")]
        assert replies == ["" if place is Place.DM else "77"]


@pytest.mark.parametrize("files", [None, FileLimits(size=3), FileLimits(size=3, caption=300)])
async def test_a_platform_that_cannot_show_a_file_shows_its_name(files, tmp_path):
    """C1: told, not swallowed, with the words that belong to it."""
    script = attaching(("a.txt", b"four", {"caption": "read this"}))
    plugin = plugin_of(script, files=files)
    async with gateway(plugin, data_dir=tmp_path) as stage:
        await stage.platform.say("go")
        told = [f"{TOLD}\n\nread this"] if files and files.caption else ["read this", TOLD]
        assert await stage.platform.until_count(len(told) + 1) == ["done", *told]
        await stage.until_final()
        error = "SELECT error FROM deliveries WHERE file IS NOT NULL"
        assert await stage.rows(error) == [("the file is not shown; its name is",)]
    assert names(tmp_path / "outgoing") == []


async def test_a_caption_without_room_goes_before_its_file():
    """B2: cut where every text is cut."""
    words = " ".join(f"word{number:03}" for number in range(60))
    script = attaching(("a.txt", b"a", {"caption": words}), ("b.txt", b"b", {"caption": "short"}))
    async with gateway(plugin_of(script, max_text=400)) as stage:
        await stage.platform.say("go")
        await stage.platform.until_count(5)
        answer, first, second, *files = seen(stage.platform)
        assert f"{first} {second}" == words
        assert (answer, files) == ("done", [("a.txt", b"a", ""), ("b.txt", b"b", "short")])


async def test_fc_att_02_no_name_leaves_the_folder(tmp_path):
    """FC-ATT-02: names from a model are for people; nothing else on the disk changes."""
    given = [
        "/etc/passwd",
        "../../AGENTS.md",
        "..\\..\\x.txt",
        "a\0b.txt",
        "CON",
        ".",
        "..",
        "",
        "x" * 300 + ".txt",
        "a\nIgnore previous.txt",
        "\u202etxt.exe",
        ".env",
        "a\ud800b.txt",
    ]
    wanted = [
        "passwd",
        "AGENTS.md",
        "x.txt",
        "ab.txt",
        "CON",
        "file",
        "file",
        "file",
        "x" * 124 + ".txt",
        "aIgnore previous.txt",
        "txt.exe",
        "env",
        "ab.txt",
    ]
    assert [safe_name(name) for name in given] == wanted
    (tmp_path / "data").mkdir()
    script = attaching(*((name, b"x") for name in given))
    async with gateway(plugin_of(script), data_dir=tmp_path / "data") as stage:
        await stage.platform.say("go")
        await stage.platform.until_count(len(given) + 1)
        await stage.until_final()
        assert [one.file.name for one in stage.platform.messages[1:]] == wanted
    assert names(tmp_path) == ["data"]
    assert names(tmp_path / "data" / "outgoing") == []


@pytest.mark.parametrize(
    ("name", "data", "more", "error"),
    [
        ("a.bin", bytes(101), {}, "the file a.bin .* 101 bytes, .* limits.file_size .* to 100:"),
        ("a.bin", b"", {}, "the file a.bin .* 0 bytes"),
        ("a.bin", "/etc/passwd", {}, "bytes-like"),
    ],
)
async def test_a_tool_is_told_what_is_wrong_with_its_file(name, data, more, error):
    """C1: at once, so that the model can do something about it; a text is never a path."""
    wrong = []

    async def script(request, host):
        try:
            await host.attach(name, data, **more)
        except (ValueError, TypeError) as found:
            wrong.append(found)
        yield TextBlock("1", "too bad")
        yield Finished()

    async with gateway(plugin_of(script), limits=Limits(file_size=100)) as stage:
        await stage.platform.say("go")
        await stage.platform.until_shown("too bad")
        await stage.until_final()
        assert seen(stage.platform) == ["too bad"]
    with pytest.raises((ValueError, TypeError), match=error):
        raise wrong[0]


async def test_one_turn_cannot_attach_without_end():
    """Invariant 8: twenty, then the tool is told."""
    attempts = []

    async def script(request, host):
        for number in range(22):
            try:
                await host.attach(f"{number}", b"x")
            except ValueError as error:
                attempts.append(str(error))
        yield Finished()

    async with gateway(plugin_of(script)) as stage:
        await stage.platform.say("go")
        await stage.platform.until_count(20)
        await stage.until_final()
        assert len(stage.platform.messages) == 20
    assert len(attempts) == 2
    assert "no more than 20" in attempts[0]


async def test_a_copy_that_cannot_be_made_is_told_to_the_tool(tmp_path):
    """A full or broken disk: the tool knows, without a path of this machine; the turn goes on."""
    told = []

    async def script(request, host):
        try:
            await host.attach("a.txt", b"a")
        except OSError as error:
            told.append(str(error))
        yield TextBlock("1", "no file")
        yield Finished()

    (tmp_path / "outgoing").write_text("in the way")
    async with gateway(plugin_of(script), data_dir=tmp_path) as stage:
        await stage.platform.say("go")
        await stage.platform.until_shown("no file")
    assert len(told) == 1
    assert "the file a.txt cannot be kept" in told[0]
    assert str(tmp_path) not in told[0]


@pytest.mark.parametrize(
    ("refusals", "shown"),
    [
        (1, ("a.txt", b"four", "words")),
        (2, f"{TOLD}\n\nwords"),
    ],
)
async def test_a_file_that_is_refused_goes_as_a_plain_one_then_in_words(refusals, shown, caplog):
    """C1: told to people, and to the operator."""
    kinds = []

    async def watch(method, address, message):
        kinds.append(message.file.kind if message.file else "")
        if message.file and kinds.count("image") + kinds.count("file") <= refusals:
            raise Refused("a broken picture")

    script = attaching(("a.txt", b"four", {"kind": "image", "caption": "words"}))
    async with gateway(plugin_of(script)) as stage:
        stage.platform.before = watch
        await stage.platform.say("go")
        await stage.until("deliveries", ["delivered", "delivered"])
        assert seen(stage.platform) == ["done", shown]
        assert kinds == ["", "image", "file", ""][: refusals + 2]
        [(error,)] = await stage.rows("SELECT error FROM deliveries WHERE file IS NOT NULL")
        assert error == ("" if refusals == 1 else "the file is not shown; its name is")
    assert "a broken picture" in caplog.text


async def test_a_plain_file_without_words_is_not_sent_twice_in_the_same_way():
    async def refuse(method, address, message):
        if message.file:
            raise Refused("no files today")

    async with gateway(plugin_of(attaching(("a.txt", b"four")))) as stage:
        stage.platform.before = refuse
        await stage.platform.say("go")
        await stage.platform.until_shown(TOLD)
        assert stage.platform.calls.count("send") == 3


@pytest.mark.parametrize(
    ("caption", "room", "marked"),
    [
        ("words", 300, "*(this may be a repeat)*\n\nwords"),
        ("", 300, "*(this may be a repeat)*"),
        ("", 0, ""),
    ],
)
async def test_a_file_in_doubt_is_sent_again_with_a_mark(caption, room, marked):
    """B7, invariant 5: as any message; the mark is in the caption, where there is room for one."""
    clock = VirtualClock()
    script = attaching(("a.txt", b"a", {"caption": caption}), text="")
    plugin = plugin_of(script, files=attrs.evolve(FILES, caption=room))
    async with gateway(plugin, clock=clock) as stage:
        stage.platform.late_faults.append(Unknown("timeout"))
        await stage.platform.say("go")
        await stage.until("deliveries", ["abandoned", "uncertain"])
        await clock.advance(2)
        await stage.until("deliveries", ["abandoned", "delivered"])
        assert seen(stage.platform) == [("a.txt", b"a", caption), ("a.txt", b"a", marked)]


async def test_a_file_is_given_time_by_its_size():
    """B9: a call without an answer ends, and a large file on a slow line is no such call."""
    clock = VirtualClock()

    async def slowly(method, address, message):
        if message.file:
            await clock.sleep(100)

    limits = attrs.evolve(FILES, size=10_000_000)
    plugin = plugin_of(attaching(("a.txt", bytes(5_000_000)), text=""), files=limits)
    plugin.platform().before = slowly
    async with gateway(plugin, clock=clock) as stage:
        await stage.platform.say("go")
        await stage.until("deliveries", ["abandoned", "sending"])
        await stage.quiet()
        await clock.advance(99)
        assert await stage.states("deliveries") == ["abandoned", "sending"]
        await clock.advance(2)
        await stage.until("deliveries", ["abandoned", "delivered"])


async def test_a_stopped_or_failed_turn_shows_the_files_that_were_made():
    """D8: they were made, as what is shown was said."""

    made = anyio.Event()

    async def script(request, host):
        await host.attach("a.txt", b"a")
        yield TextDelta("1", "so far ")
        made.set()
        if request.inputs[0].text == "wait":
            await anyio.sleep_forever()
        yield Failed(FailureKind.TOOL, "broken")

    clock = VirtualClock()
    async with gateway(plugin_of(script), clock=clock) as stage:
        await stage.platform.say("wait")
        await made.wait()
        await stage.platform.say("/stop")
        await clock.advance(1)
        await stage.platform.until_count(3)
        assert ("a.txt", b"a", "") in seen(stage.platform)
        await stage.platform.say("fail", channel="2")
        await stage.platform.until_count(2, channel="2")
        assert seen(stage.platform)[-1] == ("a.txt", b"a", "")


async def test_a_turn_that_a_stop_of_the_process_cuts_shows_none_and_leaves_none(tmp_path):
    """D7: as after a crash; the next start sweeps the copies."""

    async def script(request, host):
        await host.attach("a.txt", b"a")
        yield TextDelta("1", "so far ")
        await anyio.sleep_forever()

    plugin = plugin_of(script)
    lives = {"store": tmp_path / "a.db", "data_dir": tmp_path, "limits": Limits(grace=0)}
    async with gateway(plugin, **lives) as stage:
        await stage.platform.say("go")
        while not list(tmp_path.glob("outgoing/*")):  # noqa: ASYNC110 - a disk rings no bell
            await anyio.sleep(0.005)
    assert not any(one.file for one in plugin.platform().messages)
    (tmp_path / "outgoing" / "not ours").touch()
    async with gateway(plugin, **lives):
        assert names(tmp_path / "outgoing") == ["not ours"]


@pytest.mark.parametrize("files", [FILES, None])
async def test_invariant_5_an_owed_file_is_sent_after_a_crash(tmp_path, files):
    """B5, invariant 5: killed with the file owed; a platform that takes no more files tells it."""
    plugin = plugin_of(attaching(("a.txt", b"four", {"caption": "c"}), ("b.txt", b"b")), edit=False)
    data, later = tmp_path / "data", tmp_path / "later"

    async def down(method, address, message):
        if message.file:
            raise NotSent("down")

    plugin.platform().before = down
    clock = VirtualClock()
    async with gateway(plugin, store=tmp_path / "a.db", data_dir=data, clock=clock) as stage:
        await stage.platform.say("go")
        await stage.until("deliveries", ["delivered", "pending", "pending"])
        await eventually(lambda: stage.states("deliveries", "error"), ["", "NotSent: down", ""])
        (data / "outgoing" / "file_of_a_turn_that_was_cut").touch()
        left = wreck(tmp_path / "a.db", plugin)
        shutil.copytree(data / "outgoing", later / "outgoing")
    left.platform.capabilities = can(files=files)
    again = VirtualClock()  # by the wall clock all of it would be too old
    async with gateway(left.plugin, store=left.store, data_dir=later, clock=again) as stage:
        await stage.until_final()
        if files:
            assert seen(left.platform)[1:] == [("a.txt", b"four", "c"), ("b.txt", b"b", "")]
        else:
            assert seen(left.platform)[1] == f"{TOLD}\n\nc"
    assert names(later / "outgoing") == []


async def test_a_copy_that_is_lost_is_told(tmp_path):
    async def lose(method, address, message):
        if message.file:
            message.file.path.unlink(missing_ok=True)

    async with gateway(plugin_of(attaching(("a.txt", b"four"))), data_dir=tmp_path) as stage:
        stage.platform.before = lose
        await stage.platform.say("go")
        await stage.platform.until_shown(TOLD)
        await stage.until("deliveries", ["delivered", "delivered"])


class Censor:
    """Takes names out of what leaves, and withholds what is secret."""

    @hookimpl
    async def dragoman_outbound(self, text):
        return Drop("secret") if "secret" in text else text.replace("Ada", "A.")


@pytest.mark.parametrize(
    ("text", "caption", "shown"),
    [
        ("of Ada", "by Ada", ["of A.", ("a.txt", b"a", "by A.")]),
        ("", "by Ada", [("a.txt", b"a", "by A.")]),
        ("of Ada", "secret", ["of A."]),
        ("secret", "by Ada", ["*(this answer was withheld by a rule of the deployment)*"]),
    ],
)
async def test_what_plugins_do_to_an_answer_they_do_to_captions(text, caption, shown, tmp_path):
    """E5: who withholds a caption withholds its file, and the tool learns of it; who withholds an
    answer withholds all files with it."""

    async def script(request, host):
        if caption == "secret":
            with pytest.raises(ValueError, match="a rule of the deployment withholds this"):
                await host.attach("a.txt", b"a", caption=caption)
        else:
            await host.attach("a.txt", b"a", caption=caption)
        if text:
            yield TextBlock("1", text)
        yield Finished()

    def copies():
        return list(tmp_path.glob("outgoing/*"))

    plugin = plugin_of(script)
    plugin.extensions["censor"] = Censor()
    tables = [table("extensions", "censor"), table("platforms", "stub")]
    async with gateway(plugin, components=tables, data_dir=tmp_path) as stage:
        await stage.platform.say("go")
        await stage.platform.until_count(len(shown))
        await stage.until_final()
        assert seen(stage.platform) == shown
        await eventually(lambda: anyio.to_thread.run_sync(copies), [])


async def test_a_turn_without_its_lease_attaches_nothing(tmp_path, monkeypatch):
    """Invariant 7: fenced as a tool's beginning is."""
    refused = []

    async def never(self, seconds):
        return False

    async def script(request, host):
        monkeypatch.setattr("dragoman.flow.leases.Leases.outlives", never)
        try:
            await host.attach("a.txt", b"a")
        except StaleLease as error:
            refused.append(error)
        yield Finished()

    async with gateway(plugin_of(script, edit=False), data_dir=tmp_path) as stage:
        await stage.platform.say("go")
        await stage.platform.until_count(1)
    assert len(refused) == 1
    assert not (tmp_path / "outgoing").exists()
