"""Whatever is written, Telegram keeps what is sent, and nothing of it is lost."""

from __future__ import annotations

import re

import regex
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from dragoman_telegram.blocks import Converter
from dragoman_telegram.dialect import TelegramDialect, quoted
from dragoman_telegram.formatted import Formatted
from dragoman_telegram.text import cleaned
from peers.telegram_fake.judging import called, check
from peers.telegram_fake.text import units

CONVERTER = Converter.load()
DIALECT = TelegramDialect(CONVERTER)

MARKUP = "*_~`[]()<>!#>-+.|\\\n\n  1:@/^"
LETTERS = "ab日é🎉👩‍👧\u05d0\u0301"
SOUP = st.lists(
    st.sampled_from(
        [
            *MARKUP,
            *LETTERS,
            "```",
            "**",
            "~~~",
            "\n- ",
            "\n> ",
            "\n1. ",
            "\n    ",
            "|-|-|\n",
            "](https://a.example/b)",
            "<https://a.example/|",
            "https://a.example/@b",
            "@ada",
            "\t",
            "\u202e",
            "\u200e\u200f",
            "\x00",
            "\r\n",
        ]
    ),
    max_size=40,
).map("".join)

WORD = st.text(st.sampled_from("abcdez日本é\u05d0🎉"), min_size=1, max_size=6) | st.sampled_from(
    [
        "👩‍👩‍👧",
        "e\u0301",
        "snake_case_name",
        "@ada",
        "a@b.example",
        "b<c",
        "a*b",
        "https://a.example/_b_",
    ]
)
INLINE = st.recursive(
    WORD,
    lambda inner: st.one_of(
        st.builds("**{}**".format, inner),
        st.builds("*{}*".format, inner),
        st.builds("~~{}~~".format, inner),
        st.builds("[{}](https://a.example/x_(y))".format, WORD),
        st.builds("`{}`".format, WORD),
        st.builds("{} {}".format, inner, inner),
        st.builds("{}\n{}".format, inner, inner),
    ),
    max_leaves=5,
)
LINE = INLINE.map(lambda text: text.replace("\n", " "))
CODE = st.builds("```py\n{}\n```".format, st.lists(WORD, min_size=1).map("\n  ".join))
TABLE = st.builds("| {} | {} |\n|:-:|--:|\n| {} | {} |".format, LINE, WORD, WORD, LINE)


def indented(mark: str, block: str) -> str:
    return mark + block.replace("\n", "\n" + " " * len(mark))


BLOCK = st.recursive(
    st.one_of(INLINE, CODE, TABLE, st.builds("## {}".format, LINE)),
    lambda inner: st.one_of(
        st.builds(indented, st.sampled_from(["- ", "1. ", "- [x] "]), inner),
        inner.map(lambda block: "> " + block.replace("\n", "\n> ")),
        st.builds("{}\n\n{}".format, inner, inner),
    ),
    max_leaves=6,
)
DOCUMENT = st.lists(BLOCK, min_size=1, max_size=4).map("\n\n".join)
LINES = st.lists(
    st.sampled_from(
        [
            *["", "", "", "a", "b **c** @ada", " ", "@", "# h", "---", "===", "* * *", "[a]: b"],
            *["- x", "  y", "   - z", "1. q", "2. r", "10) s", "- [ ] t", "-", "1.", "\t- w"],
            *[
                "> u",
                ">",
                "- > ```",
                "```",
                "  ```",
                "~~~py",
                "    code",
                "<div>",
                "`@a` `b` " * 25,
            ],
            *["| a | b |", "|---|---|", "| a |", "|-|", "|-x", "a | b"],
        ]
    ),
    max_size=25,
).map("\n".join)


def everything(formatted: Formatted) -> str:
    """What people see, and what they find behind a link or above a block of code."""
    more = (str(item.get("url") or item.get("language") or "") for item in formatted.entities)
    return " ".join([formatted.text, *more])


def graphemes(text: str) -> list[str]:
    """The characters that people see, less those that may be markup."""
    found = regex.findall(r"\X", re.sub(r"[\u2060\r\u200c\u200e\u200f]", "", cleaned(text)))
    return [one for one in found if one.strip() and not set(one) & set(MARKUP)]


def words(text: str) -> list[str]:
    """The characters of a document's words; in none of them is one of its marks of lists."""
    return [one for one in graphemes(text) if one not in set("0123456789xpy☑•")]


@settings(max_examples=300, deadline=None)
@given(SOUP)
@example("@\u202eada")
@example("- \n  - a\n    > b")
@example("`a\n    b`")
def test_telegram_keeps_every_text_as_it_is_sent(markdown: str) -> None:
    """Invariant 6, FC-I18-01: whatever the server does to a text was done before it is sent."""
    formatted = CONVERTER.convert(markdown)
    check(formatted)
    assert called(formatted) == []
    assert bool(formatted.text) == bool(cleaned(markdown).strip())
    assert DIALECT.length(markdown) == units(formatted.text)
    shown = everything(formatted)
    for one in set(graphemes(markdown)):
        assert markdown.count(one) <= shown.count(one), one


@settings(max_examples=150, deadline=None)
@given(DOCUMENT)
def test_no_word_of_a_document_is_lost_and_none_is_doubled(markdown: str) -> None:
    """FC-MKD-04: in order, and nothing else between the words but marks of lists and tables."""
    assume("~~~" not in markdown)  # a block of code, though not meant as one
    formatted = CONVERTER.convert(markdown)
    check(formatted)
    written = markdown.replace("https://a.example/x_(y)", "").replace("```py", "")
    shown = formatted.text.replace("https://a.example/x_(y)", "")
    assert words(shown) == words(written)


@settings(max_examples=25, deadline=None)
@given(DOCUMENT)
def test_every_beginning_of_a_document_is_fit_to_be_sent(markdown: str) -> None:
    """FC-EDT-01: an answer is shown while it grows."""
    for end in range(1, len(markdown), 4):
        formatted = CONVERTER.convert(markdown[:end])
        check(formatted)
        assert called(formatted) == []


@settings(max_examples=60, deadline=None)
@given(SOUP | LINES | DOCUMENT | st.builds("{}\n{}".format, DOCUMENT, LINES), st.integers(1, 7))
@example("**p\n| a |\n|-x**", 1)
@example("p\n\n| a |\n|-|\n2. x\n- y\n3. z\n", 1)
def test_what_a_text_began_with_before_makes_no_difference(markdown: str, step: int) -> None:
    """Previews begin where nothing changes any more, and show what the whole does."""
    growing = Converter(CONVERTER.parser)
    for end in (*range(1, len(markdown), step), len(markdown)):
        afresh = Converter(CONVERTER.parser)
        assert growing.convert(markdown[:end]) == afresh.convert(markdown[:end])
    again = f"{markdown}\n\n{markdown}"
    assert growing.convert(again) == Converter(CONVERTER.parser).convert(again)


@settings(max_examples=150, deadline=None)
@given(SOUP, SOUP)
def test_a_text_that_the_server_returned_is_told_from_every_other(one: str, other: str) -> None:
    """Invariant 6, FC-EDT-03: a text that was cut or changed never passes for the whole."""
    shown, wanted = CONVERTER.convert(one).text, CONVERTER.convert(other).text
    if shown:
        assert DIALECT.normal(quoted(shown)) == shown
        assert (DIALECT.normal(quoted(shown)) == DIALECT.normal(other)) == (shown == wanted)
