"""``dragoman people``: accounts that are known, what they may, and which are one person's."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dragoman.cli.deciding import account, apply, operator
from dragoman.cli.tracing import add_manifest, answer, with_store

if TYPE_CHECKING:
    from dragoman.manifest.model import Manifest
    from dragoman.secret import Redactor
    from dragoman.store.trace import Table, Trace

_PEOPLE = """
    SELECT identity AS account, person, role, label AS calls_itself, changed_by, changed_at
    FROM identities
    WHERE :id = '' OR person = (SELECT person FROM identities WHERE identity = :id)
    ORDER BY person, identity
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's actions and their arguments."""
    actions = parser.add_subparsers(metavar="action", required=True, dest="action")
    listing = actions.add_parser("list", help="list accounts that the manifest does not name")
    add_manifest(listing, id_=False)
    listing.set_defaults(id="")
    show = actions.add_parser("show", help="show all accounts of a person, by one of them")
    add_manifest(show)
    for one in (listing, show):
        one.add_argument("--json", action="store_true", help="print JSON, for programs")
        one.set_defaults(query=_people, texts=False)
    grant = actions.add_parser("grant", help="let an account in, or change what it may")
    grant.add_argument("identity", help="the account, as kind:id")
    grant.add_argument("role", choices=("user", "operator"), help="what it may")
    link = actions.add_parser("link", help="say that two accounts are one person's")
    link.add_argument("identity", help="the account whose sessions are kept, as kind:id")
    link.add_argument("other", help="the other account")
    unlink = actions.add_parser("unlink", help="let an account be a person of its own")
    unlink.add_argument("identity", help="the account, as kind:id")
    for one in (grant, link, unlink):
        add_manifest(one, id_=False)


def run(args: argparse.Namespace) -> int:
    """Look up, or change; return 1 where nothing is to be changed."""
    return with_store(args, answer if args.action in ("list", "show") else _change)


def _people(args: argparse.Namespace, trace: Trace) -> Sequence[Table]:
    found = trace.ask("people", _PEOPLE, listed=True, id=args.id)
    return [found] if found.rows or not args.id else []


def _change(args: argparse.Namespace, manifest: Manifest, store: Path, _: Redactor) -> int:
    from dragoman.keys import new_id
    from dragoman.roles import Role
    from dragoman.store.operations import Link, Operation, SetRole, Unlink

    one, by, now = account(args.identity, manifest), operator(), time.time()
    wish: Operation[bool]
    if args.action == "grant":
        wish = SetRole(identity=one, role=Role(args.role), by=by, now=now)
    elif args.action == "link":
        wish = Link(identity=one, other=account(args.other, manifest), by=by, now=now)
    else:
        wish = Unlink(identity=one, person=new_id("person"), by=by, now=now)
    if not apply(wish, manifest, store):
        print(f"nothing is to be changed about {one}", file=sys.stderr)
        return 1
    return 0
