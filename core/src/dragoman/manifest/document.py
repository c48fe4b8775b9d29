"""A manifest as a document: its tables, their lines, and what was found about them so far."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import attrs

from dragoman.manifest.locate import KeyPath, locate
from dragoman.manifest.problems import LONGEST_KEY, Problems

FORMAT: Final = 1
"""The version of the manifest's format that this dragoman reads."""

ID: Final = re.compile(r"[a-z][a-z0-9_-]{0,31}")

_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")
_POSITION: Final = re.compile(r" ?\(at (?:line (\d+), column \d+|end of document)\)$")


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
class Document:
    """One manifest while it is read: problems forbid to use it, warnings ask for a look."""

    file: str
    raw: Mapping[str, Any] = attrs.field(repr=False)
    lines: Mapping[KeyPath, int] = attrs.field(repr=False)
    problems: Problems = attrs.field(factory=Problems)
    warnings: Problems = attrs.field(factory=Problems)

    def table(self, key: str) -> dict[str, Any]:
        """Return a top-level table; an empty one where there is none, or something else."""
        value = self.raw.get(key)
        return value if isinstance(value, dict) else {}

    def line_of(self, path: KeyPath) -> int:
        """Return the line of the innermost part of ``path`` that is written in the file."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 1)

    def findings(self, problems: Problems, redact: Callable[[str], str]) -> tuple[Finding, ...]:
        """Return problems by line, each once, with known secrets taken out of their messages."""
        found = {
            Finding(self.file, self.line_of(path), spell(path), redact(text)): None
            for path, text in problems.found
        }
        return tuple(sorted(found, key=lambda each: (each.line or 0, each.path)))


def open_document(path: Path) -> Document | Finding:
    """Return the document at ``path``, or the one problem that makes it unreadable."""
    file = str(path)
    text = ""
    try:
        data = path.read_bytes()
        text = data.decode("utf-8-sig")
        return Document(file, tomllib.loads(text), locate(text))
    except FileNotFoundError:
        return Finding(file, None, "", "there is no such file — `dragoman init` writes one")
    except OSError as error:
        return Finding(file, None, "", f"cannot be read: {error.strerror}")
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        return Finding(file, line, "", "not UTF-8; save the file with that encoding")
    except tomllib.TOMLDecodeError as error:
        position = _POSITION.search(str(error))
        line = int(position[1]) if position and position[1] else text.count("\n") + 1
        return Finding(file, line, "", f"not TOML: {_POSITION.sub('', str(error))}")
    except RecursionError:
        return Finding(file, None, "", "arrays or tables are nested too deeply")
    except ValueError:
        return Finding(file, None, "", "not TOML: a number has too many digits")


def spell(path: KeyPath) -> str:
    """Return a key path as the file writes it: ``platforms.telegram.allow[1]``."""
    parts = (f"[{part}]" if isinstance(part, int) else f".{_key(part)}" for part in path)
    return "".join(parts).removeprefix(".")


def _key(part: str) -> str:
    if len(part) > LONGEST_KEY:
        part = f"{part[:8]}…"
    return part if _BARE.fullmatch(part) else json.dumps(part, ensure_ascii=False)
