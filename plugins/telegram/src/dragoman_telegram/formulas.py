r"""Formulas in Markdown, as models write them: ``$x$``, ``$$x$$`` and ``\(x\)``, ``\[x\]`` on lines.

Marks that are no pair stay text, and so do prices: what begins with a blank or ends before a digit
is no formula. Each rule looks at a character once, however many marks there are.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_block import StateBlock
    from markdown_it.rules_inline import StateInline

_INLINE: Final = re.compile(
    r"\$\$(?P<double>[^$`]++)\$\$"
    r"|\$(?P<single>(?!\s)[^$`\n]++(?<![\s\\]))\$(?![A-Za-z0-9$])"
    r"|\\\((?P<round>(?:[^\\]|\\(?![()]))++)\\\)"
)
_WORD: Final = re.compile(r"[A-Za-z0-9$\\]")
_ENDS: Final = {"$$": "$$", "\\[": "\\]"}


def add_formulas(parser: MarkdownIt) -> None:
    """Let a parser read formulas: as tokens ``formula`` in a line, ``formula_block`` on their own."""
    parser.block.ruler.before(
        "fence", "formula_block", _block, {"alt": ["paragraph", "list", "blockquote"]}
    )
    parser.inline.ruler.before("escape", "formula", _inline)


def _inline(state: StateInline, silent: bool) -> bool:
    if state.src[state.pos] not in "$\\":
        return False
    match = _INLINE.match(state.src, state.pos, state.posMax)
    before = state.src[state.pos - 1 : state.pos]
    if match is None or (match["single"] is not None and _WORD.match(before)):
        return False
    source = match[str(match.lastgroup)].strip()
    if not source:
        return False
    if not silent:
        state.push("formula", "math", 0).content = source
    state.pos = match.end()
    return True


def _block(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Read a formula that begins and ends a line. No blank line and no other beginning is in it."""
    first = _line(state, start)
    closer = _ENDS.get(first[:2])
    if closer is None or state.is_code_block(start) or state.sCount[start] < state.blkIndent:
        return False
    lines, line = [first[2:]], start
    while not lines[-1].endswith(closer):
        line += 1
        text = _line(state, line) if line < end else ""
        if not text or state.sCount[line] < state.blkIndent:
            return False
        if text != closer and text.startswith(first[:2]):
            return False
        lines.append(text)
    source = "\n".join(lines)[: -len(closer)].strip()
    if not source or closer in source:
        return False
    if not silent:
        token = state.push("formula_block", "math", 0)
        token.content, token.map = source, [start, line + 1]
        state.line = line + 1
    return True


def _line(state: StateBlock, line: int) -> str:
    return state.src[state.bMarks[line] + state.tShift[line] : state.eMarks[line]].strip()
