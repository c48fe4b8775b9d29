"""What ``dragoman check --connect`` finds: the account, its rights in groups, where events go."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dragoman import Finding, Unauthorized
from dragoman_telegram.account import Account
from dragoman_telegram.api import BotApi
from dragoman_telegram.config import TelegramConfig
from dragoman_telegram.fields import Json, as_int, as_map, as_text, one_line

NO_TOKEN = "send /token to @BotFather, and use what it answers"  # noqa: S105 - words, no token


async def probe(api: BotApi, config: TelegramConfig) -> Sequence[Finding]:
    """Ask Telegram; takes no update and changes nothing."""
    try:
        user = as_map(await api.call("getMe"))
        info = as_map(await api.call("getWebhookInfo"))
    except Unauthorized as error:
        return [Finding("problem", str(error), NO_TOKEN)]
    me = Account.from_result(user)
    name = f"@{one_line(me.username)}" if me.username else "a bot"
    found = [Finding("ok", f"{name}, account {me.id}"), *_groups(user, me)]
    return [*found, *(_webhook if config.mode == "webhook" else _polling)(info, config)]


def _groups(user: Json, me: Account) -> Iterator[Finding]:
    if user.get("can_join_groups") is False:
        yield Finding(
            "warning", "the bot cannot be added to groups", "/setjoingroups at @BotFather"
        )
    if me.has_privacy:
        yield Finding(
            "warning",
            "privacy mode is on: in groups, only what addresses the bot arrives",
            'for trigger = "all": /setprivacy at @BotFather, then invite the bot again',
        )


def _polling(info: Json, _: TelegramConfig) -> Iterator[Finding]:
    if as_text(info.get("url")):
        yield Finding(
            "problem",
            "a webhook is set: polls are refused while it is there",
            "remove it (deleteWebhook); one that this deployment set is removed when it runs",
        )
    else:
        yield Finding("ok", f"polls; {as_int(info.get('pending_update_count')) or 0} updates wait")


def _webhook(info: Json, config: TelegramConfig) -> Iterator[Finding]:
    url = as_text(info.get("url"))
    if not url:
        yield Finding("ok", "no webhook is set yet: running sets it")
    elif url != config.webhook_url:
        yield Finding(
            "warning",
            "the webhook leads elsewhere: running replaces it",
            "make sure that no other program uses this bot",
        )
    else:
        yield Finding("ok", "the webhook is set")
    said = one_line(as_text(info.get("last_error_message")), 200)
    if url == config.webhook_url and said:
        yield Finding(
            "warning",
            f"the last delivery that failed: {said}",
            "reach webhook_url from outside; it has to lead to the gateway's listener",
        )
