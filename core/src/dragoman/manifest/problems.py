"""Findings about a manifest: what is wrong or doubtful, and at which line."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Final

import attrs

from dragoman.manifest.locate import KeyPath

_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")
_SHOWN_KEY: Final = 64
"""Longer keys are cut: such a "key" is a paste that went wrong, possibly of a secret."""


class UnusableValueError(Exception):
    """Raised for one value of a manifest; the text is ours, and safe to show."""


@attrs.frozen
class Finding:
    """One problem or warning. ``path`` is empty where it is about the file as a whole."""

    file: str
    line: int | None
    path: str
    message: str

    def __str__(self) -> str:
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        return ": ".join(part for part in (place, self.path, self.message) if part)


@attrs.define(eq=False)
class Report:
    """Collects findings while a manifest is read. One report is about one file."""

    file: str
    lines: Mapping[KeyPath, int] = attrs.field(factory=dict)
    problems: list[Finding] = attrs.field(factory=list)
    warnings: list[Finding] = attrs.field(factory=list)
    explained: set[KeyPath] = attrs.field(factory=set)
    """Paths whose problem is known: what else goes wrong there follows from it."""

    def problem(self, path: KeyPath, message: str) -> None:
        """Add something that forbids to use the manifest."""
        if path not in self.explained:
            self.problems.append(self._finding(path, message))

    def warn(self, path: KeyPath, message: str) -> None:
        """Add something that the operator should look at."""
        self.warnings.append(self._finding(path, message))

    def line_of(self, path: KeyPath) -> int:
        """Return the line of the innermost part of ``path`` that is written in the file."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 1)

    def in_order(
        self, findings: list[Finding], redact: Callable[[str], str]
    ) -> tuple[Finding, ...]:
        """Return findings by line, each once, with known secrets taken out of their messages."""
        unique = {attrs.evolve(each, message=redact(each.message)): None for each in findings}
        return tuple(sorted(unique, key=lambda each: (each.line or 0, each.path)))

    def _finding(self, path: KeyPath, message: str) -> Finding:
        return Finding(self.file, self.line_of(path), spell(path), message)


def spell(path: KeyPath) -> str:
    """Return a key path as the file writes it: ``platforms.telegram.allow[1]``."""
    spelled = ""
    for part in path:
        if isinstance(part, int):
            spelled += f"[{part}]"
        else:
            spelled += f".{_key(part)}" if spelled else _key(part)
    return spelled


def suggest(name: str, known: list[str]) -> str:
    """Return `` — did you mean 'x'?`` when ``name`` is close to something known, else nothing."""
    close = get_close_matches(name[:_SHOWN_KEY], known, n=1)
    return f" — did you mean {close[0]!r}?" if close else ""


def _key(part: str) -> str:
    if len(part) > _SHOWN_KEY:
        part = f"{part[:8]}…"
    return part if _BARE.fullmatch(part) else json.dumps(part, ensure_ascii=False)
