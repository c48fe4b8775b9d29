"""Each item encrypted before it leaves: the SDK's wrapper, and a test of its key.

With a wrong key the wrapper reads every history as empty and says nothing. So the first start
leaves a proof of the key in dragoman's own store, and every later one has to read it.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any, Final

import attrs

from dragoman import Host, ManifestError
from dragoman_openai.backends.backend import Make, library
from dragoman_openai.session_table import EncryptTable, SessionTable

if TYPE_CHECKING:
    from agents.memory import Session

_FOREVER: Final = 100 * 366 * 86400
"""Seconds. The wrapper's own default forgets everything after ten minutes."""
_PROOF: Final = {"role": "user", "content": "the key is right"}


@attrs.frozen
class Encryption:
    """Wraps sessions with one key."""

    _session_class: Any
    _table: EncryptTable

    def around(self, make: Make) -> Make:
        """Return a maker of encrypted sessions."""

        async def wrapped(name: str) -> Session:
            return self._wrap(name, await make(name), self._table.ttl or _FOREVER)

        return wrapped

    async def check_key(self, table: SessionTable, host: Host) -> None:
        """Raise `ManifestError` where this place's histories were written with another key."""
        record = f"session.key.{_place(table)}"
        known = await host.records.get(record)
        items = _Items([json.loads(known)] if known is not None else [])
        proof = self._wrap("proof", items, _FOREVER)
        if known is None:
            await proof.add_items([_PROOF])  # type: ignore[list-item]  # a plain item
            await host.records.put(record, json.dumps(items.items[0]))
        elif list(await proof.get_items()) != [_PROOF]:
            msg = (
                f"{host.name}.session.encrypt.key: the histories here were written with another "
                "key; restore it, or keep new histories elsewhere "
                "(another path, database, prefix or store)"
            )
            raise ManifestError([msg])

    def _wrap(self, name: str, inner: Any, ttl: int) -> Session:
        made: Session = self._session_class(name, inner, self._table.key.reveal(), ttl=ttl)
        return made


def load(table: EncryptTable, place: str) -> Encryption:
    """Import the wrapper."""
    library("cryptography.fernet", "encrypt", f"{place}.session.encrypt")
    from agents.extensions.memory import EncryptedSession

    return Encryption(EncryptedSession, table)


def _place(table: SessionTable) -> str:
    """Return a short name of where histories are, which tells nothing of an address."""
    parts = (table.backend, table.address(), table.path, table.prefix, table.database, table.store)
    return hashlib.sha256(json.dumps([str(part) for part in parts]).encode()).hexdigest()[:16]


@attrs.define(eq=False)
class _Items:
    """As much of a session as the proof needs."""

    items: list[Any]
    session_settings: None = None

    async def get_items(self, limit: int | None = None) -> list[Any]:
        return self.items if limit is None else self.items[-limit:]

    async def add_items(self, items: list[Any]) -> None:
        self.items += items
