"""``dragoman sessions``: which there are, what each has, and whether its history is whole."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dragoman.cli.tracing import add_manifest, add_output, answer, print_tables, with_store

if TYPE_CHECKING:
    from dragoman.inspecting import Inspection, Inspects
    from dragoman.manifest.model import Manifest
    from dragoman.secret import Redactor
    from dragoman.store.guest import Mended
    from dragoman.store.trace import Table, Trace


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's actions and their arguments."""
    actions = parser.add_subparsers(metavar="action", required=True, dest="action")
    listing = actions.add_parser("list", help="list sessions, those used last first")
    add_manifest(listing, id_=False)
    listing.add_argument("--json", action="store_true", help="print JSON, for programs")
    listing.add_argument("--platform", help="only those of this platform")
    listing.add_argument("--profile", help="only those of this profile")
    listing.add_argument("--limit", type=int, default=50, help="how many; 50")
    listing.set_defaults(query=_list, texts=False, id="")
    one = actions.add_parser("show", help="tell what a session is and has")
    add_output(one, _show)
    one.add_argument("--limit", type=int, default=20, help="most tools, files and turns; 20")
    items = actions.add_parser("inspect", help="show the items of a history, and what is wrong")
    add_output(items, _show)
    items.add_argument("--limit", type=int, default=200, help="how many of the newest items; 200")
    items.add_argument(
        "--repair", action="store_true", help="begin the history anew without what is wrong in it"
    )


def run(args: argparse.Namespace) -> int:
    """Look it up, and mend it where asked; return 1 where that cannot be."""
    return with_store(args, answer if args.action == "list" else _about_one)


def _list(args: argparse.Namespace, trace: Trace) -> Sequence[Table]:
    from dragoman.store.overview import sessions

    return [sessions(trace, args.platform, args.profile, args.limit)]


def _show(args: argparse.Namespace, trace: Trace) -> Sequence[Table]:
    from dragoman.store.overview import whole

    return whole(trace, args.id, args.limit)


def _about_one(
    args: argparse.Namespace, manifest: Manifest, store: Path, redactor: Redactor
) -> int:
    """Find the one session whose id begins as given, and carry out the action."""
    from dragoman.store.overview import named
    from dragoman.store.trace import open_trace

    with open_trace(store) as trace:
        found = named(trace, args.id)
    if len(found) != 1:
        which = f"several sessions: {', '.join(found)}" if found else "no session"
        print(f"{args.id} names {which}", file=sys.stderr)
        return 1
    args.id = found[0]
    action = answer if args.action == "show" else _inspect
    return action(args, manifest, store, redactor)


def _inspect(args: argparse.Namespace, manifest: Manifest, store: Path, redactor: Redactor) -> int:
    """Print a session's items and what is wrong with them; return 1 if that stays so."""
    from dragoman.store.overview import belongs_to, lists, open_turn_of
    from dragoman.store.trace import open_trace

    with open_trace(store) as trace:
        runtime, profile = belongs_to(trace, args.id)
        open_turn = open_turn_of(trace, args.id)
        stored = lists(trace, args.id)
    inspector = _inspector(args.manifest, manifest, runtime, profile)
    found = inspector.inspect(stored)
    print_tables(_tables(found, args.limit, texts=args.texts), redactor, as_json=args.json)
    notes = [
        *found.notes,
        *([f"turn {open_turn} is open: it is at work here"] if open_turn else []),
    ]
    for note in notes:
        print(redactor(note), file=sys.stderr)
    if args.repair:
        return _repair(store, args.id, inspector)
    return 1 if found.problems else 0


def _inspector(path: Path, manifest: Manifest, runtime: str, profile: str) -> Inspects:
    """Return what knows the items of a runtime; its plugin may run operator code for that."""
    from dragoman.cli.serving import make_importable
    from dragoman.errors import ManifestError
    from dragoman.inspecting import AsStored
    from dragoman.plugins.catalogue import Catalogue

    name = f"runtimes.{runtime}"
    table = next((each for each in manifest.components if each.name == name), None)
    if table is None:
        raise ManifestError([f"the session belongs to [{name}], which the manifest does not have"])
    component = Catalogue.installed().resolve(table.kind, table.plugin)
    if component.inspector is None:
        return AsStored()
    make_importable(path)
    return component.inspector(table.config, name, profile)


def _tables(found: Inspection, limit: int, *, texts: bool) -> list[Table]:
    from dragoman.store.trace import Table

    columns = ("namespace", "number", "kind", "name", "id", "size", *(("text",) if texts else ()))
    newest = found.lines[max(len(found.lines) - limit, 0) :]
    return [
        Table("items", columns, tuple(_row(line, columns) for line in newest), listed=True),
        Table(
            "problems",
            ("namespace", "number", "problem"),
            tuple((each.namespace, each.number, each.text) for each in found.problems),
            listed=True,
        ),
    ]


def _row(line: object, columns: Sequence[str]) -> tuple[Any, ...]:
    return tuple(getattr(line, column) for column in columns)


def _repair(store: Path, session_id: str, inspector: Inspects) -> int:
    import anyio

    from dragoman.store.guest import begin_anew

    mended = anyio.run(
        begin_anew, store, session_id, lambda lists: inspector.inspect(lists).repaired
    )
    if mended.refusal:
        print(mended.refusal, file=sys.stderr)
        return 1
    print(_said(mended), file=sys.stderr)
    return 0


def _said(mended: Mended) -> str:
    if not mended.items:
        return "nothing is wrong, and nothing was changed"
    anew = ", ".join(f"{name} with {count} items" for name, count in mended.items.items())
    return f"begun anew: {anew}; a copy from before is in {mended.backup}"
