"""The splitter on the texts that broke others, and on the ones that are easy to get wrong."""

import pytest
from markdown_it import MarkdownIt

from dragoman.capabilities import LengthUnit
from dragoman.render.split import split

UTF16 = LengthUnit.UTF16.measure
PARSER = MarkdownIt()


def code_of(part):
    return [(t.info, t.content) for t in PARSER.parse(part) if t.type == "fence"]


@pytest.mark.timeout(5)
@pytest.mark.parametrize("limit", [4096, 2000, 3000, 64])
def test_fc_spl_01_an_endless_code_line_is_cut_and_every_part_is_a_block(limit):
    parts = split("```\n" + "A" * 9000 + "\n```\n", limit, UTF16)
    assert all(UTF16(part) <= limit for part in parts)
    assert all(part.startswith("```\nA") and part.endswith("A\n```") for part in parts)
    assert "".join(part[4:-4] for part in parts) == "A" * 9000
    assert len(parts) <= 4 * 9000 / limit + 8


@pytest.mark.timeout(5)
def test_fc_spl_01_an_endless_info_string_becomes_code_that_can_be_cut():
    parts = split("```" + "A" * 9000, 2000, UTF16)
    assert all(part.startswith("```\nA") and part.endswith("A\n```") for part in parts)
    assert "".join(part[4:-4] for part in parts) == "A" * 9000


def test_fc_spl_02_a_short_block_moves_whole_to_the_next_part():
    code = "x = 1\n" * 300
    text = "Intro " * 500 + "\n```python\n" + code + "```\nTail **bold** text."
    first, second = split(text, 4096, UTF16)
    assert first == ("Intro " * 500).rstrip()
    assert code_of(second) == [("python", code)]
    assert "<strong>bold</strong>" in PARSER.render(second)


def test_fc_spl_02_a_long_block_is_closed_and_reopened_with_its_language():
    code = "".join(f"    x{i} = {i}\n" for i in range(900))
    text = f"Intro\n\n~~~~python linenos\n{code}~~~~\n\nTail **bold** text."
    parts = split(text, 2000, UTF16)
    found = [block for part in parts for block in code_of(part)]
    assert len(parts) > 5
    assert {info for info, _ in found} == {"python linenos"}
    assert "".join(content for _, content in found) == code
    assert parts[1].startswith("~~~~python linenos\n    x")
    assert "<strong>bold</strong>" in PARSER.render(parts[-1])


def test_fc_spl_03_limits_of_500_and_40000_each_get_parts_of_their_own_size():
    text = "```\n" + "| a | b | c |\n" * 500 + "```"
    assert split(text, 40_000, len) == [text]
    parts = split(text, 500, len)
    assert all(400 < len(part) <= 500 for part in parts[:-1])
    assert "".join(content for part in parts for _, content in code_of(part)) == text[4:-3]


def test_fc_spl_04_emoji_are_counted_in_utf16_units_and_none_is_lost():
    text = "\U0001f600" * 5000
    parts = split(text, 3996, UTF16)
    assert "".join(parts) == text
    assert max(len(part.encode("utf-16-le")) // 2 for part in parts) <= 3996
    assert len(parts) == 3


def test_a_fence_in_a_deep_list_item_is_reopened_where_it_counts():
    code = "".join(f"      {'  ' * (i % 3)}run {i}\n" for i in range(120))
    text = f"- a\n  - b\n    - c\n\n      ```sh\n{code}      ```\n- **d**"
    parts = split(text, 300, len)
    assert len(parts) > 2
    assert [info for part in parts for info, _ in code_of(part)] == ["sh"] * len(parts)
    found = "".join(content for part in parts for _, content in code_of(part))
    assert found == code.replace("\n      ", "\n")[6:]
    assert "<strong>d</strong>" in PARSER.render(parts[-1])


def test_a_deep_list_that_goes_on_in_another_part_is_a_list():
    items = "".join(
        f"{'  ' * depth}- item of depth {depth}\n" for depth in (0, 1, 2, 3, 2, 3, 1) * 8
    )
    for limit in range(64, 160):
        shown = [PARSER.render(part) for part in split(items, limit, len)]
        assert not any("- item" in part or "<code>" in part for part in shown), limit


def test_a_backslash_is_not_parted_from_what_it_escapes():
    for ahead in range(56, 66):
        parts = split("w" * ahead + "\\*" + "w" * 40, 64, len)
        assert not any(part.endswith("\\") for part in parts)


def test_a_longer_fence_keeps_the_shorter_ones_inside_it_as_code():
    inner = "```\nquoted\n```\n" * 30
    parts = split(f"````md\n{inner}````", 128, len)
    assert "".join(content for part in parts for _, content in code_of(part)) == inner


@pytest.mark.parametrize("mark", ["```", "~~~"])
def test_a_cut_never_makes_a_fence_of_marks_inside_a_line(mark):
    for ahead in range(40, 70):
        text = "w" * ahead + f" {mark} " + "tail " * 30
        assert not any(part.startswith(mark) for part in split(text, 64, len))
        code = f"````\n{'w' * ahead}{mark}`\n{'w' * ahead}   ````x\nlast\n````"
        for part in split(code, 64, len):
            assert [info for info, _ in code_of(part)] == [""], part


def test_an_open_block_is_closed_in_every_part():
    parts = split("```py\n" + "x = 1\n" * 50, 100, len)
    assert all(part.startswith("```py\n") and part.endswith("\n```") for part in parts)


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("one two. three\n\n" + "four " * 20, "one two. three"),
        ("a" * 30 + " b. c\n" + "four " * 20, "a" * 30 + " b. c"),
        ("a" * 30 + " bc d. " + "four-" * 20, "a" * 30 + " bc d."),
        ("a" * 30 + " bc de " + "four-" * 20, "a" * 30 + " bc de"),
        ("\u6587" * 40 + "\u3002\u300d" + "\u6587" * 40, "\u6587" * 40 + "\u3002\u300d"),
    ],
    ids=["paragraph", "line", "sentence", "word", "full-width"],
)
def test_a_cut_prefers_the_coarser_boundary(text, first):
    limit = 2 * len(first) - 2 if "\n\n" in text else 64
    assert split(text, max(limit, 20), len)[0] == first


