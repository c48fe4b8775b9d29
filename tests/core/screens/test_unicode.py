"""Texts that no encoder takes, from models, tools and people."""

import random

import pytest

from core.screens.showing import SCREENS, answered, ledger_after, plugin_of, states, streaming
from dragoman import Finished, Notice, NotSent, TextDelta, ToolFinished, ToolProgress, ToolStarted
from dragoman.render.text import sanitise
from dragoman.testing import ScriptedRuntime, VirtualClock
from lives import wreck
from stage import gateway

pytestmark = pytest.mark.anyio

ALPHABET = [
    *map(chr, range(0x7F)),
    *map(chr, range(0xD7F0, 0xE010, 5)),
    "\ud83c",
    "\udf78",
    "\u202e",
    "\u0301",
    "\u200d",
    "字",
    "\U0001f378",
    "\U0010ffff",
]


@pytest.mark.parametrize("name", SCREENS)
@pytest.mark.parametrize(
    ("deltas", "seen", "every"),
    [
        (["ok \ud83c", "\udf78 done"], "ok \U0001f378 done", 0.1),
        (["ok \ud83c", "\udf78 done"], "ok \U0001f378 done", 4),
        (["bad \udc88 end"], "bad \ufffd end", 4),
        (["a\x00b e\u0301 \u202e"], "ab e\u0301 \u202e", 4),
    ],
    ids=["pair", "slow", "half", "nul"],
)
async def test_fc_i18_01_halves_are_joined_or_replaced_before_anybody_sees_them(
    name, deltas, seen, every
):
    """FC-I18-01: also where previews come between the halves; nothing else changes."""
    screen = SCREENS[name]()
    ledger = await answered(screen, streaming(screen.clock, deltas, every=every), seconds=30)
    assert screen.seen() == [seen]
    assert states(ledger) == {"delivered"}
    for text in (text for message in screen.messages for text in message.texts):
        text.encode()


@pytest.mark.parametrize("name", SCREENS)
async def test_fc_i18_01_what_tools_say_harms_nothing(name):
    screen = SCREENS[name]()

    async def script(request, host):
        yield ToolStarted("1", "bin\x00ary\udc88")
        yield ToolProgress("1", "half \x00 \udc88 way")
        await screen.clock.sleep(4)
        yield ToolFinished("1", "bin\x00ary\udc88")
        yield Notice("note \x00 \udc88")
        await screen.clock.sleep(4)
        yield TextDelta("1", "done")
        yield Finished()

    ledger = await answered(screen, script, seconds=30)
    assert screen.seen() == ["done"]
    assert states(ledger) == {"delivered"}
    for text in (text for message in screen.messages for text in message.texts):
        text.encode()
        assert "\x00" not in text


@pytest.mark.parametrize("name", SCREENS)
async def test_fc_i18_01_any_text_is_stored_loaded_and_sent(name, tmp_path):
    """FC-I18-01: what people wrote comes back as an answer, by way of the file and a restart."""
    chance = random.Random(name)
    texts = ["x" + "".join(chance.choices(ALPHABET, k=60)) + "x" for _ in range(30)]
    texts[0] = "a\x00b\u202ec"

    async def down(method, address, message):
        raise NotSent("down")

    screen = SCREENS[name](bears=None, before=down)
    file = tmp_path / "store.db"
    plugin = plugin_of(screen, ScriptedRuntime().script)
    async with gateway(plugin, clock=screen.clock, store=file) as stage:
        for number, text in enumerate(texts):
            await screen.say(text, channel=str(number))
        await ledger_after(stage, 5)
        left = wreck(file, plugin)
    again, clock = left.platform, VirtualClock()
    again.bears, again.clock = None, clock
    async with gateway(left.plugin, clock=clock, store=left.store) as stage:
        assert states(await ledger_after(stage, 90)) == {"delivered"}
        seen = [again.seen(str(number)) for number in range(len(texts))]
        assert seen == [[sanitise(text)] for text in texts]
