"""What Discord is sent for a Markdown text: the text, with tables as code blocks."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dragoman_discord.dialect import DiscordDialect
from dragoman_discord.outgoing import nonce_of
from dragoman_discord.tables import fenced

DIALECT = DiscordDialect()


def test_everything_but_tables_stays_as_it_is() -> None:
    text = "# head\n> quote *it*\n- `a | b`\n- [ ] task\n\n```py\na | b\n--|--\n```\n||spoiler||"
    assert fenced(text) == text
    assert DIALECT.plain(text) == text


@pytest.mark.parametrize(
    ("table", "shown"),
    [
        ("| a | bb |\n|---|:-:|\n| 1 | 2 |", "```\na   bb\n-   --\n1   2\n```"),
        ("before\na | b\n--|--\n\nafter", "before\n```\na   b\n-   -\n```\n\nafter"),
        ("|名前|n|\n|-|-|\n|x|1|", "```\n名前   n\n----   -\nx      1\n```"),
        ("|a|b|\n|-|-|\n|1|\n|1|2|3|", "```\na   b\n-   -\n1\n1   2\n```"),
        ("|a \\| x|b|\n|-|-|\n|`|`|2|", "```\na | x   b\n-----   -\n`       `\n```"),
    ],
)
def test_a_table_becomes_columns_in_a_code_block(table: str, shown: str) -> None:
    assert fenced(table) == shown
    assert DIALECT.length(table) == len(shown)


def test_a_wide_table_keeps_its_marks_and_a_fence_in_it_does_not_end_its_block() -> None:
    wide = f"| a | b |\n|---|---|\n| {'x' * 80} | ``` |"
    assert fenced(wide) == f"````\n{wide}\n````"


@pytest.mark.parametrize("text", ["a | b", "a | b\nc | d", "---|---\n--|--", "a|b\n---", "a\n-|-"])
def test_what_only_looks_like_a_table_is_none(text: str) -> None:
    assert fenced(text) == text


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.text(alphabet=st.sampled_from("ab|-`~: \n\\"), max_size=60))
def test_what_was_sent_is_sent_the_same_again(text: str) -> None:
    """What Discord returned is compared with what was meant: both are taken the same way."""
    assert fenced(fenced(text)) == fenced(text)
    assert DIALECT.normal(DIALECT.normal(text)) == DIALECT.normal(text)


def test_lengths_are_code_points() -> None:
    assert DIALECT.length("😀é日") == 3


def test_a_key_has_25_characters_and_is_the_same_for_the_same_message() -> None:
    keys = {nonce_of(f"{number}:{part}") for number in range(200) for part in range(3)}
    assert {len(key) for key in keys} == {25}
    assert len(keys) == 600
    assert nonce_of("1:0") == nonce_of("1:0")
