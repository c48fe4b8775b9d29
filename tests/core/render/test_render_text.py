"""What text is stored, and how a half-written text is shown."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.render.text import close_open_constructs, is_blank, sanitise

anything = st.text(st.characters(codec=None, categories=None, exclude_categories=()), max_size=60)


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("ok \ud83c\udf78 done", "ok \U0001f378 done"),
        ("bad \udc88 end", "bad \ufffd end"),
        ("\udf78\ud83c", "\ufffd\ufffd"),
        ("\ud83c\ud83c\udf78", "\ufffd\U0001f378"),
        ("a\u0000b\u202ec", "ab\u202ec"),
        ("\ud83c\u0000\udf78", "\U0001f378"),
        ("e\u0301", "e\u0301"),
    ],
)
def test_fc_i18_01_halves_are_joined_or_replaced_and_nothing_else_changes(text, clean):
    assert sanitise(text) == clean


@given(anything)
def test_fc_i18_01_any_text_can_be_stored_and_sent(text):
    clean = sanitise(text)
    assert json.loads(json.dumps(clean).encode()) == clean.encode().decode()
    assert "\0" not in clean
    assert sanitise(clean) == clean


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")))
def test_well_formed_text_is_left_alone(text):
    assert sanitise(text) == text


@pytest.mark.parametrize("text", ["", " \n", "\u00a0\u3000", "\u200b\u2060", "```py", "~~~\n\n~~~"])
def test_fc_emp_01_what_cannot_be_seen_is_blank(text):
    assert is_blank(text)


@pytest.mark.parametrize(
    "text", [".", "```\nx\n```", "```\n```quoted\n```", "```code``` here", "`"]
)
def test_what_can_be_seen_is_not_blank(text):
    assert not is_blank(text)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\n```py\nx = 1\n```\nb", "a\n```py\nx = 1\n```\nb"),
        ("a\n```py\nx = 1", "a\n```py\nx = 1\n```"),
        ("a\n```py\nx = 1\n", "a\n```py\nx = 1\n```"),
        ("a\n  ~~~~\nx", "a\n  ~~~~\nx\n  ~~~~"),
        (
            "- a\n  - b\n    - c\n\n      ```\n      x",
            "- a\n  - b\n    - c\n\n      ```\n      x\n      ```",
        ),
        ("a\n```py\nx = 1\n``", "a\n```py\nx = 1\n```"),
        ("a\n``", "a"),
        ("a\n\n```", "a"),
        ("a\n```py\n", "a"),
        ("```py", ""),
    ],
)
def test_a_block_that_is_being_written_is_shown_closed(text, shown):
    assert close_open_constructs(text) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain **bo", "plain **bo**"),
        ("plain **", "plain"),
        ("a **b*", "a **b**"),
        ("a **b**", "a **b**"),
        ("a **b *c", "a **b *c***"),
        ("***a**", "***a***"),
        ("**\u4e2d\u6587\u3002", "**\u4e2d\u6587\u3002**"),
        ("a ``", "a"),
        ("a **b `c", "a **b `c`**"),
        ("a ``b`", "a ``b``"),
        ("~~a", "~~a~~"),
        ("- **a\n- b", "- **a\n- b"),
        ("- a\n  - _b", "- a\n  - _b_"),
        ("**a\n\nb", "**a\n\nb"),
        ("see [te", "see"),
        ("see [te](http", "see"),
        ('see [te](http://a_(b) "t"', "see"),
        ("see [te](http://a) *x", "see [te](http://a) *x*"),
        ("see <http", "see"),
        ("a \\", "a"),
        ("text\n-", "text"),
        ("text\n\n##", "text"),
        ("text\n\n| a | b |\n|--", "text"),
        ("| a |\n|---|", "| a |\n|---|"),
        ("| a |\n|---|\n| **b", "| a |\n|---|\n| **b**"),
        ("```\nx\n```\n\n| a |", "```\nx\n```"),
        ("snake_case and 2**3, 5 * 3", "snake_case and 2**3, 5 * 3"),
        ("Hello!", "Hello!"),
        ("a * b", "a * b"),
    ],
)
def test_what_is_open_inside_a_line_is_closed_or_held_back(text, shown):
    assert close_open_constructs(text) == shown


def test_each_state_of_a_growing_text_is_balanced():
    text = "Intro\n\n```python\nx = 1\n\ny = `2`\n```\n\nmiddle\n\n~~~\nz\n~~~\nend"
    for size in range(len(text)):
        shown = close_open_constructs(text[:size])
        assert shown.count("```") % 2 == 0
        assert shown.count("~~~") % 2 == 0
