"""The tables of components: ``[platforms.<id>]`` and its siblings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, Protocol, TypeAlias, get_args

import attrs

from dragoman.components import Component
from dragoman.errors import PluginError
from dragoman.manifest.document import Document
from dragoman.manifest.ids import CheckId
from dragoman.manifest.model import ComponentTable
from dragoman.manifest.primitives import toml_type
from dragoman.manifest.problems import suggest

Kind: TypeAlias = Literal["platforms", "runtimes", "memories", "sinks", "stores", "extensions"]

KINDS: Final[tuple[Kind, ...]] = get_args(Kind)


class Resolver(Protocol):
    """What knows the plugins: `dragoman.plugins.catalogue.Catalogue`, or less."""

    def resolve(self, kind: str, reference: str) -> Component[Any, Any]:
        """Return the component that a reference names; raise `dragoman.PluginError`."""
        ...


@attrs.frozen
class Tables:
    """The component tables of a manifest, in the order of the file.

    ``ids`` has every table of a kind; those that are not in ``usable`` have a problem of their
    own, except the ``left_out``: optional ones whose plugin cannot be used. ``checks`` has the
    check of ids for each kind of platform.
    """

    usable: tuple[ComponentTable, ...]
    ids: Mapping[str, tuple[str, ...]]
    left_out: frozenset[tuple[str, str]]
    checks: Mapping[str, CheckId | None]

    def reference_problem(self, kind: str, value: object) -> str | None:
        """Say why ``value`` names no table of ``kind`` that can be used, or return ``None``."""
        if not isinstance(value, str):
            return None  # its type is a problem already
        if (kind, value) in self.left_out:
            return f"needs {kind}.{value}, which is left out because its plugin cannot be used"
        if value in self.ids[kind]:
            return None
        return f"names no [{kind}.<id>] table{suggest(value, list(self.ids[kind]))}"


@attrs.define(eq=False)
class TableReader:
    """Reads all component tables of one document."""

    document: Document
    catalogue: Resolver
    usable: list[ComponentTable] = attrs.field(factory=list)
    left_out: set[tuple[str, str]] = attrs.field(factory=set)
    checks: dict[str, CheckId | None] = attrs.field(factory=dict)

    def read(self) -> Tables:
        """Read every table; problems go to the document's report."""
        ids: dict[str, tuple[str, ...]] = {}
        for kind in KINDS:
            for name, raw in self.document.subtables(kind).items():
                self._read_table(kind, name, raw)
            ids[kind] = tuple(self.document.table(kind))
        line_of = self.document.report.line_of
        self.usable.sort(key=lambda table: line_of((table.kind, table.id)))
        return Tables(tuple(self.usable), ids, frozenset(self.left_out), self.checks)

    def _read_table(self, kind: Kind, name: str, raw: dict[str, Any]) -> None:
        optional = self._option(kind, name, raw, "optional", default=False)
        plugin = self._option(kind, name, raw, "plugin", default=name)
        if plugin is None:
            return
        if kind == "platforms":
            self.checks.setdefault(plugin.partition(":")[0], None)
        component = self._resolve(kind, name, plugin, is_optional=optional is True)
        if component is None:
            return
        if kind == "platforms":
            check = getattr(component.config, "check_id", None)
            self.checks[plugin.partition(":")[0]] = check
        own = {key: value for key, value in raw.items() if key not in {"plugin", "optional"}}
        config = self.document.structured((kind, name), own, component.config)
        if config is not None:
            self.usable.append(
                ComponentTable(
                    kind=kind, id=name, plugin=plugin, config=config, optional=optional is True
                )
            )

    def _option(self, kind: Kind, name: str, raw: dict[str, Any], key: str, default: Any) -> Any:
        """Return one of core's own keys in a component's table; ``None`` when it is unusable."""
        value = raw.get(key, default)
        if type(value) is not type(default):
            expected = "a boolean" if isinstance(default, bool) else "a string"
            self.document.report.problem(
                (kind, name, key), f"expected {expected}, got {toml_type(value)}"
            )
            return None
        return value

    def _resolve(
        self, kind: Kind, name: str, plugin: str, *, is_optional: bool
    ) -> Component[Any, Any] | None:
        report = self.document.report
        try:
            return self.catalogue.resolve(kind, plugin)
        except PluginError as error:
            if is_optional:
                self.left_out.add((kind, name))
                report.warn((kind, name), f"left out: {error}")
            else:
                report.problem((kind, name), str(error))
            return None
