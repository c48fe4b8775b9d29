"""Values of the contract as the columns that hold them, and back."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, Final

from cattrs import Converter

from dragoman.messages import Address, Button, Inbound, Lane
from dragoman.store.values import StoredFile


def dump(value: Any) -> str:
    """Return compact JSON, all ASCII."""
    return json.dumps(value, separators=(",", ":"))


def storable(text: str) -> str:
    """Return ``text`` as a column can hold it.

    SQLite's JSON ends a text at a NUL, and keeps half a surrogate pair as bytes that nobody can
    read back: one such row would make whole queries fail. Both become U+FFFD.
    """
    if text.isascii() and "\0" not in text:
        return text
    return _UNSTORABLE.sub("\ufffd", text)


_UNSTORABLE: Final = re.compile("[\0\ud800-\udfff]")


def dump_rows(rows: Iterable[Sequence[Any]]) -> str:
    """Return rows of columns as one JSON array, all texts `storable`."""
    return dump(
        [[storable(value) if isinstance(value, str) else value for value in row] for row in rows]
    )


def lane_column(lane: Lane) -> str:
    """Return the column text of a lane: injective, and never parsed."""
    return dump(lane)


def address_to_json(address: Address) -> dict[str, str]:
    """Return an address as JSON data."""
    data: dict[str, str] = _CONVERTER.unstructure(address)
    return data


def address_from_json(data: dict[str, str]) -> Address:
    """Return the address that `address_to_json` wrote."""
    return _CONVERTER.structure(data, Address)


def event_to_json(event: Inbound) -> str:
    """Return an event as the text of its column."""
    return dump(_CONVERTER.unstructure(event))


def event_from_json(text: str) -> Inbound:
    """Return the event that `event_to_json` wrote, or an earlier dragoman did."""
    return _CONVERTER.structure(json.loads(text), Inbound)


def file_to_json(file: StoredFile | None) -> str | None:
    """Return a file as the text of its column."""
    return None if file is None else dump(_CONVERTER.unstructure(file))


def file_from_json(text: str | None) -> StoredFile | None:
    """Return the file that `file_to_json` wrote."""
    return None if text is None else _CONVERTER.structure(json.loads(text), StoredFile)


def buttons_to_json(buttons: Sequence[Button]) -> str | None:
    """Return buttons as the text of their column."""
    return dump(_CONVERTER.unstructure(buttons)) if buttons else None


def buttons_from_json(text: str | None) -> tuple[Button, ...]:
    """Return the buttons that `buttons_to_json` wrote."""
    return () if text is None else _CONVERTER.structure(json.loads(text), tuple[Button, ...])


def _converter() -> Converter:
    converter = Converter(detailed_validation=False)
    converter.register_unstructure_hook(datetime, datetime.isoformat)
    converter.register_structure_hook(datetime, lambda text, _: datetime.fromisoformat(text))
    return converter


_CONVERTER: Final = _converter()


def bound(sql: str, parameters: Sequence[Any]) -> Sequence[Any] | dict[str, Any]:
    """Return parameters as the database module wants them for ``sql``.

    Numbered placeholders (``?1``) count as named: newer Pythons take a mapping for them only.
    """
    if "?1" in sql:
        return {str(number): value for number, value in enumerate(parameters, 1)}
    return parameters
