"""Formatting that models write, and what is left of it when a platform does not take it."""

import re

import pytest

from core.screens.bots import PERSON, bot_of, formatted, refusing
from core.screens.discord import DiscordLike
from core.screens.showing import SCREENS, answered, code_of, saying, states
from core.screens.slack import SlackLike

pytestmark = pytest.mark.anyio

LINKS = (
    "See <https://example.com/doc|the document>.\n"
    "- <https://example.com/x|Ticket 1> done\n"
    "- [Ticket 2](https://example.com/y_(v2)) open"
)


async def test_fc_mkd_01_links_of_both_kinds_arrive_at_slack():
    """FC-MKD-01: mixed into Markdown, in and outside of lists, with brackets in the address."""
    screen = SlackLike()
    assert states(await answered(screen, saying(LINKS))) == {"delivered"}
    [payload] = screen.payloads
    assert payload["text"] == (
        "See <https://example.com/doc|the document>.\n"
        "- <https://example.com/x|Ticket 1> done\n"
        "- <https://example.com/y_(v2)|Ticket 2> open"
    )
    assert screen.seen() == ["See the document.\n- Ticket 1 done\n- Ticket 2 open"]


async def test_fc_mkd_01_links_of_both_kinds_arrive_where_slack_reads_markdown():
    screen = SlackLike(style="markdown")
    assert states(await answered(screen, saying(LINKS))) == {"delivered"}
    [payload] = screen.payloads
    found = re.findall(r"\[([^]]+)\]\((\S+)\)(?=[ .])", payload["blocks"][0]["text"])
    assert found == [
        ("the document", "https://example.com/doc"),
        ("Ticket 1", "https://example.com/x"),
        ("Ticket 2", "https://example.com/y_(v2)"),
    ]


ROWS = "| item | link |\n|---|---|\n| a | [open](https://example.com/a) |"
QUOTED = "Quoted user text: <!channel> <@U00000001> <!subteam^S1>"
REPORT = f"{ROWS}\n\n{QUOTED}"


@pytest.mark.parametrize("style", ["text", "section", "markdown"])
async def test_fc_mkd_02_nobody_at_slack_is_called_by_a_quoted_text(style):
    """FC-MKD-02: and the table keeps its link."""
    screen = SlackLike(style=style)
    assert states(await answered(screen, saying(REPORT))) == {"delivered"}
    [payload] = screen.payloads
    assert "<!" not in str(payload)
    assert "<@" not in str(payload)
    assert "https://example.com/a" in str(payload)
    table = ROWS if style == "markdown" else f"```\n{ROWS}\n```"
    assert screen.seen() == [f"{table}\n\n{QUOTED}"]


async def test_fc_mkd_02_a_table_is_readable_at_discord_and_nobody_is_called():
    screen = DiscordLike()
    text = f"{REPORT} @everyone"
    assert states(await answered(screen, saying(text))) == {"delivered"}
    [payload] = screen.payloads
    assert payload["allowed_mentions"] == {"parse": []}
    assert screen.seen() == [f"```\n{ROWS}\n```\n\n{QUOTED} @everyone"]
    assert code_of(screen.seen()[0]) == [("", f"{ROWS}\n")]


async def test_fc_mkd_02_a_table_is_readable_at_telegram(fake):
    async with bot_of(fake, saying(REPORT)) as stage:
        fake.say(PERSON, PERSON, "go")
        await fake.reached(lambda: fake.said_by_bot(PERSON))
        await stage.until_final()
    [seen] = fake.said_by_bot(PERSON)
    assert "https://example.com/a" in seen
    assert QUOTED in seen.replace("\N{WORD JOINER}", "")  # it keeps names from calling people
    entities = fake.calls_of("sendMessage")[-1].result["entities"]
    assert "pre" in {entity["type"] for entity in entities}


STEP = "Sure! Step 1 - done. See a_b_c (x)."


async def test_fc_mkd_03_what_telegram_does_not_parse_is_sent_as_it_was_written(fake):
    """FC-MKD-03: once more, without formatting and without escapes."""
    fake.on_call(refusing(formatted, "can't parse entities: can't find end of the entity"))
    text = f"{STEP} And **bold**!"
    async with bot_of(fake, saying(text)) as stage:
        fake.say(PERSON, PERSON, "go")
        await fake.reached(lambda: fake.said_by_bot(PERSON))
        await stage.until_final()
        assert await stage.states("deliveries") == ["delivered"]
    [seen] = fake.said_by_bot(PERSON)
    assert seen.replace("**", "") == text.replace("**", "")
    calls = fake.calls_of("sendMessage")
    assert len(calls) <= 2
    assert not formatted(calls[-1])
    assert "\\" not in calls[-1].params["text"]


@pytest.mark.parametrize("name", SCREENS)
async def test_fc_mkd_03_refused_formatting_is_sent_once_more_as_it_was_written(name):
    screen = SCREENS[name]()
    codes = {"discord": "50035 content", "slack": "invalid_blocks"}
    code = codes.get(name, "can't parse entities")
    screen.refuses = lambda _, __, message: "" if message.plain else code
    assert states(await answered(screen, saying(f"{STEP} a < b & c"))) == {"delivered"}
    assert screen.seen() == [f"{STEP} a < b & c"]
    assert [call.plain for call in screen.log] == [False, True]


SNAKE = "Column **antique_identifier** and `half code and *star"


async def test_fc_mkd_04_half_open_marks_cost_no_answer_at_telegram(fake):
    """FC-MKD-04: the server reads entities as strictly as Telegram does."""
    async with bot_of(fake, saying(SNAKE)) as stage:
        fake.say(PERSON, PERSON, "go")
        await fake.reached(lambda: fake.said_by_bot(PERSON))
        await stage.until_final()
        assert await stage.states("deliveries") == ["delivered"]
    [seen] = fake.said_by_bot(PERSON)
    assert seen.replace("**", "") == SNAKE.replace("**", "")
    assert len(fake.calls_of("sendMessage", "editMessageText")) <= 2


@pytest.mark.parametrize("name", SCREENS)
async def test_fc_mkd_04_half_open_marks_cost_no_answer(name):
    screen = SCREENS[name]()
    assert states(await answered(screen, saying(SNAKE))) == {"delivered"}
    assert screen.calls == ["send"]
    bold = "*antique_identifier*" if name == "slack" else "**antique_identifier**"
    assert screen.seen() == [f"Column {bold} and `half code and *star"]
