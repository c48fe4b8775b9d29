"""The parts of a runtime's table that runtimes have in common."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias
from zoneinfo import ZoneInfo

import attrs
from attrs.validators import gt, optional

from dragoman.secret import Secret

_NAME: Final = re.compile(r"[A-Za-z][\w-]{0,31}", re.ASCII)
_DELICATE: Final = re.compile(r"key|token|secret|passw|auth|cookie|credential", re.IGNORECASE)

_NO_ZONE: Final = (
    'must be a time zone of the IANA database, as in "Europe/Berlin"; where the system has no such '
    "database, pip install tzdata"
)

Values: TypeAlias = Mapping[str, str | Secret]
"""Named values that a program is started with or a server is called with."""


def described(text: str, **more: object) -> dict[str, object]:
    """Return a field's metadata: what editors, ``dragoman init`` and the documentation say."""
    return {"help": text, **more}


def is_server(_: object, __: attrs.Attribute[Any], value: str) -> None:
    """Validate a field: its text is the address of a server, without credentials."""
    if not re.fullmatch(r"https?://[^\s/@?#]+(/[^\s?#]*)?", value):
        msg = "must be the http or https address of a server, with its path and without credentials"
        raise ValueError(msg)


def is_time_zone(_: object, __: attrs.Attribute[Any], value: str) -> None:
    """Validate a field: its text names a time zone that this machine knows."""
    try:
        ZoneInfo(value)
    except (ValueError, OSError) as error:  # its own error, ZoneInfoNotFoundError, is a KeyError
        raise ValueError(_NO_ZONE) from error
    except KeyError:
        raise ValueError(_NO_ZONE) from None


def has_names(_: object, __: attrs.Attribute[Any], value: Mapping[str, object]) -> None:
    """Validate a table of tables: each has a name that logs and models can bear."""
    if not all(_NAME.fullmatch(name) for name in value):
        msg = "a name below it is no name: 1 to 32 letters, digits, _ and -, a letter first"
        raise ValueError(msg)


def is_discreet(_: object, __: attrs.Attribute[Any], value: Values) -> None:
    """Validate named values: what looks like a secret has to be one."""
    for name, each in value.items():
        if isinstance(each, str) and _DELICATE.search(name):
            msg = f'{name} looks like a secret; write {name} = {{ env = "NAME" }} instead of it'
            raise ValueError(msg)


@attrs.frozen(kw_only=True)
class McpTable:
    """``[runtimes.<id>.mcp.<name>]``: an MCP server, started by ``command`` or reached at ``url``."""

    command: str | None = attrs.field(
        default=None,
        metadata=described("the program of a server that speaks over stdin and stdout"),
    )
    args: tuple[str, ...] = attrs.field(default=(), metadata=described("the program's arguments"))
    env: Values = attrs.field(
        factory=dict,
        validator=is_discreet,
        metadata=described(
            "its environment, texts or secrets, beside HOME, LOGNAME, PATH, SHELL, TERM and USER"
        ),
    )
    cwd: Path | None = attrs.field(
        default=None, metadata=described("the folder that it is started in")
    )
    url: str | None = attrs.field(
        default=None,
        validator=optional(is_server),
        metadata=described("the address of a server that speaks HTTP, instead of command"),
    )
    headers: Values = attrs.field(
        factory=dict,
        validator=is_discreet,
        metadata=described("headers of every request, texts or secrets"),
    )
    transport: Literal["http", "sse"] = attrs.field(
        default="http", metadata=described("streamable HTTP, or the older form with events")
    )
    allow: tuple[str, ...] = attrs.field(
        default=(), metadata=described("the only tools of it that agents get; all by default")
    )
    deny: tuple[str, ...] = attrs.field(
        default=(), metadata=described("tools of it that no agent gets")
    )
    read_only: tuple[str, ...] = attrs.field(
        default=(),
        metadata=described("tools of it that change nothing, so that a turn may repeat them"),
    )
    approval: Literal["always", "never"] | tuple[str, ...] = attrs.field(
        default="never", metadata=described("whether a person is asked first; or for which tools")
    )
    connect_timeout: float = attrs.field(
        default=10.0, validator=gt(0), metadata=described("longest wait for a connection, seconds")
    )
    call_timeout: float = attrs.field(
        default=60.0, validator=gt(0), metadata=described("longest wait for an answer, seconds")
    )

    def __attrs_post_init__(self) -> None:
        """Check what depends on more than one key."""
        if (self.command is None) == (self.url is None):
            msg = "needs exactly one of command (a program) and url (a server that runs elsewhere)"
            raise ValueError(msg)
        of_others = ("headers",) if self.url is None else ("args", "env", "cwd")
        given = [key for key in of_others if getattr(self, key)]
        if given:
            kind = "url" if self.url is None else "command"
            msg = f"{', '.join(given)} belongs to servers with {kind}; remove it"
            raise ValueError(msg)
        if set(self.allow) & set(self.deny):
            msg = "allow and deny name the same tool; remove it from one of them"
            raise ValueError(msg)
