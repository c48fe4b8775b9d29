"""``dragoman deliveries``: the ledger of what was owed, and the operator's word about it."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dragoman.cli.tracing import add_filters, add_manifest, add_output, answer, with_store
from dragoman.states import DeliveryState

if TYPE_CHECKING:
    from dragoman.manifest.model import Manifest
    from dragoman.secret import Redactor
    from dragoman.store.trace import Table, Trace


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's actions and their arguments."""
    actions = parser.add_subparsers(metavar="action", required=True, dest="action")
    listing = actions.add_parser("list", help="list deliveries, newest first")
    add_filters(listing, _list, [state.value for state in DeliveryState])
    add_output(actions.add_parser("show", help="tell all of one delivery"), _show)
    for name, text in (
        ("retry", "send again what is uncertain, failed or abandoned; prints the id to watch"),
        ("abandon", "send no more what is pending or uncertain"),
    ):
        add_manifest(actions.add_parser(name, help=text))


def run(args: argparse.Namespace) -> int:
    """Look it up, or decide; return 1 where that cannot be."""
    return with_store(args, _decide if args.action in ("retry", "abandon") else answer)


def _list(args: argparse.Namespace, trace: Trace) -> Sequence[Table]:
    return [trace.deliveries(args.state, args.session, args.limit)]


def _show(args: argparse.Namespace, trace: Trace) -> Sequence[Table]:
    found = trace.delivery(args.id)
    return [found] if found.rows else []


def _decide(args: argparse.Namespace, manifest: Manifest, store: Path, _: Redactor) -> int:
    """Write the operator's word, and tell a gateway that runs."""
    import anyio

    from dragoman.bell import ring
    from dragoman.store.guest import abandon, retry

    action = retry if args.action == "retry" else abandon
    decided = anyio.run(action, store, args.id, time.time())
    if decided.refusal:
        print(decided.refusal, file=sys.stderr)
        return 1
    ring(manifest.data_dir)
    print(decided.delivery_id)
    return 0
