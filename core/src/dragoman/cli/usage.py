"""``dragoman usage``: what turns used of which models, summed as one likes."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from dragoman.cli.tracing import add_manifest, answer, with_store

if TYPE_CHECKING:
    from dragoman.store.trace import Table, Trace

_GROUPS = ("day", "profile", "person", "model")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    add_manifest(parser, id_=False)
    parser.add_argument(
        "--by",
        type=_groups,
        default=("day", "model"),
        metavar="WORDS",
        help="one or more of day, profile, person, model, with commas; day,model by default",
    )
    parser.add_argument("--since", type=_day, help="first day, as 2026-01-31 (UTC)")
    parser.add_argument("--until", type=_day, help="last day")
    parser.add_argument("--json", action="store_true", help="print JSON, for programs")
    parser.set_defaults(query=_usage, texts=False, id="")


def run(args: argparse.Namespace) -> int:
    """Sum it up and print it."""
    return with_store(args, answer)


def _usage(args: argparse.Namespace, trace: Trace) -> Sequence[Table]:
    since = args.since.timestamp() if args.since else 0.0
    until = (args.until + timedelta(days=1)).timestamp() if args.until else float("inf")
    return [trace.usage(args.by, since, until), trace.usage((), since, until)]


def _groups(text: str) -> tuple[str, ...]:
    words = tuple(dict.fromkeys(word.strip() for word in text.split(",")))
    if unknown := [word for word in words if word not in _GROUPS]:
        msg = f"{unknown[0]!r} is none of {', '.join(_GROUPS)}"
        raise argparse.ArgumentTypeError(msg)
    return words


def _day(text: str) -> datetime:
    try:
        return datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC)
    except ValueError:
        msg = f"{text!r} is no day; write it as 2026-01-31"
        raise argparse.ArgumentTypeError(msg) from None
