"""Whatever is written, Telegram keeps what is sent, and nothing of it is lost."""

from __future__ import annotations

from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from dragoman_telegram.blocks import Converter
from dragoman_telegram.dialect import TelegramDialect, quoted
from dragoman_telegram.formatted import Formatted
from dragoman_telegram.text import cleaned
from markups import DOCUMENT, LINES, SOUP, graphemes, words
from peers.telegram_fake.judging import called, check
from peers.telegram_fake.text import units

CONVERTER = Converter.load()
DIALECT = TelegramDialect(CONVERTER)


def everything(formatted: Formatted) -> str:
    """What people see, and what they find behind a link or above a block of code."""
    more = (str(item.get("url") or item.get("language") or "") for item in formatted.entities)
    return " ".join([formatted.text, *more])


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
