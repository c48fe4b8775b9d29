"""Markdown taken apart as far as the dialects of the screens need it."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

CODE: Final = re.compile(r"^```.*?^```[ \t]*$|`[^`\n]+`", re.MULTILINE | re.DOTALL)
TABLE: Final = re.compile(r"^\|.*\|[ \t]*\n\|[ :|-]+\|[ \t]*(?:\n\|.*\|[ \t]*)*$", re.MULTILINE)
LINK: Final = re.compile(
    r"\[(?P<label>[^\]\n]+)\]\((?P<url>https?://(?:[^\s()]|\([^\s()]*\))+)\)"
    r"|<(?P<slack_url>https?://[^\s|<>]+)\|(?P<slack_label>[^<>\n]+)>"
)
"""A Markdown link, with round brackets in its address, or one as Slack writes it."""


def outside(
    pattern: re.Pattern[str],
    text: str,
    change: Callable[[str], str],
    keep: Callable[[re.Match[str]], str] = lambda found: found[0],
) -> str:
    """Return ``text`` with ``change`` made to what ``pattern`` does not match, else ``keep``."""
    done, pieces = 0, []
    for found in pattern.finditer(text):
        pieces += [change(text[done : found.start()]), keep(found)]
        done = found.end()
    return "".join([*pieces, change(text[done:])])


def fenced_tables(text: str) -> str:
    """Return ``text`` with its tables in fences, where they stand in even columns."""
    return outside(CODE, text, lambda prose: TABLE.sub(r"```\n\g<0>\n```", prose))


def link_of(found: re.Match[str]) -> tuple[str, str]:
    """Return address and label of a match of `LINK`."""
    return (found["url"] or found["slack_url"], found["label"] or found["slack_label"])
