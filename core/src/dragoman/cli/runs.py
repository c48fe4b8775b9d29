"""``dragoman runs``: what became of messages, from receipt to confirmation."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dragoman.cli.tracing import add_filters, add_output, answer, with_store
from dragoman.states import TurnState

if TYPE_CHECKING:
    from dragoman.manifest.model import Manifest
    from dragoman.secret import Redactor
    from dragoman.store.trace import Table, Trace


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's actions and their arguments."""
    actions = parser.add_subparsers(metavar="action", required=True)
    listing = actions.add_parser("list", help="list turns, newest first")
    add_filters(listing, _list, [state.value for state in TurnState])
    one = actions.add_parser("show", help="tell all of one turn, event, delivery or session")
    add_output(one, _show)
    one.add_argument(
        "--request",
        action="store_true",
        help="print what the turn sent to models instead, each call's request on a line",
    )
    one.add_argument("--call", type=int, help="only that of this call")


def run(args: argparse.Namespace) -> int:
    """Look it up and print it; return 1 if it is not there."""
    asked = getattr(args, "request", False) or getattr(args, "call", None) is not None
    return with_store(args, _requests if asked else answer)


def _list(args: argparse.Namespace, trace: Trace) -> Sequence[Table]:
    turns = trace.runs(args.state, args.session, args.limit)
    if not args.session:
        return [turns]
    session = trace.session(args.session)
    return [session, turns] if session.rows else []


def _show(args: argparse.Namespace, trace: Trace) -> Sequence[Table]:
    return trace.about(args.id)


def _requests(args: argparse.Namespace, _: Manifest, store: Path, redactor: Redactor) -> int:
    """Print requests as they went out; return 1 where one that is asked for is not kept."""
    from dragoman.store.trace import open_trace

    with open_trace(store) as trace:
        found = [one for one in trace.sent(args.id) if args.call in (None, one[0])]
    if not found:
        which = f", call {args.call}" if args.call is not None else ""
        print(f"no such call of a model: {args.id}{which}", file=sys.stderr)
    for number, body in found:
        if body is None:
            print(f"call {number}: what was sent is not kept", file=sys.stderr)
        else:
            print(_harmless(redactor(body)))
    return 0 if found and all(body is not None for _, body in found) else 1


def _harmless(body: str) -> str:
    """Return JSON that says the same, and holds nothing that commands a terminal."""
    return "".join(
        sign if sign.isprintable() or sign in "\n\r\t" else json.dumps(sign)[1:-1] for sign in body
    )
