"""Whose messages are whose: the app's own bot user, and its workspace."""

from __future__ import annotations

import attrs

from dragoman import Sender, Unknown
from dragoman_slack.fields import Json, as_map, as_text, one_line


@attrs.frozen
class Account:
    """The bot user itself. ``grid`` says that the app is installed for a whole organisation, so
    that its channels belong to several workspaces."""

    user: str
    team: str
    bot: str = ""
    name: str = ""
    grid: bool = False
    enterprise: str = ""

    @classmethod
    def from_answer(cls, answer: Json) -> Account:
        """Read the answer of ``auth.test``."""
        user, team = as_text(answer.get("user_id")), as_text(answer.get("team_id"))
        enterprise = as_text(answer.get("enterprise_id"))
        if not user or not (team or enterprise):
            msg = "auth.test did not answer with an account; is api_url Slack's?"
            raise Unknown(msg)
        return cls(
            user=user,
            team=team or enterprise,
            bot=as_text(answer.get("bot_id")),
            name=one_line(as_text(answer.get("user"))),
            grid=answer.get("is_enterprise_install") is True,
            enterprise=enterprise,
        )

    @property
    def identity(self) -> str:
        """What names the account for ever."""
        return f"{self.team}:{self.user}"

    def workspace(self, context: str) -> str:
        """Return the workspace that a channel belongs to, as this app sees it.

        Events name the workspace of a shared channel's other side in some fields: only an app of
        a whole organisation has more than one of its own.
        """
        return context if self.grid and context else self.team

    def wrote(self, message: Json) -> bool:
        """Whether the message is one of this app's own."""
        return as_text(message.get("user")) == self.user or (
            bool(self.bot) and as_text(message.get("bot_id")) == self.bot
        )


def sender_of(message: Json, me: Account, name: str = "") -> Sender:
    """Return who wrote a message: a person, or an app, which counts as a bot.

    An app without a user of its own has the id that no person can have.
    """
    user, bot = as_text(message.get("user")), as_text(message.get("bot_id"))
    team = as_text(message.get("user_team")) or as_text(message.get("team"))
    profile = as_map(message.get("bot_profile"))
    label = name or as_text(message.get("username")) or as_text(profile.get("name"))
    return Sender(
        user or f"bot:{bot or 'unknown'}",
        one_line(label),
        bot=bool(bot) or not user or user == "USLACKBOT",
        workspace=team or me.team,
        own=me.wrote(message),
    )
