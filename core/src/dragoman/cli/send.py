"""``dragoman send``: an operator's words in a conversation, through the ledger of what is owed."""

from __future__ import annotations

import argparse
import re
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from dragoman.cli.places import add_place, find
from dragoman.cli.tracing import add_manifest, store_file, with_manifest

if TYPE_CHECKING:
    from dragoman.manifest.load import Loaded
    from dragoman.manifest.model import Manifest
    from dragoman.messages import Address
    from dragoman.secret import Redactor


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    add_place(parser)
    parser.add_argument("text", help="what to say, in Markdown; - reads it from the input")
    parser.add_argument("--plain", action="store_true", help="show it as it is, as code")
    add_manifest(parser, id_=False)


def run(args: argparse.Namespace) -> int:
    """Write it down as owed, tell a gateway that runs, and print the ids to watch."""
    return with_manifest(args, _send)


def _send(args: argparse.Namespace, loaded: Loaded, redactor: Redactor) -> int:
    import anyio

    from dragoman.bell import ring
    from dragoman.cli.opening import capabilities_of
    from dragoman.errors import ManifestError
    from dragoman.flow.parts import parts_of
    from dragoman.keys import new_id
    from dragoman.logs import logger
    from dragoman.plugins.catalogue import Catalogue
    from dragoman.render.text import is_blank, sanitise
    from dragoman.states import DeliveryState
    from dragoman.store.guest import owe
    from dragoman.store.operations import Delivery

    text = sanitise(sys.stdin.read() if args.text == "-" else args.text)
    if is_blank(text):
        raise ManifestError(["there is nothing to say: the text is empty"])
    manifest, path = loaded.manifest, store_file(loaded.manifest)
    address = anyio.run(_address, args, manifest, path, redactor)
    can = capabilities_of(manifest, Catalogue.installed(), address.platform, redactor)
    shown = _as_code(text) if args.plain else text
    parts = anyio.run(parts_of, shown, can, logger("send", redactor))
    now = time.time()
    owed = [
        Delivery(
            id=new_id("msg"), address=address, text=part, state=DeliveryState.PENDING, ready_at=now
        )
        for part in parts
    ]
    anyio.run(owe, path, owed)
    ring(manifest.data_dir)
    for one in owed:
        print(one.id)
    return 0


async def _address(
    args: argparse.Namespace, manifest: Manifest, path: Path, redactor: Redactor
) -> Address:
    from dragoman.logs import logger
    from dragoman.outbox.moves import Moves
    from dragoman.store.visit import visit

    async with visit(path) as store:
        moves = Moves(store, logger("send", redactor))
        await moves.load()
        return (await find(args, manifest, store, moves)).address


def _as_code(text: str) -> str:
    """Return Markdown that shows a text as it is."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{text.rstrip()}\n{fence}"
