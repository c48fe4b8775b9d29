"""A screen with Slack's rules."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Final, Literal, TypeAlias

import attrs

from core.screens.prose import CODE, LINK, fenced_tables, link_of, outside
from core.screens.screen import Screen, Wire
from dragoman import (
    Address,
    Capabilities,
    Expired,
    Forbidden,
    Gone,
    Outbound,
    PlatformError,
    Receipt,
    Refused,
    Transport,
    Unauthorized,
)
from dragoman.testing.platform import Message

POST: Final = 40_000  # facts/platforms.md 5.3: postMessage `text` is truncated above
UPDATE: Final = 4000  # facts/platforms.md 5.3: chat.update `text` > 4,000 -> msg_too_long
SECTION: Final = 3000  # facts/platforms.md 5.3: section text
MARKDOWN: Final = 12_000  # facts/platforms.md 5.3: `markdown` blocks, summed per payload
BLOCKS: Final = 13_200  # facts/platforms.md 5.3: msg_blocks_too_long "at ~13,200 in total"
COUNT: Final = 50  # facts/platforms.md 5.3: 50 blocks

Style: TypeAlias = Literal["text", "section", "markdown"]
"""How the adapter writes: mrkdwn as plain ``text``, mrkdwn in a section, or a ``markdown`` block."""

LIMITS: Final[Mapping[Style, int]] = {"text": UPDATE, "section": SECTION, "markdown": MARKDOWN}

_TOKEN: Final = re.compile(r"<(?=[!@#])")
_SENT_LINK: Final = re.compile(r"<https?://[^\s|<>]+\|([^<>\n]+)>")
_BOLD: Final = re.compile(r"\*\*(?=\S)([^*\n]+?)(?<=\S)\*\*")


def escaped(text: str) -> str:
    """Return ``text`` as Slack's markup for itself: nobody is notified by it (facts/platforms.md 7)."""
    return html.escape(text, quote=False)


def seen(text: str) -> str:
    """Return what people see of mrkdwn: labels for links, and no escapes."""
    return html.unescape(_SENT_LINK.sub(r"\1", text))


@attrs.frozen
class SlackDialect:
    """Code points of what is sent (facts/platforms.md 7)."""

    native: bool = False
    """Whether Slack reads the Markdown itself."""

    def length(self, markdown: str) -> int:
        return len(self.sent(markdown))

    def plain(self, markdown: str) -> str:
        return markdown

    def normal(self, markdown: str) -> str:
        return self.visible(self.sent(markdown)).strip()

    def visible(self, text: str) -> str:
        """Return what people see of a text that was sent."""
        return text.replace("&lt;", "<") if self.native else seen(text)

    def sent(self, markdown: str) -> str:
        """Return the text on the wire; who is named in it is not notified (facts/platforms.md 7)."""
        if self.native:
            return outside(CODE, markdown, self._native)
        return outside(CODE, fenced_tables(markdown), self._mrkdwn, lambda code: escaped(code[0]))

    def _native(self, prose: str) -> str:
        return outside(LINK, prose, lambda text: _TOKEN.sub("&lt;", text), _markdown_link)

    def _mrkdwn(self, prose: str) -> str:
        def words(text: str) -> str:
            return _BOLD.sub(r"*\1*", escaped(text))

        return outside(LINK, prose, words, _slack_link)


def _slack_link(found: re.Match[str]) -> str:
    url, label = link_of(found)
    return f"<{escaped(url)}|{escaped(label)}>"


def _markdown_link(found: re.Match[str]) -> str:
    url, label = link_of(found)
    return f"[{label}]({url})"


def able(style: Style) -> Capabilities:
    """Return what an adapter that writes in a style can promise."""
    return Capabilities(
        max_text=LIMITS[style],
        transport=Transport.ACK_GATED,
        dialect=SlackDialect(native=style == "markdown"),
        edit=True,
        idempotent_send=True,  # facts/platforms.md 6: client_msg_id
    )


