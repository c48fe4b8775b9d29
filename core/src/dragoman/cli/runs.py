"""``dragoman runs``: what became of messages, from receipt to confirmation."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from dragoman.cli.tracing import add_filters, add_output, answer, with_store
from dragoman.states import TurnState

if TYPE_CHECKING:
    from dragoman.store.trace import Table, Trace


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's actions and their arguments."""
    actions = parser.add_subparsers(metavar="action", required=True)
    listing = actions.add_parser("list", help="list turns, newest first")
    add_filters(listing, _list, [state.value for state in TurnState])
    one = actions.add_parser("show", help="tell all of one turn, event, delivery or session")
    add_output(one, _show)


def run(args: argparse.Namespace) -> int:
    """Look it up and print it; return 1 if it is not there."""
    return with_store(args, answer)


def _list(args: argparse.Namespace, trace: Trace) -> Sequence[Table]:
    turns = trace.runs(args.state, args.session, args.limit)
    if not args.session:
        return [turns]
    session = trace.session(args.session)
    return [session, turns] if session.rows else []


def _show(args: argparse.Namespace, trace: Trace) -> Sequence[Table]:
    return trace.about(args.id)
