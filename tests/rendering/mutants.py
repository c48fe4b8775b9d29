"""Twelve ways to break the splitter, each of which the judge has to notice.

A mutant is one replacement in a copy of core. The text that it replaces has to be there exactly
once: a change of the product that moves it is told about, rather than silently not tested.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

import attrs

import dragoman

CORE: Final = Path(dragoman.__file__).parent


@attrs.frozen
class Mutant:
    """A broken splitter; the judge says ``symptom``."""

    name: str
    file: str
    old: str
    new: str
    symptom: str

    def write(self, folder: Path) -> None:
        """Write a copy of core with this mistake in it."""
        copy = folder / "dragoman"
        shutil.copytree(CORE, copy, ignore=shutil.ignore_patterns("__pycache__"))
        file = copy / "render" / self.file
        text = file.read_text()
        found = text.count(self.old)
        if found != 1:
            msg = f"mutant {self.name!r}: {found} places in {self.file} read {self.old!r}"
            raise AssertionError(msg)
        file.write_text(text.replace(self.old, self.new))


MUTANTS: Final = (
    Mutant(
        "limit off by one", "cutter.py", "limit=self._limit\n", "limit=self._limit + 1\n", "above"
    ),
    Mutant(
        "counts code points",
        "cutter.py",
        "self._length(self._render(start, end))",
        "len(self._render(start, end))",
        "above",
    ),
    Mutant(
        "cuts clusters",
        "graphemes.py",
        "    last = start\n",
        "    return index\n    last = start\n",
        "not the text",
    ),
    Mutant("fence not closed", "cutter.py", "{closing.closer(columns)}", "", "not closed"),
    Mutant(
        "language lost",
        "fences.py",
        "{self.closer(self.excess)}{self.info}",
        "{self.closer(self.excess)}",
        "languages",
    ),
    Mutant(
        "header not repeated",
        "cutter.py",
        "self._length(block.head) * 2 <= self._limit",
        "False",
        "table",
    ),
    Mutant(
        "rest of a row in the wrong column",
        "tables.py",
        "min(cells + (not leading), self.columns)",
        "1",
        "table",
    ),
    Mutant(
        "link torn", "breaks.py", "                and not _tears(around, at)\n", "", "link is torn"
    ),
    Mutant(
        "indentation lost",
        "cutter.py",
        "                return end\n            end = block.end",
        "                return self._skip(end) + len(self._text[end:]) - len(self._text[end:].lstrip(' '))\n            end = block.end",
        "code",
    ),
    Mutant(
        "words lost",
        "cutter.py",
        "            start = self._next(end)\n",
        "            start = self._next(self._text.find(' ', end) + 1 or end)\n",
        "not the text",
    ),
    Mutant(
        "white space lost",
        "cutter.py",
        "        if not isinstance(closing, Fence):\n            return body.rstrip(SPACE)",
        "        if not isinstance(closing, Fence):\n            return re.sub(' +', ' ', body.rstrip(SPACE).replace('\\n\\n', '\\n'))",
        "not the text",
    ),
    Mutant(
        "deep list stays deep",
        "cutter.py",
        "        if columns:\n",
        "        if columns < 0:\n",
        "prose",
    ),
)
