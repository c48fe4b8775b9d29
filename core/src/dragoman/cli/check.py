"""``dragoman check``: every problem of a manifest, with nothing started."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dragoman.manifest.document import Finding
    from dragoman.manifest.load import Inspection
    from dragoman.plugins.catalogue import Catalogue
    from dragoman.protocols import Finding as ProbeFinding

    Probed = tuple[str, ProbeFinding]


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
    parser.add_argument(
        "--connect",
        action="store_true",
        help="also let every component try its connection: credentials, permissions, set-up",
    )


def run(args: argparse.Namespace) -> int:
    """Read the manifest and say what was found; return 2 if it cannot be used."""
    from dragoman.manifest.load import inspect
    from dragoman.plugins.catalogue import Catalogue

    catalogue = Catalogue.installed()
    found = inspect(args.manifest, catalogue)
    probed = _notices(found)
    if (args.open or args.connect) and found.manifest is not None:
        found, more = _opened(found, args.manifest, catalogue, connect=args.connect)
        probed += more
    if args.format == "json":
        print(_as_json(found, probed))
    else:
        _print(found, args.manifest)
        _print_probed(probed)
    failed = any(one.level == "problem" for _, one in probed)
    return 2 if found.manifest is None or failed else 0


def _notices(found: Inspection) -> list[Probed]:
    """Return what configurations say of themselves, where their class has ``notices``."""
    tables = found.manifest.components if found.manifest else ()
    return [
        (table.name, one) for table in tables for one in getattr(table.config, "notices", tuple)()
    ]


def _opened(
    found: Inspection, path: Path, catalogue: Catalogue, *, connect: bool
) -> tuple[Inspection, list[Probed]]:
    """Add what opening the components finds; return what their probes say as well."""
    import attrs

    from dragoman.cli.opening import try_opening
    from dragoman.cli.serving import make_importable
    from dragoman.manifest.document import Finding

    assert found.manifest is not None
    make_importable(path)
    opening = try_opening(found.manifest, catalogue, found.secrets, connect=connect)
    if opening.problems:
        problems = tuple(Finding(path.name, None, "", line) for line in opening.problems)
        found = attrs.evolve(found, manifest=None, problems=problems)
    return found, opening.findings


def _print(found: Inspection, path: Path) -> None:
    for problem in found.problems:
        print(problem, file=sys.stderr)
    for warning in found.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    if found.manifest is not None:
        print(f"{path}: ok")
        for table in found.manifest.components:
            print(f"  {table.name}: {table.plugin}")


def _print_probed(probed: Sequence[Probed]) -> None:
    for name, one in probed:
        remedy = f" — {one.remedy}" if one.remedy else ""
        stream = sys.stdout if one.level == "ok" else sys.stderr
        print(f"{name}: {one.level}: {one.text}{remedy}", file=stream)


def _as_json(found: Inspection, probed: Sequence[Probed]) -> str:
    components = found.manifest.components if found.manifest else ()
    return json.dumps(
        {
            "ok": found.manifest is not None,
            "problems": [_finding(each) for each in found.problems],
            "warnings": [_finding(each) for each in found.warnings],
            "probes": [
                {"name": name, "level": one.level, "text": one.text, "remedy": one.remedy}
                for name, one in probed
            ],
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