@pytest.mark.parametrize(
    "span", ["[some words](https://example.org/x)", "`some code words`", "**some bold words**"]
)
def test_inline_constructs_are_not_cut_where_another_place_is_near(span):
    for ahead in range(20, 60):
        text = "w" * ahead + f" w {span} tail " + "w " * 60
        assert any(span in part for part in split(text, 160 if "http" in span else 80, len))


def test_the_indentation_of_the_line_after_a_cut_is_kept():
    text = "\n\n".join(f"p{i}\n\n    indented {i}" for i in range(60))
    parts = split(text, 100, len)
    rest = [line for part in parts for line in part.split("\n") if line.strip()]
    assert rest == [line for line in text.split("\n") if line.strip()]


def test_a_deep_list_item_at_the_beginning_of_a_part_is_still_a_list_item():
    text = "- a\n" + "".join(f"      - item {i}\n" for i in range(60))
    assert all("<code>" not in PARSER.render(part) for part in split(text, 100, len))


@pytest.mark.parametrize(
    "text", ["", " \n\t\n", "\u200b\n\u200e", "```\n```", "```py\n\n\n```", "```py", "\n" * 9000]
)
def test_fc_emp_01_a_text_in_which_nothing_can_be_seen_has_no_part(text):
    assert split(text, 64, len) == []


def test_fc_emp_01_a_part_that_converts_to_nothing_is_left_out():
    assert split("[](x)", 64, lambda text: 0) == []


def test_blank_stretches_make_no_blank_part():
    text = "head" + "\n" * 9000 + "```\n" + "\n" * 9000 + "code\n```\n" + " " * 9000 + "tail"
    parts = split(text, 64, len)
    assert parts[0] == "head"
    assert parts[-1].endswith("tail")
    assert sum("code" in part for part in parts) == 1
    assert len(parts) <= 3


def test_one_cluster_above_the_limit_is_cut_because_nothing_else_goes_on():
    text = "a" + "\N{COMBINING ACUTE ACCENT}" * 500
    parts = split(text, 64, len)
    assert "".join(parts) == text
    assert max(map(len, parts)) == 64


def test_a_limit_that_no_character_fits_is_refused():
    with pytest.raises(ValueError, match="at least 8"):
        split("text", 7, len)


def test_a_part_is_filled_by_what_the_platform_counts_not_by_characters():
    text = "a" * 14 + " " + "\U0001f600" * 40
    parts = split(text, 64, LengthUnit.UTF8.measure)
    assert LengthUnit.UTF8.measure(parts[0]) > 60


def test_no_part_shows_an_empty_block_before_or_after_its_text():
    for rows in range(4, 24):
        for blank in range(0, 40, 3):
            gap = "\n" * blank
            text = f"head\n\n```py\n{gap}" + "x = 1\n" * rows + f"{gap}```\ntail " + "t" * 50
            for part in split(text, 64, len):
                assert all(content.strip() for _, content in code_of(part)), part


def test_code_is_cut_at_a_blank_line_where_one_is_near():
    first, second = split("```\n" + "x = 1\n" * 7 + "\n" + "y = 2\n" * 7 + "```", 80, len)
    assert "y" not in first
    assert second == "```\n" + "y = 2\n" * 7 + "```"


@pytest.mark.parametrize("text", ["     ``` word", "`" * 20 + " some words", "> ```\n> word"])
def test_a_line_that_only_looks_like_a_fence_is_not_lost(text):
    assert "".join("".join(split(text, 64, len)).split()) == "".join(text.split())


@pytest.mark.parametrize("ahead", range(40, 70))
def test_marks_after_a_cut_inside_a_line_are_not_lost(ahead):
    text = "w" * ahead + " ``` " + "tail " * 30
    assert "".join("".join(split(text, 64, len)).split()) == "".join(text.split())


def test_a_code_span_of_three_marks_opens_no_block():
    text = "\n".join(["```code``` and words"] * 40)
    assert "\n".join(split(text, 100, len)) == text


def test_a_sign_that_changes_a_full_stop_stays_with_it():
    text = ("\u6587" * 40 + "\u3002\N{VARIATION SELECTOR-1}") * 6
    parts = split(text, 64, len)
    assert "".join(parts) == text
    assert not any(part.startswith("\N{VARIATION SELECTOR-1}") for part in parts)


def test_a_mark_that_stands_on_a_space_stays_with_it():
    piece = "abc \N{COMBINING ACUTE ACCENT}"
    assert "".join(split(piece * 40, 64, len)) == piece * 40


def test_a_short_text_is_measured_once():
    asked = []
    assert split("short", 4096, lambda text: asked.append(text) or len(text)) == ["short"]
    assert asked == ["short"]


@pytest.mark.parametrize("rest", ["-\n\nmore", "---", "- b", "1. b", "# b", "> b"])
def test_a_cut_inside_a_line_makes_no_block_of_what_follows(rest):
    """B6: the rest of a word, or of a line, is what it was, and not a list, a heading or a rule."""
    glued, apart = "ab" * 31 + "a" + rest, f"{'word ' * 12}www {rest}"
    for text in (glued, apart):
        assert not split(text, 64, len)[1].startswith(rest[:1])
