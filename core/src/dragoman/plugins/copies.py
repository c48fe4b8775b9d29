"""Reads metadata: where each distribution with plugins is installed, and how often."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import attrs

from dragoman.plugins.versions import normalised, release_of

if TYPE_CHECKING:
    from importlib_metadata import Distribution

GROUP: Final = "dragoman"
"""The entry-point group: an entry point's name is the plugin's name, its value a module."""

CORE: Final = "dragoman"
"""The distribution whose plugin names nobody else can take."""


@attrs.frozen
class Copy:
    """One place where a distribution's metadata was found.

    ``order`` sorts first what an import finds first; inside one directory, where nothing tells,
    a wheel's metadata and then the newer version.
    """

    distribution: str
    version: str
    location: str
    order: tuple[int, bool, tuple[int, ...]]
    entries: tuple[tuple[str, str], ...]
    requires: tuple[str, ...]

    @property
    def label(self) -> str:
        """The distribution and its version, as errors name it."""
        return f"{self.distribution} {self.version}"

    @property
    def is_core(self) -> bool:
        """Whether this is dragoman itself."""
        return normalised(self.distribution) == CORE


@attrs.frozen
class Copies:
    """All copies of core and of each distribution with plugins, by normalised name."""

    by_name: dict[str, list[Copy]]
    unreadable: tuple[str, ...]
    """Directories with metadata that names plugins and cannot be read."""


def find_copies(path: Sequence[str] | None) -> Copies:
    """Read the metadata on ``path``, ``sys.path`` by default. Imports no distribution."""
    import importlib_metadata  # 35 ms that a start without plugins need not pay

    where = {} if path is None else {"path": list(path)}
    discover = importlib_metadata.Distribution.discover
    ranks: dict[str, int] = {}
    for distribution in discover(**where):
        ranks.setdefault(_location(distribution), len(ranks))
    found: dict[str, list[Copy]] = {}
    unreadable: set[str] = set()

    def take(candidates: Iterator[Distribution]) -> None:
        for distribution in candidates:
            try:
                copy = _read(distribution, ranks)
            except Exception:  # noqa: BLE001 - metadata of others, broken in any way
                unreadable.add(_location(distribution))
                continue
            copies = found.setdefault(normalised(copy.distribution), [])
            if copy not in copies:
                copies.append(copy)

    take(distribution for distribution in discover(**where) if _has_plugins(distribution))
    for name in sorted({*found, CORE}):  # a copy without plugins can hide one that has some
        take(iter(discover(name=name, **where)))
    return Copies(found, tuple(sorted(unreadable)))


def _has_plugins(distribution: Distribution) -> bool:
    try:
        text = distribution.read_text("entry_points.txt") or ""
    except Exception:  # noqa: BLE001 - metadata of others; what is not text names no plugin
        return False
    return f"[{GROUP}]" in text


def _read(distribution: Distribution, ranks: dict[str, int]) -> Copy:
    location = _location(distribution)
    name, version = distribution.name, distribution.version
    if not (name and version):
        msg = "no name or no version"
        raise ValueError(msg)
    return Copy(
        distribution=name,
        version=version,
        location=location,
        order=(
            ranks[location],
            distribution.read_text("METADATA") is None,
            tuple(-number for number in release_of(version)),
        ),
        entries=tuple(
            sorted((e.name, e.value) for e in distribution.entry_points if e.group == GROUP)
        ),
        requires=tuple(distribution.requires or ()),
    )


def _location(distribution: Distribution) -> str:
    return str(Path(str(distribution.locate_file(""))).resolve())
