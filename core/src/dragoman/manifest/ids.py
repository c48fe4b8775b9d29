"""Ids in ``[access]`` and ``[[routes]]``: written as people write them, kept in one form.

Only immutable ids count: a name can change hands, and with it the agents. Which ids a platform
has is the platform's own matter: a configuration class may define a static method
``check_id(list_name: str, id: str) -> str | None`` that says what is wrong with one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

from dragoman.manifest.primitives import toml_type
from dragoman.manifest.problems import UnusableValueError, suggest

CheckId: TypeAlias = Callable[[str, str], str | None]

ACCESS_LISTS: Final = ("owners", "users", "channels")
ROUTE_IDS: Final = ("workspace", "channel", "thread", "user")

_NUMBER: Final = re.compile(r"-?[0-9]+")
_KIND: Final = re.compile(r"[a-z][a-z0-9_-]*")


def route_id(value: object) -> str:
    """Return an id of a route: an integer and its digits in quotes are the same."""
    text = _text(value)
    _refuse_placeholders(text, "leave the key out to match everything")
    return text


def access_entry(value: object, list_name: str, checks: Mapping[str, CheckId | None]) -> str:
    """Return an entry of an access list as ``kind:id``.

    ``checks`` has a key for each kind of configured platform. Where there is only one kind, a bare
    number belongs to it; that stops being accepted, with an explanation, when a second one comes.
    """
    text = _text(value)
    remedy = "list each id that may, as kind:id"
    _refuse_placeholders(text, remedy)
    if _NUMBER.fullmatch(text):
        text = f"{_only_kind(checks, text)}:{text}"
    kind, colon, rest = text.partition(":")
    kind = kind.strip()
    if not colon or not _KIND.fullmatch(kind):
        if text.startswith("@"):
            raise UnusableValueError(_NAME)
        raise UnusableValueError('expected "kind:id", as in "telegram:12345678"')
    parts = [part.strip() for part in rest.split(":")]
    for part in parts:
        if not part:
            raise UnusableValueError(f"a part of the id after {kind}: is empty")
        _refuse_placeholders(part, remedy)
    _refuse_names(parts)
    _ask(checks.get(kind), list_name, ":".join(parts))
    return ":".join((kind, *parts))


def unknown_kind(entry: str, kinds: Sequence[str]) -> str | None:
    """Return a warning for an entry whose kind no configured platform has."""
    kind = entry.partition(":")[0]
    if kind in kinds:
        return None
    return f"no platform of kind {kind!r} is configured{suggest(kind, list(kinds))}"


_NAME: Final = (
    "names grant nothing, because they change hands: use the immutable id "
    "(people see their own with /whoami)"
)


def _text(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise UnusableValueError(f"expected an id, got {toml_type(value)}")
    text = str(value).strip()
    if not text:
        raise UnusableValueError("the id is empty")
    return text


def _refuse_placeholders(text: str, remedy: str) -> None:
    if text == "*":
        raise UnusableValueError(f'"*" is not an id and would let everybody in; {remedy}')
    if not text.strip("-"):
        raise UnusableValueError('"-" is not an id: the number after it is missing')


def _refuse_names(parts: Sequence[str]) -> None:
    """Refuse ``@name``; ``@name:server`` is a whole address, and on its platforms the id."""
    for index, part in enumerate(parts):
        if any(each.isspace() for each in part):
            raise UnusableValueError(f"an id has no white space inside; {_NAME}")
        if part.startswith("@") and index == len(parts) - 1:
            raise UnusableValueError(_NAME)


def _only_kind(checks: Mapping[str, CheckId | None], text: str) -> str:
    kinds = sorted(checks)
    if len(kinds) != 1:
        forms = " or ".join(f'"{kind}:{text}"' for kind in kinds) or f'"kind:{text}"'
        raise UnusableValueError(f"say on which platform: {forms}")
    return kinds[0]


def _ask(check: CheckId | None, list_name: str, identity: str) -> None:
    if check is None:
        return
    try:
        problem = check(list_name, identity)
    except Exception as error:  # noqa: BLE001 - a plugin's own check may raise anything
        problem = f"the plugin's check of this id failed ({type(error).__name__})"
    if problem:
        raise UnusableValueError(problem)
