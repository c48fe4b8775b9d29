"""Opens every component of a manifest and closes it again: nothing is connected or kept."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import anyio
import attrs

from dragoman.assembly import Opener
from dragoman.causes import leaves
from dragoman.clock import SystemClock
from dragoman.errors import DragomanError
from dragoman.logs import logger
from dragoman.manifest.model import Manifest
from dragoman.plugins.catalogue import Catalogue
from dragoman.secret import Redactor, Secret
from dragoman.store.sqlite import open_sqlite


def problems_of_opening(
    manifest: Manifest, catalogue: Catalogue, secrets: Sequence[Secret]
) -> list[str]:
    """Return what stands in the way of each component, one line each; runs operator code."""
    redactor = Redactor()
    for secret in secrets:
        redactor.learn(secret)
    with tempfile.TemporaryDirectory() as folder:
        elsewhere = attrs.evolve(manifest, data_dir=Path(folder))
        return anyio.run(_open_each, elsewhere, catalogue, redactor)


async def _open_each(manifest: Manifest, catalogue: Catalogue, redactor: Redactor) -> list[str]:
    problems = []
    async with open_sqlite(None) as store:
        for table in manifest.components:
            alone = attrs.evolve(manifest, components=(attrs.evolve(table, optional=False),))
            log = logger("check", redactor)
            opener = Opener(alone, catalogue, store, SystemClock(), redactor, log)
            try:
                async with opener.open_all():
                    pass
            except* DragomanError as group:
                problems += [str(error) for error in leaves(group)]
    return problems
