"""``dragoman check``: every problem of a manifest, with nothing started."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dragoman.manifest.document import Finding
    from dragoman.manifest.load import Inspection
    from dragoman.plugins.catalogue import Catalogue


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument(
        "-m", "--manifest", type=Path, default=Path("dragoman.toml"), help="the manifest's path"
    )
    parser.add_argument(
        "--format",
        choices=("text", "json"),
        default="text",
        help="text for people, json for programs",
    )
    parser.add_argument(
        "--open",
        action="store_true",
        help="also open every component: imports its SDK and your agents, connects to nothing",
    )


def run(args: argparse.Namespace) -> int:
    """Read the manifest and say what was found; return 2 if it cannot be used."""
    from dragoman.manifest.load import inspect
    from dragoman.plugins.catalogue import Catalogue

    catalogue = Catalogue.installed()
    found = inspect(args.manifest, catalogue)
    if args.open and found.manifest is not None:
        found = _opened(found, args.manifest, catalogue)
    if args.format == "json":
        print(_as_json(found))
    else:
        _print(found, args.manifest)
    return 2 if found.manifest is None else 0


def _opened(found: Inspection, path: Path, catalogue: Catalogue) -> Inspection:
    """Add what opening the components finds."""
    import attrs

    from dragoman.cli.opening import problems_of_opening
    from dragoman.cli.serving import make_importable
    from dragoman.manifest.document import Finding

    assert found.manifest is not None
    make_importable(path)
    lines = problems_of_opening(found.manifest, catalogue, found.secrets)
    if not lines:
        return found
    problems = tuple(Finding(path.name, None, "", line) for line in lines)
    return attrs.evolve(found, manifest=None, problems=problems)


def _print(found: Inspection, path: Path) -> None:
    for problem in found.problems:
        print(problem, file=sys.stderr)
    for warning in found.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    if found.manifest is not None:
        print(f"{path}: ok")
        for table in found.manifest.components:
            print(f"  {table.name}: {table.plugin}")


def _as_json(found: Inspection) -> str:
    components = found.manifest.components if found.manifest else ()
    return json.dumps(
        {
            "ok": found.manifest is not None,
            "problems": [_finding(each) for each in found.problems],
            "warnings": [_finding(each) for each in found.warnings],
            "components": [{"name": each.name, "plugin": each.plugin} for each in components],
        },
        indent=2,
        ensure_ascii=False,
    )


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "file": finding.file,
        "line": finding.line,
        "path": finding.path,
        "message": finding.message,
    }
