"""``dragoman schema``: the JSON Schema of manifests, with the tables of what is installed."""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dragoman.components import Component
    from dragoman.plugins.catalogue import Catalogue


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments; it has none."""
    parser.epilog = "usage: dragoman schema > dragoman.schema.json"


def run(_: argparse.Namespace) -> int:
    """Print the schema; plugins that cannot be used are named on stderr and left out."""
    from dragoman.manifest.schema import schema
    from dragoman.plugins.catalogue import Catalogue

    print(json.dumps(schema(_installed(Catalogue.installed())), indent=2, ensure_ascii=False))
    return 0


def _installed(catalogue: Catalogue) -> dict[str, dict[str, Component[Any, Any]]]:
    from dragoman.errors import PluginError
    from dragoman.manifest.tables import KINDS

    found: dict[str, dict[str, Component[Any, Any]]] = {kind: {} for kind in KINDS}
    for plugin in catalogue.found.plugins:
        try:
            for kind in KINDS:
                found[kind] |= _references(plugin.name, catalogue.components(kind, plugin.name))
        except PluginError as error:
            print(f"warning: left out: {error}", file=sys.stderr)
    return found


def _references(
    plugin: str, components: tuple[Component[Any, Any], ...]
) -> dict[str, Component[Any, Any]]:
    """Return each component under every reference that a manifest may use for it."""
    references = {f"{plugin}:{component.name}": component for component in components}
    named = [each for each in components if each.name == plugin] or list(components)
    if len(named) == 1:
        references[plugin] = named[0]
    return references
