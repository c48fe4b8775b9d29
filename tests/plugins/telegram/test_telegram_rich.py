"""Rich messages: which texts become one, what the server is asked for, and what it may refuse."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest

from dragoman import Address, Button, Gone, Outbound, Place, Refused, Unauthorized, Unknown
from dragoman_telegram.dialect import TelegramDialect
from dragoman_telegram.platform import Telegram
from dragoman_telegram.richtext import each, read
from peers.telegram_fake import Reply, TelegramFake

pytestmark = pytest.mark.anyio
OpenBot = Callable[..., AbstractAsyncContextManager[Telegram]]
ADA = 700000001
DM = Address("telegram", str(ADA))
GROUP = Address("telegram", "-1500000001", place=Place.GROUP)
DIALECT = TelegramDialect.load(rich=True)

EVERYTHING = """\
# Title *one*

Plain **bold *both*** ~~s~~ `code` $x^2$ [l](https://a.example/b) @ada <b>html</b>
next line, ![a chart](https://pictures.example/p.png)

| a | b |
|:--|--:|
| 1 | **2** |
| 3 |

1. one
   - [x] done
   - [ ] open
2. two

> quote

```py title
x = 1
```

\\[
E = mc^2
\\]

---
"""
TYPES = "heading paragraph table list blockquote paragraph pre mathematical_expression divider"


def blocks(markdown: str) -> list[dict[str, Any]]:
    found = DIALECT.rich(markdown)
    assert found is not None
    return list(found.blocks)


def test_only_what_entities_cannot_show_is_a_rich_message() -> None:
    """Apps that show no rich messages lose those texts only that gain by it."""
    for plain in (
        "a **b** `c` [d](https://a.example)",
        "```py\nx\n```",
        "> quote",
        "costs $5 to $10, or $HOME:$PATH",
        "a\nb",
        "",
        "<table><tr><td>x</td></tr></table>",
    ):
        assert DIALECT.rich(plain) is None, plain
    for rich in ("# a", "- a", "1. a", "- [ ] a", "|a|\n|-|", "a\n\n---", "$x$", "> - a"):
        assert DIALECT.rich(rich) is not None, rich
    assert TelegramDialect.load().rich("# a") is None


def test_every_block_keeps_its_form() -> None:
    found = blocks(EVERYTHING)
    assert [one["type"] for one in found] == TYPES.split()
    heading, plain, table, outer, quote, title, code, formula, _ = found
    assert heading == {
        "type": "heading",
        "size": 1,
        "text": ["Title ", {"type": "italic", "text": "one"}],
    }
    both = {"type": "bold", "text": {"type": "italic", "text": "both"}}
    assert plain["text"][1:3] == [{"type": "bold", "text": "bold "}, both]
    assert {"type": "mathematical_expression", "expression": "x^2"} in plain["text"]
    assert {"type": "url", "text": "l", "url": "https://a.example/b"} in plain["text"]
    assert plain["text"][-2] == " @\u2060ada <b>html</b>\nnext line, "
    assert plain["text"][-1]["url"] == "https://pictures.example/p.png"
    assert plain["text"][-1]["text"] == "a chart"
    head, row, short = table["cells"]
    assert head[0] == {"align": "left", "valign": "middle", "text": "a", "is_header": True}
    assert (row[1]["align"], row[1]["text"]) == ("right", {"type": "bold", "text": "2"})
    assert short[1] == {"align": "right", "valign": "middle"}
    first, second = outer["items"]
    assert [(one["type"], one["value"]) for one in (first, second)] == [("1", 1), ("1", 2)]
    done, still = first["blocks"][1]["items"]
    assert (done["is_checked"], "is_checked" in still, still["has_checkbox"]) == (True, False, True)
    assert quote["blocks"][0]["text"] == "quote"
    assert (title["text"], code["text"], code["language"]) == ("title", "x = 1", "py")
    assert formula["expression"] == "E = mc^2"


@pytest.mark.parametrize(
    ("written", "expression"),
    [
        ("$x$", "x"),
        ("$$x + y$$", "x + y"),
        ("so $$x$$ it is", "x"),
        ("\\(a_1 * b_2 * c\\)", "a_1 * b_2 * c"),
        ("$$\na\n= b\n- c\n$$", "a\n= b\n- c"),
        ("\\[ a \\]", "a"),
        ("text\n$$\na\n$$\ntext", "a"),
        ("- $$\n  a\n  $$", "a"),
        ("**$x$**", "x"),
    ],
)
def test_formulas_are_read_as_models_write_them(written: str, expression: str) -> None:
    found = [one["expression"] for one in each(blocks(written)) if "expression" in one]
    assert found == [expression]


@pytest.mark.parametrize(
    "written",
    [
        "$5 to $10",
        "$ x$",
        "$x $",
        "US$5$",
        "$x$y",
        "`$x$`",
        "$x`$`",
        "\\$x$",
        "$$",
        "$$\na\n\n$$",
        "\\(a",
        "\\[1\\] says",
        "$a\nb$",
        "    $$\n    a\n    $$",
    ],
)
def test_marks_that_are_no_formula_stay(written: str) -> None:
    assert "expression" not in str(blocks(f"# h\n\n{written}"))


def test_a_name_calls_nobody_in_any_place() -> None:
    """FC-MKD-02: in a heading, an item, a cell, and in pieces; a link's target is no text."""
    found = blocks("# @ada\n\n- @ada\n- @*ada*\n\n|@ada|\n|-|\n|@ada|\n\nhttps://a.example/@ada")
    said = "".join(read(found))
    assert (said.count("@ada"), said.count("@\u2060ada")) == (0, 6)
    assert found[-1]["text"]["url"] == "https://a.example/@ada"
    calling = TelegramDialect.load(rich=True, mentions=True).rich("# @ada")
    assert calling is not None
    assert calling.blocks[0]["text"] == "@ada"


def test_code_and_formulas_are_shown_as_written() -> None:
    found = blocks("# h\n\n`@ada` $@ada$\n\n```\n  @ada\n\tb\n```")
    assert found[1]["text"] == [
        {"type": "code", "text": "@ada"},
        " ",
        {"type": "mathematical_expression", "expression": "@ada"},
    ]
    assert found[2]["text"] == "  @ada\n    b"


def test_links_that_the_server_would_refuse_are_written_out() -> None:
    """FC-MKD-01: one of them would cost the whole message its form."""
    found = blocks("# h\n\n[a](/local/path) [b](tg://user?id=1) [c](javascript:x) <mailto:d@e.f>")
    said = "a (/local/path) b (tg://user?id=1) [c](javascript:x) mailto:d@e.f"
    assert found[1]["text"] == said
    assert "url" not in str(found)


def test_a_text_from_right_to_left_is_one() -> None:
    rich = DIALECT.rich("# 1. שלום, world")
    assert rich is not None
    assert rich.rtl
    rich = DIALECT.rich("# Hello, שלום")
    assert rich is not None
    assert not rich.rtl


async def test_an_answer_keeps_its_form_and_is_confirmed(
    fake: TelegramFake, open_bot: OpenBot
) -> None:
    """C2, invariant 6: the receipt compares the blocks that the server answers with."""
    from aiogram.types import InputRichMessage

    fake.say(ADA, ADA, "?")
    async with open_bot(fake.url, rich="auto") as bot:
        receipt = await bot.send(DM, Outbound("d", EVERYTHING, reply_to="1"))
        await bot.send(DM, Outbound("d2", "**plain**"))
    [call] = fake.calls_of("sendRichMessage")
    assert call.params["rich_message"]["skip_entity_detection"] is True
    assert "media" not in call.params["rich_message"]
    read = InputRichMessage.model_validate(call.params["rich_message"])
    assert [one.type for one in read.blocks or []] == TYPES.split()
    shown, plain = fake.chat(ADA)[1:]
    assert [one["type"] for one in shown.blocks] == TYPES.split()
    assert shown.reply_to == 1
    assert receipt.shown == EVERYTHING
    assert receipt.native_id == str(shown.message_id)
    assert (plain.text, plain.blocks) == ("plain", ())


async def test_rich_messages_have_to_be_asked_for(fake: TelegramFake, open_bot: OpenBot) -> None:
    """Some of Telegram's apps show them as a note to update: docs/decisions/telegram-rich.md."""
    fake.say(ADA, ADA, "?")
    async with open_bot(fake.url) as bot:
        await bot.send(DM, Outbound("d", "# T"))
        await bot.edit(DM, "2", Outbound("d", "# U"))
    assert fake.calls_of("sendRichMessage") == []
    assert fake.chat(ADA)[-1].blocks == ()


async def test_a_growing_answer_changes_its_form_in_its_own_message(
    fake: TelegramFake, open_bot: OpenBot
) -> None:
    """FC-EDT-01: from the placeholder to a rich message and back; the same again is success."""
    fake.say(ADA, ADA, "?")
    yes = Button("Yes", "s:1")
    async with open_bot(fake.url, rich="auto") as bot:
        sent = await bot.send(DM, Outbound("d", "…"))

        async def edit(text: str, **more: Any) -> str | None:
            return (await bot.edit(DM, sent.native_id, Outbound("d", text, **more))).shown

        assert await edit("Well:") == "Well:"
        assert await edit("Well:\n\n- a") == "Well:\n\n- a"
        assert await edit("Well:\n\n- a\n- b", buttons=(yes,)) == "Well:\n\n- a\n- b"
        assert fake.chat(ADA)[-1].buttons == (("Yes",),)
        assert await edit("Well:\n\n- a\n- b", buttons=(yes,)) == "Well:\n\n- a\n- b"
        assert [one["type"] for one in fake.chat(ADA)[-1].blocks] == ["paragraph", "list"]
        assert await edit("Well:\n\n- a\n- b", plain=True) == "Well:\n\n- a\n- b"
    shown = fake.chat(ADA)[-1]
    assert (shown.text, shown.blocks, shown.buttons) == ("Well:\n\n- a\n- b", (), ())
    assert len(fake.said_by_bot(ADA)) == 1


@pytest.mark.parametrize("mentions", [False, True])
async def test_the_server_finds_names_only_where_the_table_allows_it(
    fake: TelegramFake, open_bot: OpenBot, mentions: bool
) -> None:
    """FC-MKD-02."""
    fake.say(ADA, ADA, "?")
    async with open_bot(fake.url, rich="auto", mentions=mentions) as bot:
        receipt = await bot.send(DM, Outbound("d", "# Ask @ada"))
    found = [one["type"] for one in each(fake.chat(ADA)[-1].blocks)]
    assert ("mention" in found) == mentions
    assert receipt.shown == "# Ask @ada"


@pytest.mark.parametrize(
    ("returned", "shown"),
    [
        ([{"type": "heading", "size": 1, "text": "On"}], "~~~\nOn\n~~~"),
        ([], "~~~\n\n~~~"),
        ([{"type": "heading", "size": 2, "text": [" One "]}], "# One"),
        (None, None),
        ("what", None),
    ],
    ids=["cut", "empty", "laid out otherwise", "nothing", "no blocks"],
)
async def test_fc_edt_03_what_is_shown_is_compared_word_by_word(
    fake: TelegramFake, open_bot: OpenBot, returned: Any, shown: str | None
) -> None:
    """FC-EDT-03, invariant 6: a server that quotes nothing is believed, and counts as unverified."""
    message = {"message_id": 9, "date": 1, "chat": {"id": ADA, "type": "private"}}
    if returned is not None:
        message["rich_message"] = {"blocks": returned} if isinstance(returned, list) else returned
    fake.on_call(lambda call: Reply(200, {"ok": True, "result": message}))
    async with open_bot(fake.url, rich="auto") as bot:
        receipt = await bot.send(DM, Outbound("d", "# One"))
        again = await bot.edit(DM, "9", Outbound("d", "# One"))
    assert receipt.shown == again.shown == shown
    assert (receipt.native_id, again.native_id) == ("9", "9")
    if shown is not None:
        assert (DIALECT.normal(shown) == DIALECT.normal("# One")) == (shown == "# One")


async def test_a_send_whose_answer_is_lost_is_not_repeated_in_another_form(
    fake: TelegramFake, open_bot: OpenBot
) -> None:
    """Invariant 5."""
    fake.say(ADA, ADA, "?")
    fake.cut("sendRichMessage", after_apply=True)
    async with open_bot(fake.url, rich="auto") as bot:
        with pytest.raises(Unknown):
            await bot.send(DM, Outbound("d", "# One"))
    assert fake.said_by_bot(ADA) == ["One"]
    assert fake.calls_of("sendMessage") == []


@pytest.mark.parametrize(
    ("method", "status", "words"),
    [
        ("sendRichMessage", 404, "Not Found: method not found"),
        ("sendRichMessage", 404, "Not Found"),
        ("sendRichMessage", 501, "Not Implemented"),
    ],
)
async def test_a_server_without_rich_messages_is_asked_once(
    fake: TelegramFake, open_bot: OpenBot, method: str, status: int, words: str
) -> None:
    """C2: the same text comes with entities, in the same call of core's."""
    fake.say(ADA, ADA, "?")
    fake.fail(method, status, words)
    async with open_bot(fake.url, rich="auto") as bot:
        for number in range(3):
            receipt = await bot.send(DM, Outbound(f"d{number}", "# One"))
            assert receipt.shown == "# One"
    assert fake.said_by_bot(ADA) == ["One"] * 3
    assert len(fake.calls_of("sendRichMessage")) == 1


@pytest.mark.parametrize("fake", [{}], indirect=True)
@pytest.mark.parametrize("kind", ["unknown", "markup", "refused"])
async def test_servers_of_every_age_show_the_answer(
    fake: TelegramFake, open_bot: OpenBot, kind: Any
) -> None:
    """C2: older than rich messages or than their blocks, or of those who want none."""
    fake.say(ADA, ADA, "?")
    fake.rich = kind
    async with open_bot(fake.url, rich="auto") as bot:
        for number in range(5):
            sent = await bot.send(DM, Outbound(f"d{number}", "…"))
            for text in ("# One", "# One\n\n- two"):
                receipt = await bot.edit(DM, sent.native_id, Outbound(f"d{number}", text))
                assert receipt.shown == text
        await bot.send(DM, Outbound("d9", "# Last"))
    assert fake.said_by_bot(ADA) == ["One\n\n• two"] * 5 + ["Last"]
    assert len([call for call in fake.calls if call.status in {400, 404}]) == 3


async def test_what_is_wrong_with_one_message_does_not_cost_others_their_form(
    fake: TelegramFake, open_bot: OpenBot
) -> None:
    """FC-MKD-04: it is shown without, its previews are not tried again, and the next is rich."""
    fake.say(ADA, ADA, "?")
    async with open_bot(fake.url, rich="auto") as bot:
        for number in range(5):
            fake.fail("sendRichMessage", 400, "Bad Request: RICH_MESSAGE_URL_INVALID")
            sent = await bot.send(DM, Outbound(f"d{number}", "# One"))
            await bot.edit(DM, sent.native_id, Outbound(f"d{number}", "# One two"))
        await bot.send(DM, Outbound("d9", "# Rich"))
    shown = fake.chat(ADA)[1:]
    assert [one.text for one in shown] == ["One two"] * 5 + ["Rich"]
    assert [bool(one.blocks) for one in shown] == [False] * 5 + [True]
    assert all("rich_message" not in call.params for call in fake.calls_of("editMessageText"))


async def test_errors_about_the_chat_are_those_of_any_message(
    fake: TelegramFake, open_bot: OpenBot
) -> None:
    fake.say(ADA, ADA, "?")
    rich = Outbound("d", "# One")
    async with open_bot(fake.url, rich="auto") as bot:
        with pytest.raises(Gone):
            await bot.send(GROUP, rich)
        with pytest.raises(Gone):
            await bot.edit(DM, "99", rich)
        fake.fail("sendRichMessage", 400, "Bad Request: something")
        fake.fail("sendMessage", 400, "Bad Request: something")
        with pytest.raises(Refused):
            await bot.send(DM, Outbound("d2", "# One"))
        fake.fail("sendRichMessage", 401, "Unauthorized")
        fake.fail("sendMessage", 401, "Unauthorized")
        with pytest.raises(Unauthorized):
            await bot.send(DM, Outbound("d3", "# One"))


async def test_a_draft_has_the_form_of_its_answer(fake: TelegramFake, open_bot: OpenBot) -> None:
    """C2: and where a server knows no rich ones, it is one of words."""
    fake.add_chat(ADA, "private")
    async with open_bot(fake.url, rich="auto", drafts=True) as bot:
        await bot.draft(DM, Outbound("d", "On"))
        await bot.draft(DM, Outbound("d", "On\n\n- it"))
        seen = fake.preview(ADA)
        assert seen is not None
        assert seen.rich is not None
        assert [one["type"] for one in seen.rich["blocks"]] == ["paragraph", "list"]
        assert len({draft.draft_id for draft in fake.drafts(ADA)}) == 1
        fake.rich = "unknown"
        await bot.draft(DM, Outbound("d", "On\n\n- it is"))
        seen = fake.preview(ADA)
        assert seen is not None
        assert (seen.text, seen.rich) == ("On\n\n• it is", None)
        assert bot.capabilities.draft
