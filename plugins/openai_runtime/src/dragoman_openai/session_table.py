"""The manifest's ``[runtimes.<id>.session]``: where the history of a conversation is kept."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

import attrs
from attrs.validators import ge, optional

from dragoman import Secret

BackendName: TypeAlias = Literal[
    "dragoman",
    "sqlite",
    "async-sqlite",
    "advanced-sqlite",
    "redis",
    "sqlalchemy",
    "mongodb",
    "dapr",
    "conversations",
]
Continuation: TypeAlias = Literal[
    "session", "conversation", "previous_response", "auto_previous_response"
]

UNPROVEN: Final = frozenset({"mongodb", "dapr", "conversations"})
"""Back ends that were never run against the server they are for."""

_KEYS: Final[Mapping[str, frozenset[str]]] = {
    "dragoman": frozenset(),
    "sqlite": frozenset({"path"}),
    "async-sqlite": frozenset({"path"}),
    "advanced-sqlite": frozenset({"path"}),
    "redis": frozenset({"url", "prefix", "ttl"}),
    "sqlalchemy": frozenset({"url", "create_tables"}),
    "mongodb": frozenset({"url", "database"}),
    "dapr": frozenset({"url", "store", "ttl"}),
    "conversations": frozenset(),
}
_NEEDED: Final[Mapping[str, Mapping[str, str]]] = {
    "redis": {"url": 'url = "redis://127.0.0.1:6379/0"'},
    "sqlalchemy": {"url": 'url = "postgresql+asyncpg://127.0.0.1/agents"'},
    "mongodb": {"url": 'url = "mongodb://127.0.0.1:27017"'},
    "dapr": {"url": 'url = "127.0.0.1:50001"', "store": 'store = "statestore"'},
}
_NO_WRAPPING: Final[Mapping[str, str]] = {
    "dragoman": "dragoman's own store has no encryption; encrypt the disk, or choose another",
    "conversations": "the service has to read what it keeps",
}
_OPENAI_MODEL: Final = re.compile(r"(?:ft:)?(?:gpt-|o\d)[^\s]*")
_WITH_PASSWORD: Final = re.compile(r"://[^/\s@]*:[^/\s]*@")


def _help(text: str) -> dict[str, object]:
    return {"help": text}


def _is_open(_: object, __: attrs.Attribute[Any], value: str | Secret | None) -> None:
    if isinstance(value, str) and _WITH_PASSWORD.search(value):
        msg = 'must not hold a password; write url = { env = "SESSION_URL" }'
        raise ValueError(msg)


def _is_compactable(_: object, __: attrs.Attribute[str], value: str) -> None:
    if not _OPENAI_MODEL.fullmatch(value):
        msg = "must be a model of OpenAI, as in gpt-4.1; no other compacts"
        raise ValueError(msg)


@attrs.frozen(kw_only=True)
class EncryptTable:
    """What encrypts each item before it is written."""

    key: Secret = attrs.field(
        metadata=_help("the key, at least 32 random characters; whoever loses it loses the history")
    )
    ttl: int | None = attrs.field(
        default=None,
        validator=optional(ge(60)),
        metadata=_help("age at which items are no longer read, seconds; never by default"),
    )

    @key.validator
    def _is_long(self, _: object, value: Secret) -> None:
        if len(value.reveal()) < 32:
            msg = "must have 32 characters or more; a password is too easily guessed"
            raise ValueError(msg)


@attrs.frozen(kw_only=True)
class CompactTable:
    """When the model service replaces a long history by a short one, between two turns."""

    model: str = attrs.field(
        default="gpt-4.1", validator=_is_compactable, metadata=_help("the model that compacts")
    )
    above: int = attrs.field(
        default=100,
        validator=ge(1),
        metadata=_help("items in the history, those of people left out, from which it is done"),
    )


@attrs.frozen(kw_only=True)
class SessionTable:
    """A ``[runtimes.<id>.session]`` table."""

    backend: BackendName = attrs.field(
        default="dragoman",
        metadata=_help("where the history is kept; all but dragoman are not fenced"),
    )
    url: str | Secret | None = attrs.field(
        default=None,
        validator=_is_open,
        metadata=_help("the server's address; as a secret where it holds a password"),
    )
    path: Path | None = attrs.field(
        default=None,
        metadata=_help("file of the sqlite back ends; beside the gateway's store by default"),
    )
    prefix: str = attrs.field(
        default="dragoman", metadata=_help("what the keys of redis begin with")
    )
    database: str = attrs.field(default="dragoman", metadata=_help("the database of mongodb"))
    store: str | None = attrs.field(
        default=None, metadata=_help("the name of dapr's state store component")
    )
    create_tables: bool = attrs.field(
        default=True, metadata=_help("let sqlalchemy create its tables where they are missing")
    )
    ttl: int | None = attrs.field(
        default=None,
        validator=optional(ge(60)),
        metadata=_help(
            "age since its last message at which redis or dapr forgets a whole history, seconds"
        ),
    )
    encrypt: EncryptTable | None = attrs.field(
        default=None, metadata=_help("encrypt each item; not with dragoman and conversations")
    )
    compact: CompactTable | None = attrs.field(
        default=None,
        metadata=_help("let the model service shorten long histories; not with conversations"),
    )

    def __attrs_post_init__(self) -> None:
        """Check what depends on the back end."""
        for key, example in _NEEDED.get(self.backend, {}).items():
            if not getattr(self, key):
                msg = f"{key} is missing for backend {self.backend!r}; write {example}"
                raise ValueError(msg)
        unused = sorted(key for key in self._given() if key not in _KEYS[self.backend])
        if unused:
            takers = sorted(name for name, keys in _KEYS.items() if unused[0] in keys)
            msg = (
                f"{', '.join(unused)} has no meaning for backend {self.backend!r}; remove it, "
                f"or set backend to {' or '.join(takers)}"
            )
            raise ValueError(msg)
        if self.encrypt is not None and self.backend in _NO_WRAPPING:
            msg = (
                f"encrypt cannot be used with backend {self.backend!r}: "
                f"{_NO_WRAPPING[self.backend]}"
            )
            raise ValueError(msg)
        if self.compact is not None and self.backend == "conversations":
            msg = (
                "compact cannot be used with backend 'conversations', whose history the service "
                "keeps itself; remove compact"
            )
            raise ValueError(msg)

    @property
    def outside(self) -> bool:
        """Whether the history is kept outside dragoman's own store."""
        return self.backend != "dragoman"

    def address(self) -> str:
        """Return the server's address. It may hold a password: never log it."""
        return self.url.reveal() if isinstance(self.url, Secret) else self.url or ""

    def _given(self) -> list[str]:
        """Return the keys of single back ends that differ from their defaults."""
        return [
            field.name
            for field in attrs.fields(SessionTable)
            if any(field.name in keys for keys in _KEYS.values())
            and getattr(self, field.name) != field.default
        ]
