"""Long answers as people see them, part after part."""

import ast
from pathlib import Path

import attrs
import pytest

from core.screens.discord import DiscordLike
from core.screens.screen import Screen
from core.screens.showing import (
    PARSER,
    SCREENS,
    answered,
    code_of,
    saying,
    states,
    streaming,
    within,
)
from core.screens.slack import SlackLike
from core.screens.telegram import TelegramLike
from dragoman import (
    LengthUnit,
    PlainDialect,
)
from stage import can

pytestmark = pytest.mark.anyio

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.timeout(20)
@pytest.mark.parametrize("make", [TelegramLike, DiscordLike, lambda: SlackLike(style="section")])
async def test_fc_spl_01_one_endless_line_of_code_is_shown_whole(make):
    """FC-SPL-01: with limits of 4096, 2000 and 3000."""
    screen = make()
    ledger = await answered(screen, saying("```\n" + "A" * 9000 + "\n```\n"))
    seen = screen.seen()
    assert all(part.startswith("```\nA") and part.endswith("A\n```") for part in seen)
    assert "".join(part[4:-4] for part in seen) == "A" * 9000
    assert all(part.count("```") == 2 for part in seen)
    assert within(screen, screen.shown())
    assert len(seen) <= 4 * 9000 / screen.capabilities.max_text + 8
    assert states(ledger) == {"delivered"}
    assert screen.refused("50035 content", "invalid_blocks", "message is too long") == []


CODE = "x = 1\n" * 300
FENCED = "Intro " * 500 + "\n```python\n" + CODE + "```\nTail **bold** text."


@pytest.mark.parametrize("name", SCREENS)
@pytest.mark.parametrize("live", [False, True])
async def test_fc_spl_02_a_block_is_whole_in_the_messages_that_show_it(name, live):
    """FC-SPL-02: it keeps its language, and what follows it is not code."""
    screen = SCREENS[name]()
    pieces = [FENCED[at : at + 97] for at in range(0, len(FENCED), 97)]
    script = streaming(screen.clock, pieces) if live else saying(FENCED)
    assert states(await answered(screen, script)) == {"delivered"}
    seen = screen.seen()
    blocks = [block for part in seen for block in code_of(part)]
    assert blocks == [("python", CODE)]  # a short block moves whole
    prose = " ".join(part.partition("```")[0].strip() for part in seen)
    assert prose.split() == ["Intro"] * 500
    tail = "Tail *bold* text." if name == "slack" else "Tail **bold** text."
    assert seen[-1].endswith(f"\n```\n{tail}")
    assert code_of(seen[-1].rpartition("```\n")[2]) == []
    assert "bold</" in PARSER.render(seen[-1])
    assert within(screen, screen.shown())


@pytest.mark.parametrize("name", SCREENS)
async def test_fc_spl_02_a_block_that_is_too_long_is_opened_again_with_its_language(name):
    screen = SCREENS[name]()
    screen.capabilities = attrs.evolve(screen.capabilities, max_text=700)
    assert states(await answered(screen, saying(FENCED))) == {"delivered"}
    blocks = [block for part in screen.seen() for block in code_of(part)]
    assert len(blocks) > 2
    assert {language for language, _ in blocks} == {"python"}
    assert "".join(code for _, code in blocks) == CODE
    assert all(part.count("```") in (0, 2) for part in screen.seen())
    assert code_of(screen.seen()[-1].rpartition("```\n")[2]) == []


class Taking(Screen):
    """Takes whatever it is given."""

    def look(self, method, message, text):
        pass


TABLE = "```\n" + "".join(f"| {n:04} | {'x' * 20} |\n" for n in range(228)) + "```"


@pytest.mark.parametrize("limit", [500, 40_000])
async def test_fc_spl_03_each_platform_gets_parts_for_its_own_limit(limit):
    """FC-SPL-03: and the adapter has nothing left to cut."""
    screen = Taking(capabilities=can(max_text=limit, dialect=PlainDialect(LengthUnit.UTF16)))
    await answered(screen, saying(TABLE))
    seen = screen.seen()
    assert len(TABLE) > 7000
    assert "".join(content for part in seen for _, content in code_of(part)) == TABLE[4:-3]
    assert all(len(code_of(part)) == 1 for part in seen)
    if limit == 40_000:
        assert seen == [TABLE]
    else:
        assert all(limit * 0.8 < len(part) <= limit for part in seen[:-1])


def test_fc_spl_03_one_place_cuts_texts_and_by_no_number_of_its_own():
    """FC-SPL-03: of all that lies between an answer and the wire."""
    core = ROOT / "core/src/dragoman"
    users = [
        path.relative_to(core).as_posix()
        for path in core.rglob("*.py")
        if "dragoman.render.split import" in path.read_text()
    ]
    assert users == ["flow/parts.py"]
    folders = [core / "flow", core / "outbox", core / "render", *ROOT.glob("plugins/*/src")]
    cuts = [
        f"{path}:{node.lineno}"
        for folder in folders
        for path in folder.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Slice) and any(map(_is_long, (node.lower, node.upper)))
    ]
    assert cuts == []


def _is_long(bound):
    """Whether a bound of a slice is a number as platforms have them for the length of a text."""
    return isinstance(bound, ast.Constant) and isinstance(bound.value, int) and bound.value >= 256


EMOJI = "\U0001f600" * 5000


@pytest.mark.parametrize("path", ["send", "edit", "fallback"])
async def test_fc_spl_04_emoji_are_counted_as_the_platform_counts_them(path):
    """FC-SPL-04: on the ordinary way, in a stream, and when formatting was refused."""
    screen = TelegramLike()
    screen.capabilities = attrs.evolve(screen.capabilities, max_text=3996)
    if path == "fallback":
        screen.refuses = lambda _, __, message: "" if message.plain else "can't parse entities"
    script = saying(EMOJI)
    if path == "edit":
        script = streaming(screen.clock, [EMOJI[at : at + 100] for at in range(0, 5000, 100)])
    assert states(await answered(screen, script)) == {"delivered"}
    seen = screen.seen()
    assert max(len(part.encode("utf-16-le")) // 2 for part in seen) <= 3996
    assert "".join(seen) == EMOJI
    assert screen.refused("message is too long") == []
    assert ("edit" in screen.calls) == (path == "edit")
