"""What ``route`` and ``send`` share: a place as people name it on the command line."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Final

import attrs

from dragoman.errors import ManifestError
from dragoman.manifest.ids import access_entry
from dragoman.manifest.model import ComponentTable, Manifest
from dragoman.manifest.problems import UnusableError
from dragoman.messages import Address, Inbound, Place
from dragoman.outbox.moves import Moves
from dragoman.store.visit import Visit

FORM: Final = "expected PLATFORM:CHANNEL or PLATFORM:CHANNEL:THREAD, as in telegram:-1001234"


def add_place(parser: argparse.ArgumentParser) -> None:
    """Add what names a place."""
    parser.add_argument("place", help="PLATFORM:CHANNEL, or PLATFORM:CHANNEL:THREAD")
    parser.add_argument("--workspace", help="of the channel, where it was never heard of")
    parser.add_argument(
        "--group",
        action="store_true",
        help="that it is a group or channel, where it was never heard of",
    )


@attrs.frozen
class Found:
    """A place, and what was heard there last."""

    address: Address
    last: Inbound | None


async def find(args: argparse.Namespace, manifest: Manifest, store: Visit, moves: Moves) -> Found:
    """Return the place that the command line names, as it is now; what is not said the store knows.

    Raises `dragoman.ManifestError` for a platform that is not there, and for what is no id.
    """
    platform, channel, thread = _parts(args.place)
    platforms = {table.id: table for table in manifest.components if table.kind == "platforms"}
    if platform not in platforms:
        names = ", ".join(platforms) or "none"
        raise ManifestError([f"no [platforms.{platform}] in {args.manifest}; there are: {names}"])
    table = platforms[platform]
    as_channel, as_person = (_wrong(table, channel, what) for what in ("channels", "users"))
    if as_channel and as_person:
        raise ManifestError([f"{args.place}: {as_channel}"])
    address = Address(platform, channel, thread, args.workspace or "")
    last = await store.newest(platform, moves.names(address))
    if last is not None:
        workspace = args.workspace or last.address.workspace
        address = attrs.evolve(address, workspace=workspace, place=last.address.place)
    elif args.group or as_person:
        address = attrs.evolve(address, place=Place.GROUP)
    return Found(moves.now(address), last)


def _wrong(table: ComponentTable, id_: str, list_name: str) -> str:
    """Return why this is no id of a channel, or none of a person and so of no direct messages."""
    kind, check = table.plugin.partition(":")[0], getattr(type(table.config), "check_id", None)
    try:
        access_entry(f"{kind}:{id_}", list_name, {kind: check})
    except UnusableError as error:
        return str(error)
    return ""


def _parts(text: str) -> Sequence[str]:
    platform, _, rest = text.partition(":")
    channel, colon, thread = rest.partition(":")
    if not platform or not channel.strip() or (colon and not thread.strip()):
        raise ManifestError([f"{text!r} names no place: {FORM}"])
    return platform, channel, thread
