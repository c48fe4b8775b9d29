"""Markdown in many scripts, made from a seed: every construct that a cut may meet."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Final

import attrs

from dragoman.capabilities import LengthUnit

LATIN: Final = (
    "the answer depends on what you ask, and why. Well (so far) it's done! two-part".split()
)
CJK: Final = ["日本語の文章です。", "これは\uff01", "漢字", "한국어", "中文標點\uff0c"]
RTL: Final = ["مرحبا", "שלום", "עולם.", "سلام،"]
EMOJI: Final = ["👨‍👩‍👧", "🇺🇳", "👍🏽", "❤️", "😀", "🏴\U000e0067\U000e0062\U000e007f"]
COMBINING: Final = ["e\u0301\u0323", "क्षि", "각", "สวัสดี", "a\u0300\u0316\u034fb"]
BROKEN: Final = ["\ud83d", "x\udc88y", "\0", "a\0b", "\u200b", "\u202e", "c\u0301\ud800"]
SCRIPTS: Final = {"cjk": CJK, "rtl": RTL, "emoji": EMOJI, "combining": COMBINING, "broken": BROKEN}
CODE: Final = [
    "x = 1",
    "    if y:",
    "        return '`'",
    "",
    "# | a |",
    "'é日'",
    "\tz()",
    "a" * 70,
]
LANGUAGES: Final = ["python", "c++", "js", "sh", "text"]
LIMITS: Final = ((64, 300, 72), (300, 2000, 23), (2000, 4096, 4.2), (4096, 40_000, 0.6))
"""From, to, and how often per hundred: small ones are as telling, and quick."""


@attrs.frozen
class Piece:
    """One block of a document, and what it shows about cuts."""

    kind: str
    text: str
    column: int = 0
    """By how much the code or the rows inside are indented."""


@attrs.frozen
class Document:
    """A text to split, for one limit in one unit."""

    seed: int
    pieces: tuple[Piece, ...]
    limit: int
    unit: LengthUnit

    @property
    def text(self) -> str:
        """The Markdown."""
        return "\n\n".join(piece.text for piece in self.pieces)


@attrs.define(eq=False)
class Maker:
    """Makes the pieces of one document; every block of code and every table has a number."""

    random: random.Random
    columns: int
    """The most that a table may have: its header has to leave room in a part."""
    number: int = 0

    def next(self) -> int:
        """Return the next number."""
        self.number += 1
        return self.number

    def until(self, size: int, make: Callable[[], str], between: str = " ") -> str:
        """Return words, lines or rows that take about ``size`` characters."""
        found: list[str] = []
        left = size
        while left > 0 or not found:
            found.append(make())
            left -= len(found[-1]) + len(between)
        return between.join(found)

    def word(self) -> str:
        """Return a word, mostly a plain one."""
        if self.random.random() < 0.75:
            return self.random.choice(LATIN)
        return self.random.choice(self.random.choice(list(SCRIPTS.values())[:-1]))

    def words(self, size: int) -> str:
        """Return a line of words."""
        return self.until(size, self.word)

    def prose(self, size: int) -> Piece:
        """Return paragraphs."""
        lines = self.until(size, lambda: self.words(self.random.randint(5, 200)), "\n")
        return Piece("prose", lines.replace("\n", "\n\n", self.random.randint(0, 3)))

    def script(self, size: int) -> Piece:
        """Return a text in one script, with few places between words."""
        kind = self.random.choice(list(SCRIPTS))
        gap = self.random.choice(["", " ", " ", "\u3000" if kind == "cjk" else " "])
        text = self.until(size, lambda: self.random.choice(SCRIPTS[kind]), gap)
        return Piece(kind, f"w{text}")

    def word_without_end(self, size: int) -> Piece:
        """Return one word that is longer than anything."""
        return Piece(
            "long word", self.random.choice(["x", "ab-", "漢", "e\u0301"]) * (size // 2 + 1)
        )

    def link(self) -> str:
        """Return a link."""
        label = self.words(self.random.randint(1, 20))
        address = f"https://example.org/{self.next()}" + self.random.choice(
            ["", "_(v2)", "?a=b*c_d"]
        )
        title = self.random.choice(["", "", ' "a title"'])
        return f"[{label}]({address}{title})"

    def links(self, size: int) -> Piece:
        """Return words among links."""

        def link_or_word() -> str:
            return self.random.choice([self.link, self.word])()

        return Piece("links", self.until(size, link_or_word))

    def emphasis(self, size: int) -> Piece:
        """Return emphasis of every kind, short and long."""

        def span() -> str:
            mark = self.random.choice(["**", "*", "_", "~~", "`"])
            words = " ".join(self.random.choices(LATIN, k=self.random.choice([1, 2, 5, 30])))
            return f"{mark}{words}{mark} {self.word()}"

        return Piece("emphasis", f"w {self.until(size, span)}")

    def items(self, size: int) -> Piece:
        """Return a nested list."""
        depth = 0

        def item() -> str:
            nonlocal depth
            depth = self.random.randint(0, min(depth + 1, 3))
            marker = self.random.choice(["-", "-", "*", "+"]) if depth else "-"
            return f"{'  ' * depth}{marker} {self.words(self.random.randint(1, 90))}"

        return Piece("nested list", f"{self.until(size, item, chr(10))}")

    def code(self, size: int) -> str:
        """Return lines of code of which the first and the last can be seen."""
        return f"first\n{self.until(size, lambda: self.random.choice(CODE), chr(10))}\nlast"

    def fenced(self, size: int, code: str = "") -> Piece:
        """Return fenced code at the margin, or up to three columns further in."""
        marker = self.random.choice("`~") * self.random.randint(3, 5)
        indent = " " * self.random.choice([0, 0, 0, 1, 3])
        info = f"{self.random.choice(LANGUAGES)} {self.next()}"
        kind = "code" if not code else "long line of code"
        lines = (code or self.code(size)).split("\n")
        body = "\n".join(f"{indent}{line}" if line else "" for line in lines)
        return Piece(kind, f"{indent}{marker}{info}\n{body}\n{indent}{marker}", len(indent))

    def long_line(self, size: int) -> Piece:
        """Return code in one line."""
        return self.fenced(
            size, self.random.choice(["A", "ab ", "漢", "x=`;"]) * (size // 3 + 1) + "z"
        )

    def quoting(self, size: int) -> Piece:
        """Return a block that shows blocks."""
        inner = self.until(size, lambda: "```py\nx\n```\n~~~\n| a | b |\n|---|---|", "\n")
        return Piece("code that shows blocks", f"`````md {self.next()}\n{inner}\nlast\n`````")

    def item_code(self, size: int) -> Piece:
        """Return code in a list item, at any depth."""
        depth = self.random.randint(1, 3)
        lead = "  " * depth
        items = "\n".join(f"{'  ' * i}- {self.words(12)}" for i in range(depth))
        code = "\n".join(f"{lead}{line}" if line else "" for line in self.code(size).split("\n"))
        block = f"{lead}```sh {self.next()}\n{code}\n{lead}```"
        gap = self.random.choice(["\n", "\n\n"])
        return Piece("code in a list", f"{items}{gap}{block}\n- {self.words(20)}", 2 * depth)

    def table(self, size: int, *, lead: str = "", cell: int = 24) -> Piece:
        """Return a table with links, escaped bars and many scripts in its cells."""
        columns = self.random.randint(1, self.columns)
        bare = columns > 1 and not lead and self.random.random() < 0.2

        def row(cells: list[str]) -> str:
            line = " | ".join(cells)
            return f"{lead}{line}" if bare else f"{lead}| {line} |"

        def content() -> str:
            kind = self.random.random()
            if kind < 0.1:
                return self.link()
            if kind < 0.2:
                return f"a\\|b `{self.word()}`"
            return self.words(self.random.randint(1, cell))

        head = row([f"h{self.next()}", *("b" * (columns - 1))])
        rule = row([self.random.choice(["---", ":--", "-:"]) for _ in range(columns)])
        rows = self.until(
            size,
            lambda: row(
                ["v", *(content() for _ in range(columns - 1))]
                if bare
                else [content() for _ in range(columns)]
            ),
            "\n",
        )
        return Piece("table", f"{head}\n{rule}\n{rows}", len(lead))

    def long_rows(self, size: int) -> Piece:
        """Return a table of which some rows fit no part."""
        return attrs.evolve(self.table(size, cell=max(size // 2, 2)), kind="long rows")

    def item_table(self, size: int) -> Piece:
        """Return a table in a list item."""
        lead = "  " * self.random.randint(1, 3)
        items = "\n".join(f"{'  ' * i}- {self.word()}" for i in range(len(lead) // 2))
        inner = self.table(size, lead=lead)
        return Piece("table in a list", f"{items}\n\n{inner.text}\n\n- {self.words(20)}", len(lead))

    def heading(self, size: int) -> Piece:
        """Return a heading and a quote."""
        return Piece("quote", f"## {self.words(20)}\n\n> {self.words(size)}")


def make(seed: int) -> Document:
    """Return the document of a seed."""
    chance = random.Random(seed)
    low, high, _ = chance.choices(LIMITS, [share for *_, share in LIMITS])[0]
    limit = chance.randint(low, high)
    unit = chance.choice(list(LengthUnit))
    size = int(limit * chance.choice([0.5, 1.5, 3.5, 5 if limit < 2000 else 3.5]))
    maker = Maker(chance, 2 if limit < 84 else 3 if limit < 110 else 4)
    kinds: list[Callable[[int], Piece]] = [
        *(maker.prose, maker.script, maker.script, maker.word_without_end, maker.links),
        *(maker.emphasis, maker.items, maker.fenced, maker.fenced, maker.long_line, maker.quoting),
        *(
            maker.item_code,
            maker.table,
            maker.table,
            maker.long_rows,
            maker.item_table,
            maker.heading,
        ),
    ]
    pieces: list[Piece] = []
    while size > 0:
        pieces.append(chance.choice(kinds)(chance.randint(1, max(size, 10))))
        size -= len(pieces[-1].text) + 2
    return Document(seed, tuple(pieces), limit, unit)
