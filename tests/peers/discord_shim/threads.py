"""Who belongs to a thread: in YEPCord nobody can join one, in Discord everybody may speak."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import attrs

_JOIN = """
INSERT INTO threadmember (id, channel_id, guild_id, user_id)
SELECT (SELECT max(id) FROM threadmember) + row_number() OVER (ORDER BY m.id), :thread, :guild,
       m.user_id
FROM guildmember m
WHERE m.guild_id = :guild
  AND m.user_id NOT IN (SELECT user_id FROM threadmember WHERE channel_id = :thread)
"""


@attrs.frozen
class Members:
    """The table of members in YEPCord's database, which has no request for it."""

    database: Path

    def join(self, thread: Mapping[str, Any]) -> None:
        """Let every member of the guild belong to a new thread."""
        with closing(sqlite3.connect(self.database, timeout=5)) as base, base:
            values = {"thread": int(thread["id"]), "guild": int(thread["guild_id"])}
            base.execute(_JOIN, values)
