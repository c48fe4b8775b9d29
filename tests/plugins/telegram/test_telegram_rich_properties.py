"""Whatever is written, a rich message of it is one that Telegram takes, and nothing of it is lost."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from cost import cpu_seconds, grows_in_proportion
from dragoman.render.split import split
from dragoman_telegram.dialect import MAX_TEXT, TelegramDialect
from dragoman_telegram.rich import RichConverter
from dragoman_telegram.richtext import compared, each, read
from markups import DOCUMENT, LINES, SOUP, words
from peers.telegram_fake.judging import check_rich

DIALECT = TelegramDialect.load(rich=True)
FORMULAS = st.lists(
    st.sampled_from(["$", "$$", "\\(", "\\)", "\\[", "\\]", "\n", " ", "x", "5", "\\", "`", "- "]),
    max_size=30,
).map("".join)
ANY = st.one_of(SOUP, LINES, DOCUMENT, FORMULAS, st.builds("{}\n{}".format, DOCUMENT, FORMULAS))


def shown(markdown: str) -> list[dict[str, Any]] | None:
    """Return what the server shows of a text, if it is for a rich message."""
    rich = DIALECT.rich(markdown)
    if rich is None:
        return None
    sent = json.loads(json.dumps(rich.blocks))
    found = check_rich(sent)
    assert list(read(found)) == list(read(sent)), "cleaned before it was sent"
    assert compared(found) == rich.words
    return found


def everything(blocks: list[dict[str, Any]]) -> str:
    """What people see, and what they find behind a link or above a block of code."""
    more = (str(one.get("url") or one.get("language") or "") for one in each(blocks))
    return " ".join([*read(blocks), *more])


@settings(max_examples=100, deadline=None)
@given(ANY)
@example("@\u202eada")
@example("@`ada`")
@example("a@*b*c")
@example("| @ada |\n|-|\n| a@`b` |")
@example("```\na\u202eb\x01c\n```")
def test_the_server_takes_every_text_and_calls_nobody(markdown: str) -> None:
    """Invariant 6, FC-MKD-02: HTML, pictures and names in it are text, whoever looks at them."""
    blocks = shown(f"# h\n\n{markdown}")
    if blocks is None:  # something in it is for entities only
        return
    said = everything(blocks)
    for one in set(words(markdown)) - set("$="):
        assert markdown.count(one) <= said.count(one), one
    for link in (one["url"] for one in each(blocks) if "url" in one):
        assert link.lower().startswith(("http://", "https://"))


@settings(max_examples=60, deadline=None)
@given(DOCUMENT)
def test_no_word_of_a_document_is_lost_and_none_is_doubled(markdown: str) -> None:
    """FC-MKD-04: in order, and nothing else between the words."""
    assume("~~~" not in markdown)  # a block of code, though not meant as one
    blocks = shown(f"# h\n\n{markdown}")
    assert blocks is not None
    written = f"h\n{markdown}".replace("https://a.example/x_(y)", "").replace("```py", "")
    said = " ".join(read(blocks)).replace("https://a.example/x_(y)", "")
    assert words(said) == words(written)


@settings(max_examples=12, deadline=None)
@given(DOCUMENT)
def test_every_beginning_of_a_document_is_fit_to_be_shown(markdown: str) -> None:
    """FC-EDT-01: an answer is shown while it grows."""
    for end in range(1, len(markdown), 4):
        shown(f"# h\n\n{markdown[:end]}")


@settings(max_examples=12, deadline=None)
@given(st.lists(DOCUMENT, min_size=2, max_size=6).map("\n\n".join), st.integers(64, 400))
def test_every_part_of_a_long_answer_is_within_the_limit_in_either_form(
    markdown: str, limit: int
) -> None:
    """B6: the splitter knows one length, and the parts of an answer are the same in both forms."""
    assume("~~~" not in markdown)
    parts = split(markdown, limit, DIALECT.length)
    said = ""
    for part in parts:
        assert DIALECT.length(part) <= limit
        blocks = shown(part)
        said += everything(blocks) if blocks else part
    for one in set(words(markdown)):
        assert markdown.count(one) <= said.count(one), one


def table(columns: int) -> str:
    return "\n".join("|" + cell * columns for cell in ("a|", "-|", "b|"))


@pytest.mark.parametrize(
    ("most", "more"),
    [
        ("- a\n" * 249, "- a\n" * 250),
        ("1. a\n" * 249, "1. a\n" * 250),
        ("# a\n" * 500, "# a\n" * 501),
        ("|a|\n|-|\n" + "|b|\n" * 498, "|a|\n|-|\n" + "|b|\n" * 499),
        (f"# a\n\n{'> ' * 15}a", f"# a\n\n{'> ' * 16}a"),
        (f"# a\n\n{'> ' * 13}**_a_**", f"# a\n\n{'> ' * 14}**_a_**"),
        (table(20), table(21)),
        ("- a\n- b", "- a\n-\n"),
    ],
    ids=["items", "numbers", "headings", "rows", "levels", "styles", "columns", "an empty item"],
)
def test_what_a_rich_message_does_not_take_is_for_entities(most: str, more: str) -> None:
    """Facts, platforms 5.1: 500 blocks, items and rows among them, 16 levels, 20 columns."""
    assert shown(most) is not None
    assert DIALECT.rich(more) is None
    assert DIALECT.length(more) <= MAX_TEXT, "the limit of entities does not help"


@pytest.mark.parametrize(
    "piece",
    ["$", "$a ", "$$a\n", "$$\na\n", "\\(", "\\(a", "\\[\n", "\\[a\n", "$`", "- $$\n", "https://a"],
)
def test_marks_that_a_model_repeats_without_end_cost_in_proportion(piece: str) -> None:
    converter = RichConverter.load()
    once, longer = (
        cpu_seconds(partial(converter.convert, "# h\n" + piece * (size // len(piece))))
        for size in (1000, 8000)
    )
    assert grows_in_proportion(once, longer, 8)
