"""Which plugins are installed, from metadata alone: nothing of a plugin is imported here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import attrs

from dragoman.plugins.copies import CORE, Copy, find_copies
from dragoman.plugins.versions import admits, normalised, required_range


@attrs.frozen
class InstalledPlugin:
    """A plugin as metadata describes it; with a ``problem`` it must not be imported."""

    name: str
    distribution: str
    version: str
    module: str
    problem: str | None = None
    remedy: str = ""

    @property
    def label(self) -> str:
        """The distribution and its version, as errors name it."""
        return f"{self.distribution} {self.version}"


@attrs.frozen
class Installed:
    """What a search found, sorted by name; ``warnings`` are for people."""

    plugins: tuple[InstalledPlugin, ...] = ()
    warnings: tuple[str, ...] = ()

    def get(self, name: str) -> InstalledPlugin | None:
        """Return the plugin of this name; of several claimants, each says that there are others."""
        return next((plugin for plugin in self.plugins if plugin.name == name), None)


def discover(path: Sequence[str] | None = None) -> Installed:
    """Read the metadata of all distributions on ``path``, ``sys.path`` by default."""
    found = find_copies(path)
    warnings = [f"metadata in {place} cannot be read" for place in found.unreadable]
    winners = {}
    for name, copies in found.by_name.items():
        winners[name] = min(copies, key=lambda copy: copy.order)
        warnings += _about_others(winners[name], copies)
    running = winners[CORE].version if CORE in winners else ""
    plugins = sorted(_judge_all(winners.values(), running), key=_by_name)
    return Installed(tuple(plugins), tuple(sorted(warnings)))


def _about_others(winner: Copy, copies: Iterable[Copy]) -> Iterator[str]:
    for copy in copies:
        if copy is not winner:
            yield (
                f"{winner.distribution} is installed more than once: {winner.version} in "
                f"{winner.location} is used, {copy.version} in {copy.location} is not; remove one"
            )


def _by_name(plugin: InstalledPlugin) -> tuple[str, bool, str, str]:
    distribution = normalised(plugin.distribution)
    return plugin.name, distribution != CORE, distribution, plugin.module


@attrs.frozen
class _Claim:
    """A distribution says that a name stands for a module of its own."""

    name: str
    module: str
    by: Copy

    @property
    def core(self) -> bool:
        return normalised(self.by.distribution) == CORE


def _judge_all(copies: Iterable[Copy], running: str) -> Iterator[InstalledPlugin]:
    claims: dict[str, list[_Claim]] = {}
    for copy in copies:
        for name, module in copy.entries:
            claims.setdefault(name, []).append(_Claim(name, module, copy))
    for rivals in claims.values():
        for claim in rivals:
            problem, remedy = _judge(claim, rivals, running)
            yield InstalledPlugin(
                name=claim.name,
                distribution=claim.by.distribution,
                version=claim.by.version,
                module=claim.module,
                problem=problem,
                remedy=remedy,
            )


def _judge(claim: _Claim, rivals: Sequence[_Claim], running: str) -> tuple[str | None, str]:
    """Return what is wrong with a claim, and what to do about it."""
    if claim.core:
        return None, ""
    if any(rival.core for rival in rivals):
        return f"the name {claim.name!r} is dragoman's own", (
            f"pip uninstall {claim.by.distribution}"
        )
    if len(rivals) > 1:
        names = " and ".join(sorted(f"{rival.by.label} ({rival.module})" for rival in rivals))
        return f"the name {claim.name!r} is claimed by {names}", "uninstall all but one of them"
    if not all(part.isidentifier() for part in claim.module.split(".")):
        reason = f"its entry point must name a module, not {claim.module!r}"
        return reason, "report it to its authors"
    wanted = required_range(claim.by.requires, CORE)
    if running and not admits(wanted, running):
        remedy = f"pip install --upgrade {claim.by.distribution} 'dragoman{wanted}'"
        return f"needs dragoman {wanted}, running {running}", remedy
    return None, ""
