"""A Telegram bot as a platform of dragoman."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial

import anyio.to_thread
import attrs

from dragoman import (
    Address,
    Attachment,
    Capabilities,
    Deliver,
    Finding,
    Host,
    Inbound,
    Outbound,
    Receipt,
)
from dragoman_telegram import probe
from dragoman_telegram.abilities import capabilities_of
from dragoman_telegram.account import Account
from dragoman_telegram.api import ANSWER_TIMEOUT, BotApi, Connector
from dragoman_telegram.config import TelegramConfig
from dragoman_telegram.dialect import TelegramDialect
from dragoman_telegram.intake import Intake
from dragoman_telegram.menu import show_commands
from dragoman_telegram.polling import Polling
from dragoman_telegram.richform import RichForm
from dragoman_telegram.speech import Speech
from dragoman_telegram.webhook import Webhook, forget_webhook


@asynccontextmanager
async def open_telegram(config: TelegramConfig, host: Host) -> AsyncIterator[Telegram]:
    """Make the platform; the network is first used by its calls."""
    rich = config.rich == "auto"
    load = partial(TelegramDialect.load, mentions=config.mentions, rich=rich)
    dialect = await anyio.to_thread.run_sync(load)
    connector = await Connector.prepare(config.token, config.api_url, host.network)
    async with connector.open() as api:
        form = RichForm(dialect, host.log, rich, mentions=config.mentions)
        intake, speech = Intake(host, api), Speech(api, dialect, form, config.drafts)
        source: Polling | Webhook = Polling(host, config, intake)
        if config.mode == "webhook":
            source = Webhook(host, config, intake)
            host.mount(config.path, source)
        yield Telegram(host, connector, api, config, dialect, intake, speech, source)


@attrs.define(eq=False)
class Telegram:
    """One bot: takes its messages, and speaks in its chats."""

    _host: Host
    _connector: Connector
    _api: BotApi
    _config: TelegramConfig
    _dialect: TelegramDialect
    _intake: Intake
    _speech: Speech
    _source: Polling | Webhook
    _privacy_told: bool = False

    @property
    def capabilities(self) -> Capabilities:
        """The same for every bot, except for how its messages come and whether drafts are known."""
        return capabilities_of(self._config, self._dialect, drafts=self._speech.drafts)

    async def run(self, deliver: Deliver) -> None:
        """Take messages over a pool of its own until cancelled or the connection is lost."""
        polls = isinstance(self._source, Polling)
        patience = self._config.poll_timeout + self._config.poll_margin
        async with self._connector.open(patience if polls else ANSWER_TIMEOUT) as api:
            commands = self._host.gateway.command_names
            me = attrs.evolve(Account.from_result(await api.call("getMe")), commands=commands)
            self._host.alive()
            await self._host.bind_account(str(me.id))
            self._tell_privacy(me)
            if self._config.menu:
                await show_commands(self._host, api)
            if polls:
                await forget_webhook(self._host, api)
            await self._source.run(api, me, deliver)

    def _tell_privacy(self, me: Account) -> None:
        """Say once why groups may seem silent: no error ever would."""
        if me.has_privacy and not self._privacy_told:
            self._privacy_told = True
            self._host.log.info(
                "privacy mode is on: of what is said in groups, only messages that address the bot "
                'arrive. trigger = "all" needs it off: /setprivacy at @BotFather, then invite the '
                "bot again"
            )

    async def probe(self) -> Sequence[Finding]:
        """Ask Telegram whether all is set up; changes nothing."""
        return await probe.probe(self._api, self._config)

    async def send(self, address: Address, message: Outbound) -> Receipt:
        """Send a new message."""
        return await self._speech.send(address, message)

    async def edit(self, address: Address, native_id: str, message: Outbound) -> Receipt:
        """Replace a message's text and buttons."""
        return await self._speech.edit(address, native_id, message)

    async def typing(self, address: Address) -> None:
        """Show "typing" for five seconds, which a message ends early."""
        await self._speech.typing(address, forum=self._intake.is_forum(address.channel))

    async def draft(self, address: Address, message: Outbound) -> None:
        """Show what is being written."""
        await self._speech.draft(address, message)

    async def delete(self, address: Address, native_id: str) -> None:
        """Take a message of the bot away."""
        await self._speech.delete(address, native_id)

    async def react(self, address: Address, message_id: str, emoji: str, *, on: bool) -> None:
        """Set the bot's reaction, or take it back."""
        await self._speech.react(address, message_id, emoji, on=on)

    async def answer(self, press: Inbound, text: str) -> None:
        """Show a note to whoever pressed, for a few seconds; without one, end the button's clock."""
        await self._intake.answer(press, self._dialect.normal(text))

    def fetch(self, attachment: Attachment) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """Open a file that came with a message."""
        return self._speech.fetch(attachment)
