"""``dragoman plugins``: what is installed, from metadata alone."""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dragoman.plugins.discover import Installed


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument(
        "--format",
        choices=("text", "json"),
        default="text",
        help="text for people, json for programs",
    )


def run(args: argparse.Namespace) -> int:
    """Print the installed plugins; return 1 if one of them cannot be used."""
    from dragoman.plugins.discover import discover

    installed = discover()
    if args.format == "json":
        print(_as_json(installed))
    else:
        for line in _as_lines(installed):
            print(line)
        for warning in installed.warnings:
            print(f"warning: {warning}", file=sys.stderr)
    return 1 if any(plugin.problem for plugin in installed.plugins) else 0


def _as_lines(installed: Installed) -> list[str]:
    rows = [("plugin", "distribution", "state")]
    for plugin in installed.plugins:
        state = plugin.problem or "ok"
        if plugin.remedy:
            state += f" — {plugin.remedy}"
        rows.append((plugin.name, plugin.label, state))
    first, second = (max(len(row[column]) for row in rows) for column in (0, 1))
    return [f"{name:<{first}}  {label:<{second}}  {state}" for name, label, state in rows]


def _as_json(installed: Installed) -> str:
    plugins = [
        {
            "name": plugin.name,
            "distribution": plugin.distribution,
            "version": plugin.version,
            "module": plugin.module,
            "problem": plugin.problem,
            "remedy": plugin.remedy,
        }
        for plugin in installed.plugins
    ]
    return json.dumps({"plugins": plugins, "warnings": list(installed.warnings)}, indent=2)
