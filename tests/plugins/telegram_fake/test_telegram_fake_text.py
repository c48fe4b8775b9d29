"""Texts as Telegram reads them: parse modes, cleaning, entities."""

from __future__ import annotations

import pytest

from peers.telegram_fake.errors import BotError
from peers.telegram_fake.html import parse_html
from peers.telegram_fake.markdown import parse_markdown, parse_markdown_v2
from peers.telegram_fake.text import Formatted, entity, finish, units

RESERVED = "Character '{}' is reserved and must be escaped with the preceding '\\'"


def spans(formatted: Formatted) -> list[tuple[str, str]]:
    """Each entity's kind and the text that it covers."""
    raw = formatted.text.encode("utf-16-le")
    return [
        (e["type"], raw[2 * e["offset"] : 2 * (e["offset"] + e["length"])].decode("utf-16-le"))
        for e in formatted.entities
    ]


@pytest.mark.parametrize(
    ("source", "text", "expected"),
    [
        ("*a _b_ c*", "a b c", [("italic", "b"), ("bold", "a b c")]),
        (
            "🎉 __u__ ~s~ ||x||",
            "🎉 u s x",
            [("underline", "u"), ("strikethrough", "s"), ("spoiler", "x")],
        ),
        (r"1\.5 \*not\*", "1.5 *not*", []),
        ("`a.b` ```py\nx = 1```", "a.b x = 1", [("code", "a.b"), ("pre", "x = 1")]),
        (r"[a](http://x/\)) [b]", "a b", [("text_link", "a")]),
        (">q\n>r\nrest", "q\nr\nrest", [("blockquote", "q\nr")]),
        (">q\n>r||\nrest", "q\nr\nrest", [("expandable_blockquote", "q\nr")]),
    ],
)
def test_markdown_is_read(source, text, expected):
    found = parse_markdown_v2(source)
    assert (found.text, spans(found)) == (text, expected)


@pytest.mark.parametrize(
    ("source", "error"),
    [(c, RESERVED.format(c)) for c in "]()#+-=|{}.!"]
    + [
        ("🏟 🏟_abacaba", "Can't find end of Italic entity at byte offset 9"),
        ("🏟 🏟_abac * asd ", "Can't find end of Bold entity at byte offset 15"),
        ("🏟 🏟_abac * asd _", "Can't find end of Italic entity at byte offset 21"),
        ("🏟 🏟`", "Can't find end of Code entity at byte offset 9"),
        ("🏟 🏟```", "Can't find end of Pre entity at byte offset 9"),
        ("🏟 🏟```a", "Can't find end of Pre entity at byte offset 9"),
        ("🏟 🏟```a ", "Can't find end of PreCode entity at byte offset 9"),
        ("🏟 🏟__🏟 🏟_", "Can't find end of Italic entity at byte offset 20"),
        ("🏟 🏟_🏟 🏟__", "Can't find end of Underline entity at byte offset 19"),
        ("[a](b", "Can't find end of a URL at byte offset 3"),
    ],
)
def test_markdown_that_is_not_well_formed_is_refused_at_its_byte(source, error):
    """The expectations are those of the official library's own tests."""
    with pytest.raises(BotError) as caught:
        parse_markdown_v2(source)
    assert caught.value.description == f"Bad Request: can't parse entities: {error}"


@pytest.mark.parametrize(
    ("source", "text", "expected"),
    [
        ("<b>a <i>b</i></b> &lt;&amp;&#33;", "a b <&!", [("italic", "b"), ("bold", "a b")]),
        ('<pre><code class="language-py">x</code></pre>', "x", [("pre", "x")]),
        (
            '<a href="http://x">a</a><tg-spoiler>s</tg-spoiler>',
            "as",
            [("text_link", "a"), ("spoiler", "s")],
        ),
        ("<blockquote expandable>q</blockquote>", "q", [("expandable_blockquote", "q")]),
        ("&nbsp;&", "&nbsp;&", []),
    ],
)
def test_html_is_read(source, text, expected):
    found = parse_html(source)
    assert (found.text, spans(found)) == (text, expected)


