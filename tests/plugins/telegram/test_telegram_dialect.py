"""What Telegram makes of a text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_telegram.dialect import TelegramDialect

DIALECT = TelegramDialect()


# Cleaning of texts: tdlib's clean_input_string and fix_formatted_text, which the Bot API server runs.
@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("plain *text*", "plain *text*"),
        (" \n two\n\nlines \n", "two\n\nlines"),
        ("a\tb\0c\x1fd", "a b c d"),
        ("\ttabs become blanks\t", "tabs become blanks"),
        ("one\r\ntwo\r", "one\ntwo"),
        ("a\u2028b\u202ec", "abc"),
        ("e\u0301 a\u030a n\u0333", "e\u0301 a n"),
        ("a\u200fb", "a\u200fb"),
        ("a\u200e\u200f\u200eb", "a\u200c\u200c\u200eb"),
        ("\u00a0kept\u00a0", "\u00a0kept\u00a0"),
        ("👩‍👩‍👧 日本語", "👩‍👩‍👧 日本語"),
        (" \n", ""),
    ],
)
def test_the_normal_form_is_what_the_server_answers_with(written: str, shown: str) -> None:
    """Invariant 6."""
    assert DIALECT.normal(written) == shown
    assert DIALECT.plain(written) == written


@given(st.text(st.sampled_from(" \n\r\t\0ab\u200e\u200f\u200c\u2028\u030a🎉"), max_size=20))
def test_the_normal_form_of_a_normal_form_is_itself(text: str) -> None:
    """Invariant 6."""
    once = DIALECT.normal(text)
    assert DIALECT.normal(once) == once
    assert DIALECT.length(once) <= DIALECT.length(text)
