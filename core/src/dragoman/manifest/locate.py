"""Where each key of a TOML text stands: key path to line number.

`tomllib` says what a text means and forgets where it said so. This module reads the same text
again, known to be valid by then, and only keeps the lines.
"""

from __future__ import annotations

import re
import tomllib
from typing import Final, TypeAlias

import attrs

KeyPath: TypeAlias = tuple[str | int, ...]
"""Keys of tables and indices of arrays, from the top of the document."""

_BLANK: Final = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_SPACE: Final = re.compile(r"[ \t]*")
_KEY: Final = re.compile(r"""[A-Za-z0-9_-]+|"(?:\\.|[^"\\])*"|'[^']*'""")
_STRING: Final = re.compile(
    r'"""(?:\\.|[^\\])*?"{3,5}'
    r"|'''.*?'{3,5}"
    r'|"(?:\\.|[^"\\])*"'
    r"|'[^']*'",
    re.DOTALL,
)
_PLAIN: Final = re.compile(r"[^,\]}#\n]+")


def locate(text: str) -> dict[KeyPath, int]:
    """Return the line, counted from 1, of every table, key and array element in ``text``.

    ``text`` must be valid TOML: what this returns for anything else has no meaning. A table has
    the line of its own header, or else of the first key or header that implies it.
    """
    return _Reader(text.replace("\r\n", "\n")).read()


@attrs.define(eq=False)
class _Reader:
    """One pass over a text; ``position`` only moves forward."""

    text: str
    position: int = 0
    line: int = 1
    lines: dict[KeyPath, int] = attrs.field(factory=dict)
    lengths: dict[KeyPath, int] = attrs.field(factory=dict)
    """How many elements each array of tables has so far."""

    def read(self) -> dict[KeyPath, int]:
        table: KeyPath = ()
        self.skip(_BLANK)
        while self.position < len(self.text):
            if self.text[self.position] == "[":
                table = self.header()
            else:
                self.assignment(table)
            self.skip(_BLANK)
        return self.lines

    def skip(self, pattern: re.Pattern[str]) -> str:
        """Move behind what ``pattern`` matches here, and return it."""
        match = pattern.match(self.text, self.position)
        found = match.group() if match else ""
        self.position += len(found)
        self.line += found.count("\n")
        return found

    def skip_mark(self, mark: str) -> bool:
        """Move behind ``mark`` when it stands here."""
        if not self.text.startswith(mark, self.position):
            return False
        self.position += len(mark)
        return True

    def key(self) -> list[str]:
        """Read a key, dotted or not."""
        parts: list[str] = []
        while True:
            self.skip(_SPACE)
            token = self.skip(_KEY)
            parts.append(_unquoted(token) if token[0] in "\"'" else token)
            self.skip(_SPACE)
            if not self.skip_mark("."):
                return parts

    def header(self) -> KeyPath:
        line = self.line
        is_array = self.skip_mark("[[")
        if not is_array:
            self.skip_mark("[")
        *parents, last = self.key()
        self.skip_mark("]]" if is_array else "]")
        path: KeyPath = ()
        for part in parents:
            path = (*path, part)
            self.lines.setdefault(path, line)
            if path in self.lengths:
                path = (*path, self.lengths[path] - 1)
        path = (*path, last)
        if is_array:
            self.lines.setdefault(path, line)
            index = self.lengths.get(path, 0)
            self.lengths[path] = index + 1
            path = (*path, index)
        # An explicit header outranks an earlier one that only implied this table.
        self.lines[path] = line
        return path

    def assignment(self, table: KeyPath) -> None:
        line = self.line
        path = table
        for part in self.key():
            path = (*path, part)
            self.lines.setdefault(path, line)
        self.skip_mark("=")
        self.skip(_SPACE)
        self.value(path)

    def value(self, path: KeyPath) -> None:
        if self.skip_mark("["):
            self.array(path)
        elif self.skip_mark("{"):
            self.inline_table(path)
        elif self.text[self.position] in "\"'":
            self.skip(_STRING)
        else:
            self.skip(_PLAIN)

    def array(self, path: KeyPath) -> None:
        index = 0
        self.skip(_BLANK)
        while not self.skip_mark("]"):
            element = (*path, index)
            self.lines[element] = self.line
            self.value(element)
            self.skip(_BLANK)
            self.skip_mark(",")
            self.skip(_BLANK)
            index += 1

    def inline_table(self, path: KeyPath) -> None:
        self.skip(_BLANK)
        while not self.skip_mark("}"):
            self.assignment(path)
            self.skip(_BLANK)
            self.skip_mark(",")
            self.skip(_BLANK)


def _unquoted(token: str) -> str:
    """Return what a quoted key means; the one who knows TOML's escapes is asked."""
    value: str = tomllib.loads(f"key = {token}")["key"]
    return value
