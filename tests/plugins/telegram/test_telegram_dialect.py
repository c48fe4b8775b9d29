"""What Telegram makes of a text, and what core is told of it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_telegram.blocks import Converter
from dragoman_telegram.dialect import TelegramDialect, quoted
from dragoman_telegram.text import cleaned

CONVERTER = Converter.load()
DIALECT = TelegramDialect(CONVERTER)


# Cleaning of texts: tdlib's clean_input_string and fix_formatted_text, which the Bot API server runs.
@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("plain *text*", "plain text"),
        (" \n two\n\nlines \n", "two\n\nlines"),
        ("a\tb\0c\x1fd", "a b c d"),
        ("one\r\ntwo\r", "one\ntwo"),
        ("a\u2028b\u202ec", "abc"),
        ("e\u0301 a\u030a n\u0333", "e\u0301 a n"),
        ("a\u200fb", "a\u200fb"),
        ("a\u200e\u200f\u200eb", "a\u200c\u200c\u200eb"),
        ("👩‍👩‍👧 日本語", "👩‍👩‍👧 日本語"),
        (" \n", ""),
    ],
)
def test_the_normal_form_is_what_the_server_answers_with(written: str, shown: str) -> None:
    """Invariant 6."""
    assert DIALECT.normal(written) == shown


@given(st.text(st.sampled_from(" \n\r\t\0ab\u200e\u200f\u200c\u2028\u030a🎉"), max_size=20))
def test_a_clean_text_stays_as_it_is(text: str) -> None:
    """Invariant 6."""
    once = cleaned(text)
    assert cleaned(once) == once


def test_the_length_is_that_of_what_people_see() -> None:
    """FC-SPL-04: in UTF-16 units, without markup and targets."""
    assert DIALECT.length("**🎉** [a](https://example.com/long)") == 4
    assert DIALECT.length("🎉" * 2048) == 4096


def test_fc_mkd_03_the_plain_form_has_no_escapes_and_fits() -> None:
    """FC-MKD-03: it is the original text; where that is too long, what people see of it."""
    written = r"Sure! Step 1 - done. See **a_b_c** (x)."
    assert DIALECT.plain(written) == written
    links = " ".join(f"[link{n}](https://example.com/{'x' * 80})" for n in range(100))
    assert DIALECT.plain(links) == " ".join(f"link{n}" for n in range(100))
    assert DIALECT.sent(DIALECT.plain(links), plain=True).entities == ()


@pytest.mark.parametrize("shown", ["*a*", "a\n\n    b", "~~~\nx\n~~~~", "> q", "```\nx", "@ada"])
def test_a_text_is_quoted_so_that_people_see_exactly_that(shown: str) -> None:
    """Invariant 6, FC-EDT-03: what the server shows is compared, whatever is in it."""
    assert DIALECT.normal(quoted(shown)) == shown
