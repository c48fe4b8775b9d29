"""Tables that do not fit: moved whole, or cut between rows with their header repeated."""

import pytest
from markdown_it import MarkdownIt

from dragoman.render.split import split

PARSER = MarkdownIt().enable("table")


def rows_of(part):
    """The cells of each table's rows, headers first."""
    rows = []
    for token in PARSER.parse(part):
        if token.type == "tr_open":
            rows.append([])
        elif token.type == "inline" and rows and token.level > 3:
            rows[-1].append(token.content)
    return rows


def test_fc_mkd_02_a_table_that_fits_a_part_of_its_own_is_moved_whole():
    table = "| item | link |\n|---|---|\n" + "| a | [open](https://example.org/a) |\n" * 8
    first, second = split(f"{'word ' * 30}\n\n{table}\ntail", 400, len)
    assert first == ("word " * 30).rstrip()
    assert second == f"{table}\ntail"


def test_fc_mkd_02_a_long_table_is_cut_between_rows_and_its_header_is_repeated():
    head = "| item | link |\n|:--|--:|\n"
    rows = [f"| {i} | [open](https://example.org/{i}) |\n" for i in range(60)]
    parts = split(f"Intro\n\n{head}{''.join(rows)}\ntail", 400, len)
    assert len(parts) > 5
    assert all(rows_of(part)[0] == ["item", "link"] for part in parts)
    assert all(part.startswith(head) for part in parts[1:])
    assert [row for part in parts for row in rows_of(part)[1:]] == [
        [str(i), f"[open](https://example.org/{i})"] for i in range(60)
    ]


def test_a_row_that_fits_no_part_goes_on_in_its_column():
    text = "| a | b | c |\n|---|---|---|\n| 1 | " + "words " * 60 + "| 3 |"
    found = [row for part in split(text, 128, len) for row in rows_of(part)[1:]]
    assert len(found) > 3
    assert all(len(row) == 3 for row in found)
    assert "".join(row[0] for row in found) == "1"
    assert " ".join(row[1] for row in found).split() == ["words"] * 60
    assert "".join(row[2] for row in found) == "3"


@pytest.mark.parametrize(
    "text",
    [
        "| a | b |\n|---|\n" + "| 1 | 2 |\n" * 40,
        "a\n---\n" + "| 1 | 2 |\n" * 40,
        "| " + "long header " * 4 + "|\n|---|\n" + "| some words |\n" * 20,
    ],
    ids=["other columns", "heading", "header of more than half of the limit"],
)
def test_what_is_no_table_or_has_too_long_a_header_is_ordinary_text(text):
    assert "".join("".join(split(text, 80, len)).split()) == "".join(text.split())


def test_a_table_in_a_list_goes_on_at_the_margin():
    rows = "".join(f"      | {i} | some words |\n" for i in range(40))
    text = f"- a\n  - b\n    - c\n\n      | n | text |\n      |---|---|\n{rows}\n- d"
    parts = split(text, 200, len)
    found = [row[0] for part in parts for row in rows_of(part) if row[0] != "n"]
    assert found == [str(i) for i in range(40)]
    assert not any("<code>" in PARSER.render(part) for part in parts)
