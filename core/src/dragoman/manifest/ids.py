"""Ids in ``[access]`` and ``[[routes]]``: written as people write them, kept in one form.

Only immutable ids count: a name can change hands, and with it the agents. Which ids a platform
has is the platform's own matter: a configuration class may define a static method
``check_id(list_name: str, id: str) -> str | None`` that says what is wrong with one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from dragoman.manifest.problems import UnusableError, expect

CheckId: TypeAlias = Callable[[str, str], str | None]

ACCESS_LISTS: Final = ("owners", "operators", "users", "roles", "channels", "bots")
ROUTE_IDS: Final = ("workspace", "channel", "thread", "user")
SPECIFICITY: Final = ("user", "thread", "channel", "workspace", "platform")
"""What a route may name, most telling first."""

_NUMBER: Final = re.compile(r"-?[0-9]+")
_KIND: Final = re.compile(r"[a-z][a-z0-9_-]*")
_NAME: Final = (
    "names grant nothing, because they change hands: use the immutable id "
    "(people see their own with /whoami)"
)
_LIST_THEM: Final = "list each id that may, as kind:id"


def route_id(value: object) -> str:
    """Return an id of a route: an integer and its digits in quotes are the same."""
    text = _text(value, "the id", "leave the key out to match everything")
    if text.startswith("@") and ":" not in text:  # `@name:server` is a whole address
        raise UnusableError(_NAME)
    return text


def access_entry(value: object, list_name: str, checks: Mapping[str, CheckId | None]) -> str:
    """Return an entry of an access list as ``kind:id``.

    ``checks`` has a key for each kind of configured platform. Where there is only one kind, a bare
    number belongs to it; that stops being accepted, with an explanation, when a second one comes.
    """
    text = _text(value, "the id", _LIST_THEM)
    if _NUMBER.fullmatch(text):
        text = f"{_only_kind(checks, text)}:{text}"
    kind, colon, rest = text.partition(":")
    kind = kind.strip()
    if not colon or not _KIND.fullmatch(kind):
        is_name = text.startswith("@")
        raise UnusableError(_NAME if is_name else 'expected "kind:id", as in "telegram:12345678"')
    parts = [_text(each, f"a part of the id after {kind}:", _LIST_THEM) for each in rest.split(":")]
    if any(each.isspace() for part in parts for each in part):
        raise UnusableError(f"an id has no white space inside; {_NAME}")
    # Not so `@name:server`: that is a whole address, and on its platforms the id.
    if parts[-1].startswith("@"):
        raise UnusableError(_NAME)
    _ask(checks.get(kind), list_name, ":".join(parts))
    return ":".join((kind, *parts))


def _text(value: object, what: str, remedy: str) -> str:
    text = str(value if isinstance(value, str) else expect(value, int, "an id")).strip()
    if not text:
        raise UnusableError(f"{what} is empty")
    if text == "*":
        raise UnusableError(f'"*" is not an id and would let everybody in; {remedy}')
    if not text.strip("-"):
        raise UnusableError('"-" is not an id: the number after it is missing')
    return text


def _only_kind(checks: Mapping[str, CheckId | None], text: str) -> str:
    kinds = sorted(checks)
    if len(kinds) != 1:
        forms = " or ".join(f'"{kind}:{text}"' for kind in kinds) or f'"kind:{text}"'
        raise UnusableError(f"say on which platform: {forms}")
    return kinds[0]


def _ask(check: CheckId | None, list_name: str, identity: str) -> None:
    try:
        problem = check(list_name, identity) if check else None
    except Exception as error:  # noqa: BLE001 - a plugin's own check may raise anything
        problem = f"the plugin's check of this id failed ({type(error).__name__})"
    if problem:
        raise UnusableError(problem)
