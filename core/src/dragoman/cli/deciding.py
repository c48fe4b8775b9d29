"""What commands share that write beside a running gateway: who gives them, about whom, and the bell."""

from __future__ import annotations

import getpass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from dragoman.manifest.model import Manifest
    from dragoman.store.operations import Operation

ResultT = TypeVar("ResultT")


def operator() -> str:
    """Return who gives a command here, as rows name them."""
    return f"operator:{getpass.getuser()}"


def account(written: str, manifest: Manifest) -> str:
    """Return an account of one of the manifest's platforms as rows name it; raises
    `dragoman.ManifestError` for what names none."""
    from dragoman.errors import ManifestError
    from dragoman.manifest.ids import access_entry
    from dragoman.manifest.problems import UnusableError

    tables = [table for table in manifest.components if table.kind == "platforms"]
    kinds = {manifest.kinds[one.id]: getattr(one.config, "check_id", None) for one in tables}
    try:
        named = access_entry(written, "users", kinds)
    except UnusableError as error:
        raise ManifestError([f"{written}: {error}"]) from None
    if named.partition(":")[0] not in kinds:
        raise ManifestError([f"{written}: the manifest has no platform of that kind"])
    return named


def apply(operation: Operation[ResultT], manifest: Manifest, store: Path) -> ResultT:
    """Write an operation beside a gateway that may be running, and tell it."""
    import anyio

    from dragoman.bell import ring
    from dragoman.store.guest import write

    done = anyio.run(write, store, operation)
    ring(manifest.data_dir)
    return done
