"""Opens every component of a manifest and closes it again: nothing is kept, and nothing connected
unless asked for."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final, cast

import anyio
import attrs

from dragoman.assembly import Opener, unserved
from dragoman.capabilities import Capabilities
from dragoman.causes import describe, leaves
from dragoman.clock import SystemClock
from dragoman.errors import DragomanError
from dragoman.health import Health
from dragoman.logs import logger
from dragoman.manifest.model import Manifest
from dragoman.plugins.catalogue import Catalogue
from dragoman.protocols import Finding, Probes
from dragoman.secret import Redactor, Secret
from dragoman.store.sqlite import open_sqlite

PROBE_SECONDS: Final = 30.0


@attrs.define(eq=False)
class Opening:
    """What opening found: problems, one line each, and by component what its probe says."""

    problems: list[str] = attrs.field(factory=list)
    findings: list[tuple[str, Finding]] = attrs.field(factory=list)


def try_opening(
    manifest: Manifest, catalogue: Catalogue, secrets: Sequence[Secret], *, connect: bool = False
) -> Opening:
    """Open each component, and with ``connect`` probe it; runs operator code."""
    redactor = Redactor()
    for secret in secrets:
        redactor.learn(secret)
    with tempfile.TemporaryDirectory() as folder:
        elsewhere = attrs.evolve(manifest, data_dir=Path(folder))
        return anyio.run(_open_each, elsewhere, catalogue, redactor, connect)


async def _open_each(
    manifest: Manifest, catalogue: Catalogue, redactor: Redactor, connect: bool
) -> Opening:
    found, clock = Opening(), SystemClock()
    health = Health(clock)
    async with open_sqlite(None) as store:
        for table in manifest.components:
            alone = attrs.evolve(manifest, components=(attrs.evolve(table, optional=False),))
            log = logger("check", redactor)
            opener = Opener(alone, catalogue, store, clock, redactor, log, health)
            try:
                async with opener.open_all() as assembly:
                    for name, product in assembly.in_order(alone) if connect else ():
                        found.findings += [(name, one) for one in await _probed(product, redactor)]
            except* DragomanError as group:
                found.problems += [str(error) for error in leaves(group)]
    if problem := unserved(health, catalogue):
        found.problems.append(str(problem))
    return found


def capabilities_of(
    manifest: Manifest, catalogue: Catalogue, platform: str, redactor: Redactor
) -> Capabilities:
    """Return what a platform can show; it is opened for that, connects to nothing and is closed.

    Raises `dragoman.PluginError` where it cannot be opened.
    """
    with tempfile.TemporaryDirectory() as folder:
        tables = [each for each in manifest.components if each.name == f"platforms.{platform}"]
        alone = attrs.evolve(
            manifest,
            data_dir=Path(folder),
            components=tuple(attrs.evolve(each, optional=False) for each in tables),
        )
        return anyio.run(_capabilities, alone, catalogue, platform, redactor)


async def _capabilities(
    alone: Manifest, catalogue: Catalogue, platform: str, redactor: Redactor
) -> Capabilities:
    log = logger("send", redactor)
    async with open_sqlite(None) as store:
        opener = Opener(alone, catalogue, store, SystemClock(), redactor, log)
        try:
            async with opener.open_all() as assembly:
                return assembly.platforms[platform].capabilities
        except* DragomanError as group:
            failed = next(leaves(group))
    raise failed


async def _probed(product: object, redactor: Redactor) -> Sequence[Finding]:
    """Return what a component finds; a probe that fails is a problem of its own."""
    if not hasattr(product, "probe"):
        return ()
    try:
        with anyio.fail_after(PROBE_SECONDS):
            findings = await cast("Probes", product).probe()
    except Exception as error:  # noqa: BLE001 - somebody else's code, and the others have their turn
        reason = str(error) if isinstance(error, DragomanError) else describe(error)
        findings = [Finding("problem", f"the probe failed: {reason}")]
    return [
        attrs.evolve(one, text=redactor(one.text), remedy=redactor(one.remedy)) for one in findings
    ]
