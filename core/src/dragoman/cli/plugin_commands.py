"""Commands that plugins add to the program, where a manifest names the plugin."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

from dragoman.components import CliCommand


def find_command(name: str, arguments: Sequence[str]) -> CliCommand | None:
    """Return the plugin command of this name, or ``None``.

    The manifest is the one after ``-m`` or ``--manifest``, else ``dragoman.toml``. One that cannot
    be read names no plugin: what is wrong with it is for ``dragoman check`` to say.
    """
    from dragoman.plugins.catalogue import Catalogue

    names = tuple(_plugins(_manifest(arguments)))
    commands = Catalogue.installed().cli_commands(names) if names else []
    return next((command for command in commands if command.name == name), None)


def _manifest(arguments: Sequence[str]) -> Path:
    for before, after in pairwise(arguments):
        if before in ("-m", "--manifest"):
            return Path(after)
    return Path("dragoman.toml")


def _plugins(path: Path) -> Iterator[str]:
    from dragoman.plugins.loading import KINDS

    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError):
        return
    for kind in KINDS:
        tables = document.get(kind)
        for id_, table in tables.items() if isinstance(tables, dict) else ():
            plugin = table.get("plugin", id_) if isinstance(table, dict) else None
            if isinstance(plugin, str):
                yield plugin.partition(":")[0]