@pytest.mark.parametrize(
    ("source", "error"),
    [
        ("é<br>", 'Unsupported start tag "br" at byte offset 2'),
        ("a < b", "Unclosed start tag at byte offset 2"),
        ("</b>", "Unexpected end tag at byte offset 0"),
        ("<b>x</i>", 'Unmatched end tag at byte offset 4, expected "</b>", found "</i>"'),
        ("<b>x", 'Can\'t find end tag corresponding to start tag "b"'),
        ("<span>x</span>", 'Tag "span" must have class "tg-spoiler" at byte offset 0'),
    ],
)
def test_html_that_is_not_well_formed_is_refused_at_its_byte(source, error):
    with pytest.raises(BotError) as caught:
        parse_html(source)
    assert caught.value.description == f"Bad Request: can't parse entities: {error}"


def test_old_markdown_has_no_nesting():
    found = parse_markdown(r"*b* _i_ `c` ```p``` [t](u) \_")
    assert found.text == "b i c p t _"
    assert [kind for kind, _ in spans(found)] == ["bold", "italic", "code", "pre", "text_link"]
    with pytest.raises(BotError, match="starting at byte offset 0"):
        parse_markdown("*x")


def test_a_text_is_cleaned_and_its_entities_move_along():
    bold = entity("bold", 4, 5)
    found = finish(Formatted(" \r\n🎉word\t\u2028end \n", (entity("bold", 5, 4),)))
    assert found.text == "🎉word end"
    assert spans(found) == [("bold", "word")]
    assert finish(Formatted("  ab  ", (entity("code", 1, 4),))).text == "ab"
    assert finish(Formatted("no end", (bold,) * 0)).entities == ()
    assert units("🎉a") == 3


@pytest.mark.parametrize(
    ("item", "error"),
    [
        (entity("bold", 9, 1), "begins after the end of the text"),
        (entity("bold", 0, 9), "ends after the end of the text"),
        (entity("bold", 1, 1), "middle of a UTF-16 symbol"),
        (entity("bold", -1, 1), "incorrect offset -1"),
        (entity("loud", 0, 1), "Unsupported type"),
        (entity("text_link", 0, 2), 'find field "url"'),
        (entity("text_link", 0, 2, url="https://"), "URL host is empty"),
        (entity("text_link", 0, 2, url="https://a b/"), "Wrong URL host"),
        (entity("text_link", 0, 2, url="https://a.example:0/"), "Wrong port"),
        (entity("text_link", 0, 2, url="ftp://a.example"), "Unsupported URL protocol"),
    ],
)
def test_entities_that_do_not_fit_are_refused(item, error):
    with pytest.raises(BotError) as caught:
        finish(Formatted("🎉ab", (item,)))
    assert error in caught.value.description


def test_entities_that_may_not_overlap_are_settled():
    """R24."""
    items = (
        entity("bold", 0, 11),
        entity("code", 2, 3),
        entity("text_link", 4, 3, url="https://a.example"),
        entity("blockquote", 0, 11),
        entity("blockquote", 3, 2),
        entity("italic", 6, 2),
    )
    assert spans(finish(Formatted("a bcd e fgh", items))) == [
        ("blockquote", "a bcd e fgh"),
        ("bold", "a "),
        ("code", "bcd"),
        ("bold", "e fgh"),
        ("italic", "e "),
    ]


def test_entities_that_show_themselves_are_found():
    found = finish(Formatted("🎉 /stop@my_bot @ada see https://example.org/a #tag a/b 1/2"))
    assert spans(found) == [
        ("bot_command", "/stop@my_bot"),
        ("mention", "@ada"),
        ("url", "https://example.org/a"),
        ("hashtag", "#tag"),
    ]
