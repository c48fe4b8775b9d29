"""The Markdown parser: CommonMark with tables and strikethrough, and what models write besides.

Loading it takes a tenth of a second: it is for a worker thread.
"""

from __future__ import annotations

import logging
import re
from functools import partial
from typing import TYPE_CHECKING, Final

from dragoman_telegram.formulas import add_formulas
from dragoman_telegram.tables import table
from dragoman_telegram.text import mentions

if TYPE_CHECKING:
    from collections.abc import Callable

    from markdown_it import MarkdownIt
    from markdown_it.rules_inline import StateInline

DEEPEST: Final = 99
"""The deepest level of a block that can have content; the parser loses what is further in."""

_SLACK_LINK: Final = re.compile(r"<(https?://[^\s<>|]+)\|([^<>\n]+)>")
_SCHEME: Final = re.compile(r"(?<![A-Za-z0-9_])https?\Z", re.IGNORECASE)
_BARE_URL: Final = re.compile(r"://[^\s<>\[\]\"`|\\^{}]+")
_LABEL: Final = re.compile(r"!?\[(?:[^\[\]\\]|\\.|!?\[(?:[^\[\]\\]|\\.)*+\])*+\]\(", re.DOTALL)


def load_parser(*, rich: bool = False) -> MarkdownIt:
    """Return a parser. Raw HTML and link definitions are text to it.

    So are bare URLs and formulas, unless it is for ``rich`` messages.
    """
    from markdown_it import MarkdownIt
    from markdown_it.rules_inline import image, link

    # It would tell of every rule that it tries.
    logging.getLogger("markdown_it").setLevel(logging.WARNING)
    parser = MarkdownIt("commonmark", {"html": False, "maxNesting": DEEPEST + 1})
    parser.enable(["table", "strikethrough"]).disable("reference")
    parser.block.ruler.at("table", table, {"alt": ["paragraph"]})
    parser.core.ruler.enableOnly(["normalize", "block"])
    parser.inline.ruler.at("link", _labelled(link))
    parser.inline.ruler.at("image", _labelled(image))
    parser.inline.ruler.before("autolink", "slack_link", _slack_link)
    parser.inline.ruler.before("linkify", "bare_url", partial(_bare_url, always=rich))
    if rich:
        add_formulas(parser)
    parser.parse("the first *text* is slow")
    return parser


def _labelled(
    rule: Callable[[StateInline, bool], bool],
) -> Callable[[StateInline, bool], bool]:
    """Ask a link's rule only where a link may be: by itself it would look for each ``]`` anew."""

    def guarded(state: StateInline, silent: bool) -> bool:
        return _LABEL.match(state.src, state.pos) is not None and rule(state, silent)

    return guarded


def _slack_link(state: StateInline, silent: bool) -> bool:
    """Read ``<https://example.com/|label>``, which models write that have seen Slack."""
    match = _SLACK_LINK.match(state.src, state.pos)
    if match is None:
        return False
    if not silent:
        _push_link(state, match[1], match[2])
    state.pos = match.end()
    return True


def _bare_url(state: StateInline, silent: bool, *, always: bool) -> bool:
    """Keep the marks in a bare URL as they are. Telegram makes a link of it by itself.

    With a mention in it the link is ours: the words that people see have to differ from it. It is
    ``always`` ours where Telegram is asked to look for none.
    """
    if state.src[state.pos] != ":":
        return False
    scheme = _SCHEME.search(state.src, max(0, state.pos - 6), state.pos)
    match = _BARE_URL.match(state.src, state.pos, state.posMax)
    if scheme is None or match is None or not state.pending.endswith(scheme[0]):
        return False
    rest = _without_punctuation(match[0])
    if len(rest) == len("://"):
        return False
    url = scheme[0] + rest
    if not silent and not state.linkLevel and (always or mentions(url)):
        state.pending = state.pending[: -len(scheme[0])]
        _push_link(state, url, url)
    elif not silent:
        state.append_pending(rest)
    state.pos += len(rest)
    return True


def _without_punctuation(url: str) -> str:
    """Take away what ends the sentence and not the URL, as GitHub does."""
    while True:
        url = url.rstrip("?!.,:;'*_~")
        if not url.endswith(")") or url.count("(") >= url.count(")"):
            return url
        url = url[:-1]


def _push_link(state: StateInline, url: str, label: str) -> None:
    opened = state.push("link_open", "a", 1)
    opened.attrs = {"href": state.md.normalizeLink(url)}
    state.push("text", "", 0).content = label
    state.push("link_close", "a", -1)
