"""Formatted text on its way: the real client and whole gateways against the fake and the emulator."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from dragoman import Address, Outbound, Rate, Refused
from dragoman_telegram.blocks import Converter
from dragoman_telegram.dialect import quoted
from dragoman_telegram.platform import Telegram
from peers.botapi import BotApi
from peers.gateway import Gateway
from peers.telegram_fake import Call, Reply, TelegramFake
from peers.telegram_fake.html import parse_html
from peers.telegram_fake.judging import FOUND, spans

OpenBot = Callable[..., AbstractAsyncContextManager[Telegram]]
ADA = 700000001
DM = Address("telegram", str(ADA))

EVERYTHING = """\
# A 🎉 heading

Some **bold 🎉**, *italic*, ~~gone~~ and `code_span`, with [a link](https://example.com/y_(v2)),
<https://example.com/doc|another>, <https://example.com/auto> and an ![image](https://example.com/i).

- one
  - [x] two
1. three

> quoted **text**
> > and more

```python
    if x < 1:
        return "@ada"
```

| item | link |
|---|---|
| a | [open](https://example.com/a) |

---

<b>html</b> & snake_case_name, a@b.example, @ada."""

SHOWN = """\
A 🎉 heading

Some bold 🎉, italic, gone and code_span, with a link,
another, https://example.com/auto and an image.

• one
    ☑ two
1. three

quoted text
> and more

\u00a0   if x < 1:
        return "@ada"

item | link
-----+-----------------------------
a    | open (https://example.com/a)

———

<b>html</b> & snake_case_name, a@b.example, @\u2060ada."""

SPANS = [
    ("bold", "A 🎉 heading"),
    ("bold", "bold 🎉"),
    ("italic", "italic"),
    ("strikethrough", "gone"),
    ("code", "code_span"),
    ("text_link", "a link", "https://example.com/y_(v2)"),
    ("text_link", "another", "https://example.com/doc"),
    ("text_link", "https://example.com/auto", "https://example.com/auto"),
    ("text_link", "image", "https://example.com/i"),
    ("blockquote", "quoted text\n> and more"),
    ("bold", "text"),
    ("pre", '\u00a0   if x < 1:\n        return "@ada"', "python"),
    ("pre", SHOWN[SHOWN.index("item") : SHOWN.index("\n\n———")]),
]

MANIFEST = """
manifest = 1

[platforms.telegram]
token = {{ env = "TELEGRAM_TOKEN" }}
api_url = "{url}"
poll_timeout = 5

[runtimes.echo]

[profiles.default]
runtime = "echo"

[access]
users = ["telegram:700000001"]
"""


def ours(entities: Any) -> list[Mapping[str, Any]]:
    return [item for item in entities if item["type"] not in FOUND]


def can_not_parse(call: Call) -> Reply | None:
    """Refuse every call that has entities, as a server may that knows a type less."""
    if call.stage != "arrived" or not call.params.get("entities"):
        return None
    error = "Bad Request: can't parse entities: unsupported"
    return Reply(400, {"ok": False, "error_code": 400, "description": error})


@pytest.fixture
def running(tmp_path: Path) -> Callable[..., Any]:
    """A gateway that says everything again."""

    @contextmanager
    def run(url: str, token: str) -> Iterator[Gateway]:
        with Gateway(
            tmp_path / "gateway", MANIFEST.format(url=url), {"TELEGRAM_TOKEN": token}
        ) as g:
            yield g

    return run


@pytest.mark.anyio
async def test_all_constructs_are_sent_edited_and_kept_as_they_are_meant(
    fake: TelegramFake, open_bot: OpenBot
) -> None:
    """C2: the server keeps the text and every entity, and the receipt says so."""
    fake.say(ADA, ADA, "?")
    async with open_bot(fake.url) as bot:
        receipt = await bot.send(DM, Outbound("d", "…"))
        edited = await bot.edit(DM, receipt.native_id, Outbound("d", EVERYTHING))
        again = await bot.edit(DM, receipt.native_id, Outbound("d", f"{EVERYTHING}\n\n"))
        dialect = bot.capabilities.dialect
    shown = fake.chat(ADA)[-1]
    assert shown.text == SHOWN
    assert spans(shown.text, ours(shown.entities)) == SPANS
    assert not [item for item in shown.entities if item["type"] == "mention"]
    assert edited.shown == EVERYTHING
    assert dialect.normal(again.shown or "") == SHOWN, "nothing to change is no error"
    [refused] = [call for call in fake.calls if call.status == 400]
    assert refused.method == "editMessageText"


def test_another_library_reads_the_entities_as_they_are_meant() -> None:
    """What python-telegram-bot makes of them as HTML is what the server would read there."""
    from telegram import Chat, Message, MessageEntity

    sent = Converter.load().convert(EVERYTHING)
    entities = [MessageEntity(**item) for item in sent.entities]
    message = Message(1, datetime.now(UTC), Chat(ADA, "private"), text=sent.text, entities=entities)
    read = parse_html(message.text_html)
    assert read.text == SHOWN
    assert sorted(spans(read.text, read.entities)) == sorted(SPANS)


@pytest.mark.anyio
async def test_fc_edt_03_a_text_that_was_cut_is_told(fake: TelegramFake, open_bot: OpenBot) -> None:
    """FC-EDT-03, invariant 6: the receipt quotes what is really shown."""
    message = {"message_id": 9, "date": 1, "chat": {"id": ADA, "type": "private"}, "text": "*one"}
    fake.on_call(lambda call: Reply(200, {"ok": True, "result": message}))
    async with open_bot(fake.url) as bot:
        normal = bot.capabilities.dialect.normal
        for wanted in (Outbound("d", "**one** two"), Outbound("d", "*one*", plain=True)):
            receipt = await bot.send(DM, wanted)
            assert receipt.shown == quoted("*one")
            assert normal(receipt.shown) != normal(wanted.text)
        whole = await bot.send(DM, Outbound("d", "*one", plain=True))
        assert whole.shown == "*one"


@pytest.mark.anyio
async def test_a_plain_text_has_no_entities_and_calls_nobody(
    fake: TelegramFake, open_bot: OpenBot
) -> None:
    fake.say(ADA, ADA, "?")
    async with open_bot(fake.url) as bot:
        receipt = await bot.send(DM, Outbound("d", "**a** @ada", plain=True))
    [call] = fake.calls_of("sendMessage")
    assert "entities" not in call.params
    assert fake.said_by_bot(ADA) == ["**a** @\u2060ada"]
    assert receipt.shown == "**a** @ada"


@pytest.mark.anyio
async def test_mentions_notify_where_the_table_allows_it(
    fake: TelegramFake, open_bot: OpenBot
) -> None:
    fake.say(ADA, ADA, "?")
    async with open_bot(fake.url, mentions=True) as bot:
        await bot.send(DM, Outbound("d", "**@ada**, look"))
    shown = fake.chat(ADA)[-1]
    assert ("mention", "@ada") in spans(shown.text, shown.entities)


@pytest.mark.anyio
async def test_a_link_that_the_server_would_refuse_never_reaches_it(
    fake: TelegramFake, open_bot: OpenBot
) -> None:
    """FC-MKD-04: one bad target would cost the formatting of the whole message."""
    fake.say(ADA, ADA, "?")
    targets = [
        "https://",
        "https://a:0",
        "http://[",
        "https://a b",
        "ftp://a.example",
        "tg://user?id=1",
    ]
    markdown = " ".join(f"[l](<{target}>)" for target in targets) + " **b**"
    async with open_bot(fake.url) as bot:
        await bot.send(DM, Outbound("d", markdown))
    assert fake.calls_of("sendMessage")[0].status == 200
    assert [kind for kind, *_ in spans(*_last(fake))] == ["bold"]


def _last(fake: TelegramFake) -> tuple[str, list[Mapping[str, Any]]]:
    shown = fake.chat(ADA)[-1]
    return shown.text, ours(shown.entities)


@pytest.mark.anyio
async def test_a_refused_format_is_an_error_that_asks_for_the_plain_form(
    fake: TelegramFake, open_bot: OpenBot
) -> None:
    fake.on_call(can_not_parse)
    async with open_bot(fake.url) as bot:
        with pytest.raises(Refused, match="can't parse entities"):
            await bot.send(DM, Outbound("d", "**a**"))


@pytest.mark.anyio
async def test_capabilities_say_how_much_a_chat_bears(open_bot: OpenBot) -> None:
    """Telegram's FAQ: about one message a second in a chat, twenty a minute in a group."""
    async with open_bot("http://127.0.0.1:1") as bot:
        found = bot.capabilities
    assert (found.rate, found.group_rate) == (Rate(3, 3.0), Rate(20, 60.0))
    assert found.markdown


def test_fc_mkd_03_a_refused_answer_comes_as_it_was_written(
    fake: TelegramFake, running: Callable[..., Any]
) -> None:
    """FC-MKD-03, FC-MKD-04: one repeat, without entities and without escapes; one message."""
    text = "Sure! Step 1 - **done**. See a_b_c (x)."
    fake.on_call(can_not_parse)
    with running(fake.url, fake.token):
        fake.say(ADA, ADA, text)
        fake.until(lambda: text in fake.said_by_bot(ADA))
    fake.on_call(None)
    assert fake.said_by_bot(ADA) == [text]
    tried = [
        call for call in fake.calls_of("sendMessage", "editMessageText") if "text" in call.params
    ]
    formatted = [call for call in tried if call.params.get("entities")]
    [plain] = [call for call in tried if call.params["text"] == text]
    assert len(formatted) == 1
    assert "entities" not in plain.params


def test_a_gateway_shows_formatted_answers(fake: TelegramFake, running: Callable[..., Any]) -> None:
    """C2: the whole way, with an answer that has everything in it."""
    with running(fake.url, fake.token):
        fake.say(ADA, ADA, EVERYTHING)
        fake.until(lambda: SHOWN in fake.said_by_bot(ADA))
    assert spans(*_last(fake)) == SPANS
    assert fake.said_by_bot(ADA) == [SHOWN]
    assert {call.status for call in fake.calls_of("sendMessage", "editMessageText")} == {200}


def test_an_emulator_that_nobody_here_wrote_takes_every_entity(
    botapi: BotApi, running: Callable[..., Any]
) -> None:
    with running(botapi.url, botapi.token):
        botapi.say(ADA, EVERYTHING, message_id=1)
        botapi.wait_for(lambda: SHOWN in botapi.messages(ADA).values())
    assert list(botapi.messages(ADA).values()) == [SHOWN]
    calls = [c for m in ("sendMessage", "editMessageText") for c in botapi.calls(m)]
    assert {call["status"] for call in calls} == {200}
    last = [call for call in calls if call["params"].get("text") == SHOWN][-1]
    assert spans(SHOWN, last["params"]["entities"]) == SPANS
