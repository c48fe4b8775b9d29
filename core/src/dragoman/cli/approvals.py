"""``dragoman approvals``: tool calls that wait for a person, and the operator's word about them."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dragoman.cli.deciding import apply, operator
from dragoman.cli.tracing import add_filters, add_manifest, add_output, answer, with_store
from dragoman.states import ApprovalState

if TYPE_CHECKING:
    from dragoman.manifest.model import Manifest
    from dragoman.secret import Redactor
    from dragoman.store.trace import Table, Trace


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's actions and their arguments."""
    actions = parser.add_subparsers(metavar="action", required=True, dest="action")
    listing = actions.add_parser("list", help="list questions, newest first")
    add_filters(listing, _list, [state.value for state in ApprovalState])
    add_output(actions.add_parser("show", help="tell all of one, arguments included"), _show)
    approve = actions.add_parser("approve", help="let the tool run")
    add_manifest(approve)
    approve.add_argument("--always", action="store_true", help="it need not ask there again")
    deny = actions.add_parser("deny", help="do not let it run")
    add_manifest(deny)
    deny.add_argument("--reason", default="", help="what the agent is told")


def run(args: argparse.Namespace) -> int:
    """Look it up, or decide; return 1 where that cannot be."""
    return with_store(args, _decide if args.action in ("approve", "deny") else answer)


def _list(args: argparse.Namespace, trace: Trace) -> Sequence[Table]:
    return [trace.approvals(args.state, args.session, args.limit)]


def _show(args: argparse.Namespace, trace: Trace) -> Sequence[Table]:
    found = trace.approval(args.id)
    return [found] if found.rows else []


def _decide(args: argparse.Namespace, manifest: Manifest, store: Path, _: Redactor) -> int:
    """Write the operator's word, and tell a gateway that runs."""
    from dragoman.store.operations import Decide

    approved = args.action == "approve"
    wish = Decide(
        approval_id=args.id,
        verdict=ApprovalState.APPROVED if approved else ApprovalState.DENIED,
        by=operator(),
        reason="" if approved else args.reason,
        always=approved and args.always,
        now=time.time(),
    )
    decided = apply(wish, manifest, store)
    if decided is None:
        print(f"there is no question {args.id}", file=sys.stderr)
        return 1
    if not decided.won:
        print(f"{args.id} is {decided.approval.verdict.value} already", file=sys.stderr)
        return 1
    print(f"{args.id} {decided.approval.verdict.value}")
    return 0
