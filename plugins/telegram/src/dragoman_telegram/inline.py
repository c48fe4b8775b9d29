"""The inside of a paragraph as pieces of text with their styles."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

import attrs

from dragoman_telegram.formatted import CODE, FORMULA, LINK, PLAIN, Style, Styles

if TYPE_CHECKING:
    from markdown_it.token import Token

Piece: TypeAlias = tuple[str, Styles]

_STYLES: Final[dict[str, Style]] = {
    "strong_open": ("bold", ""),
    "em_open": ("italic", ""),
    "s_open": ("strikethrough", ""),
}
# What the server takes as a link's target, and not as a person's. One that it does not take costs
# the formatting of the whole message.
_TARGET: Final = re.compile(
    r"https?://[a-z0-9_-]+(?:\.[a-z0-9_-]+)+\.?"
    r"(?::(?:[1-9]\d{0,3}|[1-5]\d{4}|6[0-4]\d{3}))?(?:[/?#]\S*)?",
    re.IGNORECASE | re.ASCII,
)


def pieces_of(tokens: Sequence[Token], *, visible: bool = False) -> Iterator[Piece]:
    """Yield what tokens show. With ``visible``, links are written out instead of hidden."""
    stack: list[Style] = []
    links: list[_Link] = []
    for token in tokens:
        styles = frozenset(stack)
        if token.type in _STYLES:
            stack.append(_STYLES[token.type])
        elif token.type in {"strong_close", "em_close", "s_close"}:
            stack.pop()
        elif token.type == "link_open":
            link = _Link.of(token, "href", hidden=not visible)
            links.append(link)
            stack.extend(link.styles)
        elif token.type == "link_close":
            link = links.pop()
            yield link.rest, styles
            del stack[len(stack) - len(link.styles) :]
            yield link.aside, frozenset(stack)
        elif token.type == "image":
            # A link cannot stand inside another one.
            image = _Link.of(token, "src", hidden=not (visible or links))
            image.label = "".join(text for text, _ in pieces_of(token.children or (), visible=True))
            shown = image.label + image.rest
            for link in links:
                link.label += shown
            yield shown, styles | frozenset(image.styles)
            yield image.aside, styles
        else:
            text = "\n" if token.type in {"softbreak", "hardbreak"} else token.content
            for link in links:
                link.label += text
            # A link's target says more than that its label is code.
            is_code = token.type == "code_inline" and not any(link.styles for link in links)
            more = {FORMULA} if token.type == "formula" else {CODE} if is_code else PLAIN
            yield text, styles | more


@attrs.define(eq=False)
class _Link:
    """A link or an image while it is read."""

    target: str
    title: str
    hidden: bool
    label: str = ""

    @classmethod
    def of(cls, token: Token, name: str, *, hidden: bool) -> _Link:
        target = str(token.attrs.get(name, ""))
        takes = _TARGET.fullmatch(target) is not None
        return cls(target, str(token.attrs.get("title", "")), hidden and takes)

    @property
    def styles(self) -> tuple[Style, ...]:
        return ((LINK, self.target),) if self.hidden else ()

    @property
    def rest(self) -> str:
        """The label of a link that was given none."""
        return "" if self.label.strip() else self.target

    @property
    def aside(self) -> str:
        """What stands behind the label: the target where it is not hidden, and the title."""
        label, target = self.label.strip(), self.target
        shown = self.hidden or not target or label in {"", target, target.removeprefix("mailto:")}
        words = ("" if shown else target, self.title)
        return "".join(f" ({word})" for word in words if word)
