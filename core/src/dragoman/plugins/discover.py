"""Which plugins are installed, from metadata alone: nothing of a plugin is imported here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import attrs

from dragoman.errors import PluginError
from dragoman.plugins.copies import CORE, Copy, find_copies
from dragoman.plugins.versions import admits, normalised, required_range


@attrs.frozen
class InstalledPlugin:
    """A plugin as metadata describes it; with a ``problem`` it must not be imported.

    Of an object that the embedding program gave only the ``name`` is known.
    """

    name: str
    distribution: str = ""
    version: str = ""
    module: str = ""
    problem: str | None = None
    remedy: str = ""

    @property
    def label(self) -> str:
        """The distribution and its version, as errors name it."""
        return f"{self.distribution} {self.version}".strip()

    def error(self, reason: str, remedy: str = "") -> PluginError:
        """Return the error that this plugin cannot be used."""
        if self.distribution and not remedy:
            remedy = f"try: pip install --upgrade {self.distribution}, or report it to its authors"
        return PluginError(self.name, self.label, reason, remedy)


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


def _judge_all(copies: Iterable[Copy], running: str) -> Iterator[InstalledPlugin]:
    claims: dict[str, list[tuple[str, Copy]]] = {}
    for copy in copies:
        for name, module in copy.entries:
            claims.setdefault(name, []).append((module, copy))
    for name, rivals in claims.items():
        for module, copy in rivals:
            problem, remedy = _judge(name, module, copy, rivals, running)
            yield InstalledPlugin(name, copy.distribution, copy.version, module, problem, remedy)


def _judge(
    name: str, module: str, copy: Copy, rivals: Sequence[tuple[str, Copy]], running: str
) -> tuple[str | None, str]:
    """Return what is wrong with a distribution's claim to a name, and what to do about it."""
    if copy.is_core:
        return None, ""
    if any(rival.is_core for _, rival in rivals):
        return f"the name {name!r} is dragoman's own", f"pip uninstall {copy.distribution}"
    if len(rivals) > 1:
        names = " and ".join(sorted(f"{rival.label} ({other})" for other, rival in rivals))
        return f"the name {name!r} is claimed by {names}", "uninstall all but one of them"
    if not all(part.isidentifier() for part in module.split(".")):
        return f"its entry point must name a module, not {module!r}", "report it to its authors"
    wanted = required_range(copy.requires, CORE)
    if running and not admits(wanted, running):
        remedy = f"pip install --upgrade {copy.distribution} 'dragoman{wanted}'"
        return f"needs dragoman {wanted}, running {running}", remedy
    return None, ""
