"""The fake as a test holds it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Final, Self, TypeVar

import anyio.to_thread

from peers.clock import Clock, ManualClock, SystemClock
from peers.faults import Callback, Cut, Fault, Faults, Gate, Hold, Reply, Stage
from peers.telegram_fake.chats import Bot
from peers.telegram_fake.delivery import Deliverer
from peers.telegram_fake.errors import BotError, Json, too_many
from peers.telegram_fake.hook import Delivery
from peers.telegram_fake.journal import Call
from peers.telegram_fake.limits import Floodgate, Limits
from peers.telegram_fake.messages import Shown
from peers.telegram_fake.parameters import canonical
from peers.telegram_fake.people import People
from peers.telegram_fake.polling import Poller
from peers.telegram_fake.server import Server
from peers.telegram_fake.updates import UpdateQueue
from peers.telegram_fake.world import Draft, Notice, Press, Rich, World

TOKEN: Final = "700700:AAFixtureTokenOfABotThatIsNoWhere0x"
USERNAME: Final = "dragoman_bot"

T = TypeVar("T")

_PHRASES: Final[Mapping[int, str]] = {
    400: "Bad Request",
    401: "Unauthorized",
    403: "Forbidden",
    404: "Not Found",
    409: "Conflict",
    500: "Internal Server Error",
    502: "Bad Gateway",
}


class TelegramFake(People):
    """A Bot API server on loopback for one bot; a context manager.

    All methods are synchronous unless they say otherwise, and may be called from any thread.
    ``strict`` refuses what the reference does not know. ``conflict_pause`` and ``repeat_wait``
    are the waits of R6 and R5a, in seconds. ``loopback_webhooks`` lets a webhook be on this
    machine, also without TLS; ``webhook_scale`` shortens the waits of R26.
    """

    def __init__(
        self,
        *,
        token: str = TOKEN,
        username: str = USERNAME,
        clock: Clock | None = None,
        strict: bool = True,
        limits: Limits | None = None,
        first_update: int = 500_000_001,
        reads_all_groups: bool = True,
        conflict_pause: float = 3.0,
        repeat_wait: float = 3.0,
        loopback_webhooks: bool = False,
        webhook_scale: float = 1.0,
        rich: Rich = "known",
        private_topics: bool = False,
    ) -> None:
        time = clock or SystemClock()
        bot = Bot(int(token.partition(":")[0]), username, reads_all_groups, private_topics)
        gate = Floodgate(time, limits or Limits())
        updates = UpdateQueue(time, first_update)
        world = World(bot, time, updates, gate, strict=strict, rich=rich)
        world.loopback_webhooks = loopback_webhooks
        super().__init__(world)
        self.token = token
        self._faults = Faults()
        poller = Poller(self._world, conflict_pause, repeat_wait)
        deliverer = Deliverer(self._world, webhook_scale)
        self._server = Server(token, self._world, self._faults, poller, deliverer)

    def __enter__(self) -> Self:
        self._server.start()
        self._world.on_update = self._server.wake
        if isinstance(self._world.clock, ManualClock):
            self._world.clock.watchers.append(self._server.tick)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._world.on_update = lambda: None
        if isinstance(self._world.clock, ManualClock):
            self._world.clock.watchers.remove(self._server.tick)
        self._server.stop()
        if kind is None and self._server.errors:
            raise RuntimeError("the fake itself failed") from self._server.errors[0]

    @property
    def url(self) -> str:
        """The server's root: calls go to ``{url}/bot{token}/{method}``."""
        return f"http://127.0.0.1:{self._server.port}"

    @property
    def bot_id(self) -> int:
        return self._world.bot.id

    # What has happened.

    @property
    def calls(self) -> list[Call]:
        """Every call so far, in order of arrival."""
        with self._world.changed:
            return list(self._world.calls)

    def calls_of(self, *methods: str) -> list[Call]:
        """Return the calls of some methods, in order of arrival."""
        return [call for call in self.calls if call.method in methods]

    def chat(self, chat_id: int, thread: int | None = None) -> list[Shown]:
        """Return the messages of a chat in order, deleted ones too; of one topic if named."""
        with self._world.changed:
            found = self._world.history(chat_id)
            return [m.shown() for m in found if thread is None or m.thread == thread]

    def said_by_bot(self, chat_id: int, thread: int | None = None) -> list[str]:
        """Return the texts of the bot's messages that a person can see now."""
        return [
            one.text
            for one in self.chat(chat_id, thread)
            if one.sender == self.bot_id and not one.deleted
        ]

    @property
    def rich(self) -> Rich:
        """R27: whether the server knows rich messages; it may change its mind."""
        return self._world.rich

    @rich.setter
    def rich(self, rich: Rich) -> None:
        with self._world.changed:
            self._world.rich = rich

    def notices(self, chat_id: int, action: str = "typing") -> list[Notice]:
        """Return the chat actions of a kind, with their times and topics."""
        with self._world.changed:
            found = self._world.notices
            return [one for one in found if (one.chat_id, one.action) == (chat_id, action)]

    def drafts(self, chat_id: int) -> list[Draft]:
        with self._world.changed:
            return [one for one in self._world.drafts if one.chat_id == chat_id]

    def answer_to(self, query_id: str) -> Json | None:
        """Return what the bot answered to a press; ``None`` if nothing so far."""
        with self._world.changed:
            press: Press = self._world.presses[query_id]
            return press.answer

    def commands(self, scope: str = "default", language: str = "") -> list[Json]:
        """R28: return the commands of a scope, such as ``chat:-100`` or ``chat_member:-100:7``."""
        with self._world.changed:
            return list(self._world.commands.get((scope, language), []))

    def pending(self) -> tuple[int, ...]:
        """Return the ids of the updates that the bot has not confirmed."""
        with self._world.changed:
            return self._world.updates.pending()

    @property
    def deliveries(self) -> list[Delivery]:
        """Every attempt to deliver to a webhook so far, in order of their ends."""
        with self._world.changed:
            return list(self._world.deliveries)

    def skip_updates(self, count: int) -> None:
        """Leave a gap in the ids of updates."""
        with self._world.changed:
            self._world.updates.skip(count)

    def file(self, file_id: str) -> bytes:
        with self._world.changed:
            return self._world.files.content(file_id)

    def until(self, predicate: Callable[[], T], limit: float = 60.0) -> T:
        """Wait until ``predicate`` holds, looked at after every change; return what it returned."""
        with self._world.changed:
            found = self._world.changed.wait_for(predicate, limit)
            if not found:
                last = [f"{c.method} {c.stage} {c.status} {c.fate}" for c in self.calls[-20:]]
                raise TimeoutError(f"not within {limit} s; the last calls were {last}")
            return found

    async def reached(self, predicate: Callable[[], T], limit: float = 60.0) -> T:
        """The same without blocking the caller's loop."""
        return await anyio.to_thread.run_sync(self.until, predicate, limit)

    # What is to go wrong.

    @property
    def limits(self) -> Limits:
        return self._world.gate.limits

    @limits.setter
    def limits(self, limits: Limits) -> None:
        with self._world.changed:
            self._world.gate.limits = limits

    def on_call(self, callback: Callback | None) -> None:
        """Ask ``callback`` at every stage of every call; its answer is what happens next.

        A coroutine function runs in the server's loop, any other function in a thread of its own,
        where it may block: the call stands still meanwhile, others go on. ``call.stage`` tells the
        stage. ``None``, as the callback or as its answer, lets calls go on.
        """
        self._faults.callback = callback

    def fail(
        self,
        method: str,
        status: int = 500,
        description: str = "",
        *,
        count: int | None = 1,
        apply: bool = False,
        **parameters: int,
    ) -> None:
        """Refuse the next calls of a method: they do not happen, or do and it is not said."""
        words = description or _PHRASES.get(status, "Error")
        error = BotError(status, words, **parameters)
        if status == 429:
            error = too_many(parameters.get("retry_after", 1))
        self._plan(
            method,
            "applied" if apply else "arrived",
            Reply(status, error.body, error.headers),
            count,
        )

    def answer(
        self, method: str, status: int, body: bytes, *, apply: bool = False, count: int | None = 1
    ) -> None:
        """Answer the next calls of a method with raw bytes."""
        self._plan(method, "applied" if apply else "arrived", Reply(status, body), count)

    def cut(self, method: str, *, after_apply: bool = False, count: int | None = 1) -> None:
        """Reset the connection of the next calls, before or after they happen."""
        self._plan(method, "applied" if after_apply else "arrived", Cut(), count)

    def hold(self, method: str, *, after_apply: bool = False, count: int | None = 1) -> Gate:
        """Stop the next calls, before or after they happen, until the gate is opened."""
        gate = Gate(self._server.loop)
        self._plan(method, "applied" if after_apply else "arrived", Hold(gate), count)
        return gate

    def stall_polls(self, count: int | None = None) -> None:
        """Accept polls and never answer them, as a connection does that is only half open.

        A stalled poll confirms nothing. Without ``count``, every poll until `resume_polls`.
        """
        self._plan("getUpdates", "arrived", Hold(), count)

    def resume_polls(self) -> None:
        """Answer polls again; those that were stalled stay so."""
        self._faults.drop("getUpdates")

    def heal(self) -> None:
        """Forget every fault that has not happened yet."""
        self._faults.drop()

    def _plan(
        self, method: str, stage: Stage, action: Cut | Hold | Reply, count: int | None
    ) -> None:
        name = canonical(method)
        if name is None:
            raise LookupError(f"there is no method {method}")
        self._faults.plan(Fault(name, stage, action, count))
