"""Where each key of a TOML text stands: key path to line number.

`tomllib` says what a text means and forgets where it said so. This module reads the same text
again, known to be valid by then, and only keeps the lines.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from typing import Final, TypeAlias

import attrs

KeyPath: TypeAlias = tuple[str | int, ...]
"""Keys of tables and indices of arrays, from the top of the document."""

_TOKEN: Final = re.compile(
    r"(?P<blank>[ \t\r]+|#[^\n]*)"
    r'|"""(?:\\.|[^\\])*?"{3,5}'
    r"|'''.*?'{3,5}"
    r'|"(?:\\.|[^"\\])*"'
    r"|'[^']*'"
    r"|[=\[\]{},.\n]"
    r"|[^\s=\[\]{},.#\"']+",
    re.DOTALL,
)


def locate(text: str) -> dict[KeyPath, int]:
    """Return the line, counted from 1, of every table, key and array element in ``text``.

    ``text`` must be valid TOML: what this returns for anything else has no meaning. A table has
    the line of its own header, or else of the first key or header that implies it.
    """
    return _Reader([*_tokens(text)][::-1]).read()


def _tokens(text: str) -> Iterator[tuple[str, int]]:
    """Yield what a text consists of, with the line at which each begins."""
    line = 1
    for match in _TOKEN.finditer(text):
        if not match["blank"]:
            yield match[0], line
            line += match[0].count("\n")


@attrs.define(eq=False)
class _Reader:
    """One pass over the tokens of a text; the next one is the last of the list."""

    tokens: list[tuple[str, int]]
    lines: dict[KeyPath, int] = attrs.field(factory=dict)
    lengths: dict[KeyPath, int] = attrs.field(factory=dict)
    """How many elements each array of tables has so far."""

    def read(self) -> dict[KeyPath, int]:
        table: KeyPath = ()
        while self.tokens:
            if self.ahead() == "\n":
                self.tokens.pop()
            elif self.ahead() == "[":
                table = self.header()
            else:
                self.assignment(table)
        return self.lines

    def ahead(self) -> str:
        return self.tokens[-1][0] if self.tokens else "\n"

    def key(self) -> Iterator[str]:
        """Read a key, dotted or not, and the mark that ends it."""
        mark = "."
        while mark == ".":
            token, _ = self.tokens.pop()
            # The one who knows TOML's escapes is asked what a quoted key means.
            yield tomllib.loads(f"key = {token}")["key"] if token[0] in "\"'" else token
            mark, _ = self.tokens.pop()

    def header(self) -> KeyPath:
        _, line = self.tokens.pop()
        is_array = self.ahead() == "["
        if is_array:
            self.tokens.pop()
        parts = [*self.key()]
        if is_array:
            self.tokens.pop()
        path: KeyPath = ()
        for depth, part in enumerate(parts, start=1):
            path = (*path, part)
            self.lines.setdefault(path, line)
            if is_array and depth == len(parts):
                self.lengths[path] = self.lengths.get(path, 0) + 1
            if path in self.lengths:
                path = (*path, self.lengths[path] - 1)
        # An explicit header outranks an earlier one that only implied this table.
        self.lines[path] = line
        return path

    def assignment(self, path: KeyPath) -> None:
        _, line = self.tokens[-1]
        for part in self.key():
            path = (*path, part)
            self.lines.setdefault(path, line)
        self.value(path)

    def value(self, path: KeyPath) -> None:
        """Read a single value, or an array or inline table up to the mark that closes it."""
        opening, _ = self.tokens.pop()
        if opening not in {"[", "{"}:
            while self.ahead() not in {"\n", ",", "]", "}"}:
                self.tokens.pop()
            return
        index = 0
        while self.ahead() not in {"]", "}"}:
            if self.ahead() in {"\n", ","}:
                self.tokens.pop()
            elif opening == "{":
                self.assignment(path)
            else:
                self.lines[(*path, index)] = self.tokens[-1][1]
                self.value((*path, index))
                index += 1
        self.tokens.pop()
