"""What the tests of plugins share: a clock that stands still, and a directory to install into."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import anyio
import attrs
import pytest

from dragoman.plugins.discover import Installed, discover


@attrs.define(eq=False)
class StandingClock:
    """A clock that goes on only when a test says so."""

    seconds: float = 0.0
    open: dict[anyio.CancelScope, float] = attrs.field(factory=dict)

    def boot(self) -> float:
        return self.seconds

    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=self.seconds)

    async def sleep(self, seconds: float) -> None:
        raise NotImplementedError

    @contextmanager
    def move_on_after(self, seconds: float) -> Iterator[anyio.CancelScope]:
        with anyio.CancelScope() as scope:
            self.open[scope] = self.seconds + seconds
            try:
                yield scope
            finally:
                del self.open[scope]

    def advance(self, seconds: float) -> None:
        self.seconds += seconds
        for scope, deadline in self.open.items():
            if deadline <= self.seconds:
                scope.cancel()


@attrs.define(eq=False)
class Site:
    """A directory on the search path, with distributions as installers leave them behind."""

    root: Path

    def install(
        self,
        distribution: str,
        version: str = "1.0",
        entries: dict[str, str] | None = None,
        *,
        requires: tuple[str, ...] = (),
        egg: str = "",
        at: str = "",
    ) -> Path:
        """Write metadata: a wheel's, or with ``egg`` an egg-info directory of that name."""
        place = self.root / at
        stem = f"{distribution.replace('-', '_')}-{version}.dist-info"
        info = place / (egg or stem)
        info.mkdir(parents=True)
        head = f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n"
        head += "".join(f"Requires-Dist: {line}\n" for line in requires)
        (info / ("PKG-INFO" if egg else "METADATA")).write_text(head)
        lines = "".join(f"{name} = {value}\n" for name, value in (entries or {}).items())
        if entries is not None:
            (info / "entry_points.txt").write_text(f"[dragoman]\n{lines}")
        return info

    def module(self, name: str, source: str) -> None:
        """Write an importable module."""
        (self.root / f"{name}.py").write_text(source)

    def discover(self, *places: str) -> Installed:
        """Search this directory, or directories in it in this order."""
        return discover([str(self.root / place) for place in places or ("",)])


@pytest.fixture
def clock() -> StandingClock:
    return StandingClock()


@pytest.fixture
def log() -> logging.Logger:
    return logging.getLogger("tests.plugins")


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """An empty site whose modules can be imported, and are forgotten afterwards."""
    before = set(sys.modules)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield Site(tmp_path)
    for name in set(sys.modules) - before:
        if getattr(sys.modules[name], "__file__", "").startswith(str(tmp_path)):
            del sys.modules[name]
