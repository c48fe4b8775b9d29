"""``dragoman pair``: codes that strangers were shown, and who is let in by them."""

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

_CODES = """
    SELECT identity AS account, purpose, label AS calls_itself, asked, made_at, expires_at
    FROM codes WHERE expires_at > :now ORDER BY made_at DESC
"""
ENDED = "This has ended: the access of who asked for it was taken back."


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's actions and their arguments."""
    actions = parser.add_subparsers(metavar="action", required=True, dest="action")
    listing = actions.add_parser("list", help="list who was shown a code that is good still")
    add_manifest(listing, id_=False)
    listing.add_argument("--json", action="store_true", help="print JSON, for programs")
    listing.set_defaults(query=_list, texts=False, id="")
    approve = actions.add_parser("approve", help="let in whoever was shown a code")
    approve.add_argument("code", help="as it was shown")
    approve.add_argument("--role", choices=("user", "operator"), default="user", help="user")
    add_manifest(approve, id_=False)
    revoke = actions.add_parser("revoke", help="let an account in no longer")
    revoke.add_argument("identity", help="the account, as kind:id")
    add_manifest(revoke, id_=False)


def run(args: argparse.Namespace) -> int:
    """List, let in, or out; return 1 where a code or an account is not known."""
    actions = {"list": answer, "approve": _approve, "revoke": _revoke}
    return with_store(args, actions[args.action])


def _list(_: argparse.Namespace, trace: Trace) -> Sequence[Table]:
    return [trace.ask("codes", _CODES, listed=True, now=time.time())]


def _approve(args: argparse.Namespace, manifest: Manifest, store: Path, _: Redactor) -> int:
    from dragoman.flow.pairing import LET_IN, LOCKED, WRONG, split
    from dragoman.keys import new_id
    from dragoman.roles import Role
    from dragoman.store.operations import Redeem

    first, second = split(args.code)
    wish = Redeem(
        purpose="pair",
        selector=first,
        verifier=second,
        actor=operator(),
        attempt=new_id("try"),
        role=Role(args.role),
        told=LET_IN,
        notice_id=new_id("msg"),
        now=time.time(),
    )
    used = apply(wish, manifest, store)
    if not used.identity:
        print(LOCKED if used.locked else WRONG, file=sys.stderr)
        return 1
    print(f"{used.identity} is let in as {args.role}")
    return 0


def _revoke(args: argparse.Namespace, manifest: Manifest, store: Path, _: Redactor) -> int:
    from dragoman.store.operations import SetRole

    identity = account(args.identity, manifest)
    kind = identity.partition(":")[0]
    wish = SetRole(
        identity=identity,
        role=None,
        by=operator(),
        platforms=tuple(name for name, one in manifest.kinds.items() if one == kind),
        notice=ENDED,
        now=time.time(),
    )
    known = apply(wish, manifest, store)
    access = manifest.access
    listed = identity in {*access.owners, *access.operators, *access.users}
    if listed:
        print(f"the manifest still lets {identity} in", file=sys.stderr)
    elif not known:
        print(f"{identity} was not let in by a code or an operator", file=sys.stderr)
    else:
        print(f"{identity} is let in no longer")
    return 0 if known and not listed else 1
