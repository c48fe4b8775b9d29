"""HTML as elements that stand in each other."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Final

import attrs

HEADINGS: Final = ("h1", "h2", "h3", "h4", "h5", "h6")
MEDIA_TAGS: Final = {"img": "photo", "video": "video", "audio": "audio", "tg-document": "document"}
BLOCK_TAGS: Final = frozenset(
    "p div pre footer hr ul ol blockquote aside details table figure tg-math-block tg-collage "
    "tg-slideshow tg-map tg-button-row tg-thinking".split()
) | {*HEADINGS, *MEDIA_TAGS}
"""What stands on lines of its own."""
_VOID: Final = frozenset({"br", "hr", "img", "input"})


@attrs.define(eq=False)
class Node:
    """One element."""

    tag: str
    attributes: dict[str, str] = attrs.field(factory=dict)
    children: list[Node | str] = attrs.field(factory=list)

    def all(self, *tags: str) -> list[Node]:
        """Return the elements of some tags directly inside, or inside of a table's parts."""
        found = []
        for child in self.children:
            if isinstance(child, Node):
                inner = child.all(*tags) if child.tag in {"thead", "tbody", "tfoot"} else []
                found += [child] if child.tag in tags else inner
        return found


class _Tree(HTMLParser):
    """Elements as they stand in each other; ends that fit nothing are passed over."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open = [Node("")]

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        if tag in BLOCK_TAGS and self.open[-1].tag == "p":
            self.open.pop()
        node = Node(tag, {name: value or "" for name, value in attributes})
        self.open[-1].children.append(node)
        if tag not in _VOID:
            self.open.append(node)

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attributes)
        if tag not in _VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        places = [index for index, node in enumerate(self.open) if node.tag == tag and index]
        if places:
            del self.open[places[-1] :]

    def handle_data(self, data: str) -> None:
        self.open[-1].children.append(data)


def parse_tree(source: str) -> list[Node | str]:
    """Return the elements and texts of an HTML source."""
    tree = _Tree()
    tree.feed(source)
    tree.close()
    return tree.open[0].children


def first(node: Node, tag: str) -> Node | None:
    """Return the first element of a tag, wherever it stands inside."""
    for child in node.children:
        if isinstance(child, Node):
            found = child if child.tag == tag else first(child, tag)
            if found is not None:
                return found
    return None


def characters(node: Node) -> str:
    """Return what stands between the tags, blanks and all."""
    return "".join(one if isinstance(one, str) else characters(one) for one in node.children)