@attrs.define(eq=False)
class SlackLike(Screen):
    """With ``streams``, an answer that grows is a stream of Slack's own until it is ``closes`` old.

    A stream only takes more at its end, and appending is not idempotent (facts/platforms.md 6): where the
    screen's text is in doubt, or becomes another one, the adapter leaves the stream for an update.
    """

    style: Style = "text"
    capabilities: Capabilities = attrs.field(
        default=attrs.Factory(lambda self: able(self.style), takes_self=True)
    )
    streams: bool = False
    closes: float = 300.0  # FC-EDT-05: "about five minutes"
    payloads: list[dict[str, Any]] = attrs.field(factory=list)
    """Every body that the platform was given."""
    opened: dict[str, float] = attrs.field(factory=dict)
    """When each stream that is open was begun, by its message."""
    appended: list[str] = attrs.field(factory=list)
    frozen: set[str] = attrs.field(factory=set)
    """Messages that Slack will not have changed any more."""

    codes: ClassVar[Mapping[str, Callable[[], PlatformError]]] = {
        "no_text": lambda: Refused("no_text"),  # FC-EMP-01
        "msg_too_long": lambda: Refused("msg_too_long"),
        "invalid_blocks": lambda: Refused("invalid_blocks"),
        "msg_blocks_too_long": lambda: Refused("msg_blocks_too_long"),
        "message_not_found": lambda: Gone("message"),  # FC-EDT-06, these two
        "cant_update_message": lambda: Gone("message"),
        "message_not_in_streaming_state": lambda: Expired("the stream is closed"),  # FC-EDT-05
        "channel_not_found": lambda: Gone("channel"),  # FC-RAT-03, these four
        "is_archived": lambda: Forbidden("chat"),
        "not_in_channel": lambda: Forbidden("chat"),
        "account_inactive": lambda: Unauthorized("account_inactive"),
    }
    lost: ClassVar[str] = "message_not_found"

    @property
    def dialect(self) -> SlackDialect:
        dialect = self.capabilities.dialect
        assert isinstance(dialect, SlackDialect)
        return dialect

    def visible(self, text: str) -> str:
        return self.dialect.visible(text)

    def converted(self, message: Outbound) -> str:
        return escaped(message.text) if message.plain else self.dialect.sent(message.text)

    def look(self, method: str, message: Outbound, text: str) -> None:
        payload = self._payload(message, text)
        self.payloads.append(payload)
        check(method, payload)

    def _payload(self, message: Outbound, text: str) -> dict[str, Any]:
        match "text" if message.plain else self.style:
            case "section":
                block = {"type": "section", "text": {"type": "mrkdwn", "text": text}}
                return {"blocks": [block]}
            case "markdown":
                return {"blocks": [{"type": "markdown", "text": text}]}
            case _:
                return {"text": text, "mrkdwn": not message.plain}

    def found(self, native_id: str, address: Address) -> Message:
        if native_id in self.frozen:
            raise Wire("cant_update_message")
        return Screen.found(self, native_id, address)

    async def send(self, address: Address, message: Outbound) -> Receipt:
        """Show a message; one that will grow is the begin of a stream."""
        receipt = await Screen.send(self, address, message)
        if self.streams and not (message.final or message.ordinary):
            self.opened[receipt.native_id] = self.clock.boot()
        return receipt

    async def edit(self, address: Address, native_id: str, message: Outbound) -> Receipt:
        """Append to a stream that is open, else update."""
        begun = self.opened.get(native_id)
        if begun is None or message.ordinary:
            return await Screen.edit(self, address, native_id, message)
        before, after = self.converted_shown(message), self.converted(message)
        if not (before and after.startswith(before)):
            self.opened.pop(native_id)
            return await Screen.edit(self, address, native_id, message)
        with self._logged("append", address, message):
            return await self._append(address, native_id, message, after[len(before) :])

    def converted_shown(self, message: Outbound) -> str:
        return self.converted(attrs.evolve(message, text=message.shown))

    async def _append(
        self, address: Address, native_id: str, message: Outbound, rest: str
    ) -> Receipt:
        if self.before:
            await self.before("append", address, message)
        shown = self.found(native_id, address)
        if self.clock.boot() >= self.opened[native_id] + self.closes:
            del self.opened[native_id]
            raise Wire("message_not_in_streaming_state")
        if message.final:
            del self.opened[native_id]
        self.appended.append(rest)
        return self.change(shown, shown.text + rest)


def check(method: str, payload: Mapping[str, Any]) -> None:
    """Raise what Slack has against a body."""
    text, blocks = payload.get("text", ""), payload.get("blocks", [])
    texts = [_text_of(block) for block in blocks]
    if not (text.strip() or any(one.strip() for one in texts)):
        raise Wire("no_text")
    if len(text) > (UPDATE if method == "edit" else POST):
        raise Wire("msg_too_long")
    sections = [len(_text_of(block)) for block in blocks if block["type"] == "section"]
    if len(blocks) > COUNT or any(size > SECTION for size in sections):
        raise Wire("invalid_blocks")
    markdown = sum(len(_text_of(block)) for block in blocks if block["type"] == "markdown")
    if markdown > MARKDOWN or sum(map(len, texts)) > BLOCKS:
        raise Wire("msg_blocks_too_long")


def _text_of(block: Mapping[str, Any]) -> str:
    text = block["text"]
    return text if isinstance(text, str) else text["text"]
