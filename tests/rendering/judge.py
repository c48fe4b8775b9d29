"""What is wrong with the parts of a document, as another Markdown parser and Unicode see them."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Final

import attrs
import regex
from markdown_it import MarkdownIt
from markdown_it.token import Token

from dragoman.render.indents import FAR
from rendering.documents import Document

PARSER: Final = MarkdownIt().enable(["table", "strikethrough"])
_FENCE: Final = re.compile(r"[ \t]*(?:`{3,}|~{3,})[^\n]*")
_ROW: Final = re.compile(r"[ \t]*\|?[^\n]*\|[^\n]*")


class Wrong(Exception):
    """A part that should not be."""


@attrs.define(eq=False)
class Structure:
    """What a parser sees of a text."""

    code: dict[str, list[str]] = attrs.field(factory=lambda: defaultdict(list))
    """The contents of fenced blocks by info string."""
    tables: dict[str, list[list[str]]] = attrs.field(factory=lambda: defaultdict(list))
    """The rows of tables by their header's first cell; each is padded to the header's columns."""
    prose: list[str] = attrs.field(factory=list)
    """Graphemes outside both, as far as they can be seen."""
    links: list[str] = attrs.field(factory=list)
    other: int = 0
    """Blocks of code without a fence."""

    def add(self, text: str) -> None:
        """Parse a text and add what is in it."""
        tokens = PARSER.parse(text)
        lines = text.split("\n")
        cells: list[str] | None = None
        table = ""
        for token in tokens:
            if token.type == "fence":
                self._fence(token, lines)
            elif token.type == "code_block":
                self.other += 1
            elif token.type == "tr_open":
                cells = []
            elif token.type == "tr_close" and cells is not None:
                if not table:
                    table = cells[0]
                    self.tables[table].append([f"{len(cells)} columns"])
                else:
                    self.tables[table].append(cells)
                cells = None
            elif token.type == "table_close":
                table = ""
            elif token.type == "inline":
                self._links(token.children or [])
                if cells is not None:
                    cells.append(token.content)
                else:
                    self.prose += [c for c in graphemes(token.content) if _is_visible(c)]

    def _fence(self, token: Token, lines: Sequence[str]) -> None:
        assert token.map is not None
        last = lines[token.map[1] - 1].strip()
        if not (token.map[1] - 1 > token.map[0] and last and not last.strip(token.markup[0])):
            raise Wrong(f"a block is not closed: {token.info!r}")
        self.code[token.info.strip()].append(token.content)

    def _links(self, tokens: Sequence[Token]) -> None:
        self.links += [str(token.attrs["href"]) for token in tokens if token.type == "link_open"]


def graphemes(text: str) -> list[str]:
    """Return what people see as characters, without white space."""
    return [c for c in regex.findall(r"\X", text) if not c.isspace()]


def check(document: Document, parts: Sequence[str]) -> Iterator[str]:
    """Yield what each cut goes through; raises `Wrong`."""
    for part in parts:
        size = document.unit.measure(part)
        if size > document.limit:
            raise Wrong(f"a part of {size} is above the limit")
    yield from _cuts(document, _positions(document, parts))
    whole, apart = Structure(), Structure()
    whole.add(document.text)
    for part in parts:
        apart.add(part)
    _same_code(document, whole, apart)
    _same_tables(document, whole, apart)
    if whole.prose != apart.prose:
        raise Wrong(f"prose: {_difference(whole.prose, apart.prose)}")
    if apart.other > whole.other:
        raise Wrong("prose became code")
    _same_links(document, whole, apart)


def _positions(document: Document, parts: Sequence[str]) -> list[int]:
    """Return where the text of each part ends, in graphemes of the document."""
    text, at, ends = graphemes(document.text), 0, []
    moves = any(piece.column or "list" in piece.kind for piece in document.pieces)
    exact = "" if moves else document.text
    for part in parts:
        found = _found(text, at, part, exact) or _found(text, _visible(text, at), part, exact)
        if not found:
            raise Wrong(f"not the text: {part!r}\ninstead of {''.join(text[at : at + 200])!r}")
        at = found
        ends.append(at)
    if _visible(text, at) != len(text):
        raise Wrong(f"lost at the end: {''.join(text[at:])[:200]!r}")
    return ends


def _found(text: Sequence[str], at: int, part: str, exact: str) -> int:
    """Return where a part ends that is found at a position, or 0.

    Its white space has to be that of ``exact``, unless that is empty: deep lists may move.
    """
    for candidate in _without_added(part):
        own = graphemes(candidate)
        if exact and candidate.strip() not in exact:
            continue
        if own and text[at : at + len(own)] == own:
            return at + len(own)
    return 0


def _visible(text: Sequence[str], at: int) -> int:
    """Return the next visible grapheme: parts in which none can be seen are left out."""
    while at < len(text) and not _is_visible(text[at]):
        at += 1
    return at


def _is_visible(cluster: str) -> bool:
    return any(unicodedata.category(c) not in {"Cc", "Cf"} for c in cluster)


def _without_added(part: str) -> Iterator[str]:
    """Yield a part without the lines that may have been added to it, the likeliest first."""
    lines = part.split("\n")
    fence = _FENCE.fullmatch(lines[-1]) is not None
    for first in (0, 1, 2):
        for last in (0, 1) if fence else (0,):
            if first == 1 and not _FENCE.fullmatch(lines[0]):
                continue
            if first == 2 and not (len(lines) > 2 and _ROW.fullmatch(lines[0])):
                continue
            text = "\n".join(lines[first : len(lines) - last])
            yield text
            if first == 2:
                for bars in range(1, lines[1].count("-") + 1):
                    if text.startswith("|" * bars):
                        yield text[bars:]


def _cuts(document: Document, ends: Sequence[int]) -> Iterator[str]:
    """Yield which kind of piece each cut goes through, or ``between``."""
    borders, at = [], 0
    for piece in document.pieces:
        at += len(graphemes(piece.text))
        borders.append((at, piece))
    index = 0
    for end in ends[:-1]:
        while borders[index][0] < end:
            index += 1
        border, piece = borders[index]
        yield "between" if border == end else piece.kind


def _same_code(document: Document, whole: Structure, apart: Structure) -> None:
    columns = {
        word: piece.column
        for piece in document.pieces
        for word in re.findall(r"\w+ \d+$", piece.text, re.MULTILINE)
    }
    if whole.code.keys() != apart.code.keys():
        raise Wrong(f"languages: {set(whole.code) ^ set(apart.code)}")
    for info, (code,) in whole.code.items():
        at, lead = 0, " " * columns.get(info, 0)
        for content in apart.code[info]:
            for text in (content, re.sub(f"^{lead}", "", content, flags=re.MULTILINE)):
                found = next((s for s in (text, text[:-1]) if code.startswith(s, at)), None)
                if found is not None:
                    at += len(found)
                    break
            else:
                raise Wrong(f"code of {info}: {content!r}\ninstead of {code[at : at + 200]!r}")
        if code[at:].strip():
            raise Wrong(f"code of {info} is lost: {code[at:]!r}")


def _same_tables(document: Document, whole: Structure, apart: Structure) -> None:
    for name, rows in whole.tables.items():
        parts = apart.tables.get(name, [])
        if {tuple(row) for row in parts if row[0].endswith(" columns")} != {tuple(rows[0])}:
            raise Wrong(f"table {name}: {parts[:1]} instead of {rows[:1]}")
        far = max(sum(map(len, row)) for row in rows) > FAR  # what is that far off has no column
        if far and Counter("".join(_columns(rows))) == Counter("".join(_columns(parts))):
            continue
        if _columns(rows) != _columns(parts):
            raise Wrong(f"table {name}: {_columns(parts)} instead of {_columns(rows)}")


def _columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return each column's text; where a row was cut its cells go on in the next one."""
    body = [row for row in rows if not row[0].endswith(" columns")]
    return ["".join("".join(column).split()) for column in zip(*body, strict=True)]


def _same_links(document: Document, whole: Structure, apart: Structure) -> None:
    """Links of at most a third of the limit are whole, even in a part that repeats a header."""
    lost = Counter(whole.links) - Counter(apart.links)
    for address in lost:
        found = re.search(rf"\[[^][]*\]\({re.escape(address)}[^()]*\)", document.text)
        if found is not None and document.unit.measure(found[0]) * 3 <= document.limit:
            raise Wrong(f"a link is torn: {found[0]!r}")


def _difference(first: Sequence[str], second: Sequence[str]) -> str:
    at = next(
        (i for i, (a, b) in enumerate(zip(first, second, strict=False)) if a != b),
        min(len(first), len(second)),
    )
    low = max(at - 20, 0)
    return f"{''.join(second[low : at + 60])!r} instead of {''.join(first[low : at + 60])!r}"
