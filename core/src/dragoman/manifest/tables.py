"""The tables of components, ``[platforms.<id>]`` and its siblings, and who may name them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, Protocol, TypeAlias, get_args

import attrs

from dragoman.components import Component
from dragoman.errors import PluginError
from dragoman.manifest.document import ID, Document
from dragoman.manifest.ids import CheckId
from dragoman.manifest.model import ComponentTable
from dragoman.manifest.problems import UnusableError, expect, suggest
from dragoman.manifest.structure import Structurer

Kind: TypeAlias = Literal["platforms", "runtimes", "memories", "sinks", "stores", "extensions"]

KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
OWN_KEYS: Final[Mapping[str, tuple[type, str]]] = {
    "plugin": (str, "plugin, or plugin:component; the table's id by default"),
    "optional": (bool, "start without this table when its plugin cannot be used"),
}
"""The keys that core reads itself in every component's table: their types and meanings."""


class Resolver(Protocol):
    """What knows the plugins: `dragoman.plugins.catalogue.Catalogue`, or less."""

    def resolve(self, kind: str, reference: str) -> Component[Any, Any]:
        """Return the component that a reference names; raise `dragoman.PluginError`."""
        ...


@attrs.define(eq=False)
class Tables:
    """The component tables of a document. Problems of theirs are reported to it.

    ``left_out`` has the full names of optional tables whose plugin cannot be used; ``checks`` the
    check of ids for each kind of platform.
    """

    document: Document
    catalogue: Resolver
    structurer: Structurer
    usable: list[ComponentTable] = attrs.field(factory=list)
    left_out: set[str] = attrs.field(factory=set)
    checks: dict[str, CheckId | None] = attrs.field(factory=dict)

    def read(self) -> None:
        """Read every table of every kind; those that can be used come in the file's order."""
        at = self.document.problems.at
        for kind in KINDS:
            with at(kind):
                for name, value in expect(self.document.raw.get(kind, {}), dict).items():
                    with at(kind, name):
                        check_table_id(name)
                        self._read_table(kind, name, expect(value, dict))
        self.usable.sort(key=lambda table: self.document.line_of((table.kind, table.id)))

    def full_names(self) -> list[str]:
        """Return the names of all tables, usable or not, as in ``platforms.telegram``."""
        return [f"{kind}.{name}" for kind in KINDS for name in self.document.table(kind)]

    def reference(self, value: object, kind: str) -> str:
        """Return ``value`` when it is the id of a table of ``kind`` that is not left out."""
        name = expect(value, str)
        if f"{kind}.{name}" in self.left_out:
            raise UnusableError(
                f"needs {kind}.{name}, which is left out because its plugin cannot be used"
            )
        known = self.document.table(kind)
        if name not in known:
            raise UnusableError(f"names no [{kind}.<id>] table{suggest(name, known)}")
        return name

    def _read_table(self, kind: Kind, name: str, raw: dict[str, Any]) -> None:
        at = self.document.problems.at
        plugin: str | None = None
        optional = False
        with at(kind, name, "optional"):
            optional = expect(raw.get("optional", False), bool)
        with at(kind, name, "plugin"):
            plugin = expect(raw.get("plugin", name), str)
        if plugin is None:
            return
        family = plugin.partition(":")[0]
        if kind == "platforms":
            self.checks.setdefault(family, None)
        try:
            cls = self.catalogue.resolve(kind, plugin).config
        except PluginError as error:
            if not optional:
                raise UnusableError(str(error)) from None
            self.left_out.add(f"{kind}.{name}")
            self.document.warnings.add((kind, name), f"left out: {error}")
            return
        if kind == "platforms":
            self.checks[family] = getattr(cls, "check_id", None)
        own = {key: value for key, value in raw.items() if key not in OWN_KEYS}
        config = self.structurer.record(own, cls)
        self.usable.append(
            ComponentTable(kind=kind, id=name, plugin=plugin, config=config, optional=optional)
        )


def check_table_id(name: str) -> None:
    """Raise `UnusableError` for an id that a table cannot have."""
    if not ID.fullmatch(name):
        raise UnusableError("an id is 1 to 32 of a-z, 0-9, _ and -, and begins with a letter")
