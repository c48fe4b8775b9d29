"""``dragoman grants``: tools that need not ask any more, by conversation and profile."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dragoman.cli.deciding import apply
from dragoman.cli.tracing import add_manifest, answer, with_store

if TYPE_CHECKING:
    from dragoman.manifest.model import Manifest
    from dragoman.secret import Redactor
    from dragoman.store.trace import Table, Trace


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's actions and their arguments."""
    actions = parser.add_subparsers(metavar="action", required=True, dest="action")
    listing = actions.add_parser("list", help="list grants, newest first")
    add_manifest(listing, id_=False)
    listing.add_argument("--json", action="store_true", help="print JSON, for programs")
    listing.set_defaults(query=_list, texts=False, id="")
    revoke = actions.add_parser("revoke", help="let a tool ask again")
    revoke.add_argument("conversation", help="as the list names it")
    revoke.add_argument("profile", help="as the list names it")
    revoke.add_argument("tool", help="as the list names it")
    add_manifest(revoke, id_=False)


def run(args: argparse.Namespace) -> int:
    """List, or revoke; return 1 where there is no such grant."""
    return with_store(args, _revoke if args.action == "revoke" else answer)


def _list(_: argparse.Namespace, trace: Trace) -> Sequence[Table]:
    return [trace.grants()]


def _revoke(args: argparse.Namespace, manifest: Manifest, store: Path, _: Redactor) -> int:
    from dragoman.store.operations import Revoke

    wish = Revoke(conversation_id=args.conversation, profile=args.profile, tool=args.tool)
    if not apply(wish, manifest, store):
        print("there is no such grant", file=sys.stderr)
        return 1
    print(f"{args.tool} asks again")
    return 0
