"""A manifest on its way from bytes to values: the raw tables, their lines, the findings so far."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import attrs

from dragoman.manifest.locate import KeyPath, locate
from dragoman.manifest.primitives import toml_type
from dragoman.manifest.problems import Finding, Report, suggest

if TYPE_CHECKING:
    from cattrs import Converter

FORMAT: Final = 1
"""The version of the manifest's format that this dragoman reads."""

ID: Final = re.compile(r"[a-z][a-z0-9_-]{0,31}")

_POSITION: Final = re.compile(r" ?\(at (?:line (\d+), column \d+|end of document)\)$")


@attrs.define(eq=False)
class Document:
    """One manifest while it is read. ``base`` is the directory that relative paths start at."""

    raw: dict[str, Any] = attrs.field(repr=False)
    base: Path
    report: Report
    converter: Converter = attrs.field(repr=False)

    def structured(self, path: KeyPath, value: object, cls: Any) -> Any | None:
        """Return ``value`` as a ``cls``, or report its problems under ``path``."""
        from dragoman.manifest.structure import structure

        result = structure(self.converter, value, cls)
        for inner, message in result.problems:
            self.report.problem((*path, *inner), message)
        return result.value

    def table(self, key: str) -> dict[str, Any]:
        """Return a top-level table; an empty one where there is none, or something else."""
        value = self.raw.get(key, {})
        if isinstance(value, dict):
            return value
        self.report.problem((key,), f"expected a table, got {toml_type(value)}")
        return {}

    def subtables(self, key: str) -> dict[str, dict[str, Any]]:
        """Return the tables of a top-level table, without those that cannot be one."""
        return {
            name: value
            for name, value in self.table(key).items()
            if self._is_usable((key, name), name, value)
        }

    def _is_usable(self, path: KeyPath, name: str, value: object) -> bool:
        if not isinstance(value, dict):
            self.report.problem(path, f"expected a table, got {toml_type(value)}")
            return False
        if not ID.fullmatch(name):
            self.report.problem(
                path, "an id is 1 to 32 of a-z, 0-9, _ and -, and begins with a letter"
            )
            return False
        return True


def parse(path: Path, file: str) -> tuple[dict[str, Any], dict[KeyPath, int]] | Finding:
    """Return a file's tables and their lines, or the one problem that makes it unreadable."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return Finding(file, None, "", "there is no such file — `dragoman init` writes one")
    except OSError as error:
        return Finding(file, None, "", f"cannot be read: {error.strerror}")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        return Finding(file, line, "", "not UTF-8; save the file with that encoding")
    try:
        return tomllib.loads(text), locate(text)
    except tomllib.TOMLDecodeError as error:
        message = str(error)
        position = _POSITION.search(message)
        line = int(position[1]) if position and position[1] else text.count("\n") + 1
        return Finding(file, line, "", f"not TOML: {_POSITION.sub('', message)}")
    except RecursionError:
        return Finding(file, None, "", "arrays or tables are nested too deeply")
    except ValueError:
        return Finding(file, None, "", "not TOML: a number has too many digits")


def check_format(raw: dict[str, Any], report: Report) -> bool:
    """Say whether the rest of the file can be understood at all."""
    version = raw.get("manifest")
    if version is None:
        report.problem(("manifest",), f"write `manifest = {FORMAT}`: the version of this format")
    elif isinstance(version, bool) or not isinstance(version, int):
        report.problem(("manifest",), f"expected an integer, got {toml_type(version)}")
    elif version != FORMAT:
        report.problem(
            ("manifest",), f"version {version} is not known; this dragoman reads {FORMAT}"
        )
        return False
    return True


def report_unknown_keys(raw: dict[str, Any], known: list[str], report: Report) -> None:
    """Report top-level keys that mean nothing."""
    for key in raw:
        if key not in known:
            report.problem((key,), f"unknown key{suggest(key, known)}")


def report_unexpanded(raw: dict[str, Any], report: Report) -> None:
    """Report each string that counts on being expanded: it would be used as it stands."""
    for path, text in strings_in(raw):
        if "${" in text:
            report.problem(
                path,
                '"${" is not expanded here: write the value itself, '
                'or { env = "NAME" } where a secret is expected',
            )
            report.explained |= {path, path[:-1]}


def strings_in(value: object, path: KeyPath = ()) -> Iterator[tuple[KeyPath, str]]:
    """Yield every string value inside a table, with its key path."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from strings_in(inner, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from strings_in(inner, (*path, index))
