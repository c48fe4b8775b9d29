"""Whose messages are whose: the bot's own account, and the accounts that many people share."""

from __future__ import annotations

from typing import Any, Final

import attrs

from dragoman import Unknown
from dragoman_telegram.fields import as_int, as_map, as_text

SHARED_ACCOUNTS: Final = frozenset({1087968824, 136817688, 777000})
"""Ids that Telegram puts in place of an author: of anonymous administrators, of people who write
as a channel, and of posts forwarded from a linked channel. Each stands for any number of people,
so none of them identifies anybody."""


@attrs.frozen
class Account:
    """The bot itself; ``username`` is without the ``@`` and may be empty.

    ``has_privacy`` says that Telegram holds back what groups say without addressing the bot.
    """

    id: int
    username: str = ""
    has_privacy: bool = False

    @classmethod
    def from_result(cls, result: Any) -> Account:
        """Read the answer of ``getMe``."""
        user = as_map(result)
        identity = as_int(user.get("id"))
        if identity is None:
            msg = "getMe did not answer with an account; is api_url a Bot API server?"
            raise Unknown(msg)
        has_privacy = user.get("can_read_all_group_messages") is False
        return cls(identity, as_text(user.get("username")), has_privacy)
