"""The platform's contract, on the Bot API of the tests, by long polling."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, Literal

import attrs
import pytest

from dragoman import Address, Component, Place, Secret
from dragoman.testing.platform_suite import Fault, PlatformSuite, Seen
from dragoman_telegram import dragoman_platforms, rich
from dragoman_telegram.config import TelegramConfig
from peers.telegram_fake import TOKEN, USERNAME, TelegramFake

_SENDS: Final = ("sendMessage", "sendRichMessage")
_NOWHERE: Final = "http://127.0.0.1:9"
_ADA: Final = 7
_GROUP: Final = -1001234567890
_ERRORS: Final = {
    "unauthorized": (401, "Unauthorized"),
    "refused": (400, "Bad Request: something is wrong with it"),
    "no channel": (400, "Bad Request: chat not found"),
    "no thread": (400, "Bad Request: message thread not found"),
}


@attrs.define(eq=False)
class TelegramHarness:
    """The Bot API of the tests, with a group, a topic and a person."""

    fake: TelegramFake
    rich: Literal["auto", "off"] = "off"
    secrets: tuple[str, ...] = (TOKEN, TOKEN.partition(":")[2])
    cannot: dict[str, str] = attrs.field(
        factory=lambda: {
            "bot": "bots do not hear each other",
            "deletion": "Telegram tells no bot of deletions",
        }
    )
    dm: Address = Address("telegram", str(_ADA))
    room: Address = Address("telegram", str(_GROUP), place=Place.GROUP)
    thread: Address = attrs.field(init=False)
    _pressed: list[str] = attrs.field(factory=list)
    _opened: int = 0
    """How many polls there were before it was opened."""

    def __attrs_post_init__(self) -> None:
        self.fake.add_chat(_GROUP, "supergroup", "Group")
        self.fake.add_chat(_ADA, "private")
        self.thread = attrs.evolve(self.room, thread=str(self.fake.topic(_GROUP, "Talk", _ADA)))

    @property
    def component(self) -> Component[Any, Any]:
        [found] = dragoman_platforms()
        return found

    def config(self, *, reachable: bool = True) -> TelegramConfig:
        self._opened = len(self._polls())
        url = self.fake.url if reachable else _NOWHERE
        token = Secret("env TOKEN", TOKEN)
        return TelegramConfig(token=token, api_url=url, poll_timeout=1, rich=self.rich)

    async def connected(self) -> None:
        await self.fake.reached(lambda: len(self._polls()) > self._opened)

    async def say(
        self,
        address: Address,
        text: str,
        *,
        mention: bool = False,
        reply_to: str = "",
        file: tuple[str, bytes] | None = None,
        bot: bool = False,
    ) -> str:
        said = self.fake.say(
            int(address.channel),
            _ADA,
            f"@{USERNAME} {text}" if mention else text,
            thread=int(address.thread) if address.thread else None,
            reply_to=int(reply_to) if reply_to else None,
            document=file,
        )
        return str(said.message_id)

    async def edit(self, address: Address, message_id: str, text: str) -> None:
        self.fake.edit(int(address.channel), int(message_id), text)

    async def remove(self, address: Address, message_id: str) -> None:
        self.fake.delete(int(address.channel), int(message_id))

    async def reaction(self, address: Address, message_id: str, emoji: str) -> None:
        self.fake.react(int(address.channel), int(message_id), _ADA, emoji)

    async def press(self, address: Address, native_id: str, label: str) -> None:
        chat, number = int(address.channel), int(native_id)
        [call] = [one for one in self.fake.calls_of(*_SENDS) if "reply_markup" in one.params]
        [data] = [
            button["callback_data"]
            for row in call.params["reply_markup"]["inline_keyboard"]
            for button in row
            if button["text"] == label
        ]
        self._pressed.append(self.fake.press(chat, number, _ADA, data).query_id)

    async def answered(self, address: Address) -> Sequence[str]:
        answers = map(self.fake.answer_to, self._pressed)
        return [one.get("text", "") for one in answers if one is not None]

    async def erase(self, address: Address, native_id: str) -> None:
        self.fake.delete(int(address.channel), int(native_id))

    async def junk(self, address: Address) -> None:
        self.fake.enqueue({"something_new": {}})
        self.fake.enqueue({"message": {"message_id": ["?"]}})

    async def replay(self, message_id: str) -> None:
        """Polling does so."""

    async def confirmed(self, message_id: str) -> None:
        """The next poll says so, and is made before the next message is heard."""

    async def drop(self) -> None:
        self.fake.cut("getUpdates")
        await self.fake.reached(lambda: any(one.fate == "cut" for one in self._polls()))

    async def fault(self, fault: Fault) -> None:
        if fault == "blocked":
            self.fake.block(_ADA)
            return
        for method in _SENDS:
            match fault:
                case "lost":
                    self.fake.cut(method, after_apply=True)
                case "limited":
                    self.fake.fail(method, 429, retry_after=7)
                case "garbled":
                    self.fake.answer(method, 502, b"<html>Bad Gateway</html>")
                case _:
                    self.fake.fail(method, *_ERRORS[fault])

    async def shown(self, address: Address) -> Sequence[Seen]:
        thread = int(address.thread) if address.thread else None
        return [
            Seen(
                native_id=str(one.message_id),
                text=one.text,
                files={self._name(file): self.fake.file(file) for file in one.files},
                buttons=tuple(label for row in one.buttons for label in row),
            )
            for one in self.fake.chat(int(address.channel))
            if (one.sender, one.deleted, one.thread) == (self.fake.bot_id, False, thread)
        ]

    async def reactions(self, address: Address, message_id: str) -> Sequence[str]:
        shown = self.fake.chat(int(address.channel))
        [found] = [one for one in shown if one.message_id == int(message_id)]
        return found.reactions.get(self.fake.bot_id, ())

    async def typings(self, address: Address) -> int:
        thread = int(address.thread) if address.thread else None
        found = self.fake.notices(int(address.channel))
        return len([one for one in found if one.thread == thread])

    def _polls(self) -> Sequence[Any]:
        return self.fake.calls_of("getUpdates")

    def _name(self, file_id: str) -> str:
        sent = [one.result["document"] for one in self.fake.calls_of("sendDocument")]
        return str(next(one["file_name"] for one in sent if one["file_id"] == file_id))


class TestTelegram(PlatformSuite):
    @pytest.fixture
    def harness(self) -> Iterator[TelegramHarness]:
        with TelegramFake(token=TOKEN) as fake:
            yield TelegramHarness(fake)


class TestRichTelegram(PlatformSuite):
    """Whatever is said is a rich message."""

    @pytest.fixture
    def harness(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[TelegramHarness]:
        monkeypatch.setattr(rich, "WORTH", rich.WORTH | {"paragraph", "pre", "blockquote"})
        with TelegramFake(token=TOKEN) as fake:
            yield TelegramHarness(fake, rich="auto")
