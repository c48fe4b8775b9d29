"""What splitting costs: it grows with the text and no faster, whatever the text is made of."""

import pytest

from cost import cpu_seconds, grows_in_proportion
from dragoman.capabilities import LengthUnit
from dragoman.render.split import split
from dragoman.render.text import close_open_constructs

UTF16 = LengthUnit.UTF16.measure
HOSTILE = [
    *["```", "~~~\n", "|", "[", "![", "*", "(", "\\", "`", "~", "_", "<", "#", "> ", "- ", "1. "],
    *["\n", " ", "\t", "\r\n", "| a ", "|-", "|a|\n|-|\n", "[a](", "**a ", "*a b_ ", "`` ` "],
    *["\n  - x", "    - x\n", "```\nab\n```\n", "_*~~`", '[a](x "', "- [ ] ", "||", "a"],
    *["\u3002", "\u0301", "\U0001f468\u200d\U0001f469", "x" * 50 + "\n\n"],
]
HEADS = ["", "```\n", "|a|b|\n|-|-|\n", "|a|\n|-|\n|", "- "]


def measured(text):
    """How often a text is measured when it is split, and how many characters in all."""
    asked = []
    parts = split(text, 4096, lambda part: asked.append(len(part)) or UTF16(part))
    return len(asked), sum(asked), len(parts)


def test_length_is_asked_few_times():
    asked, _, parts = measured("Some words make a sentence. " * 10_000)
    assert asked <= 12 * parts


@pytest.mark.parametrize(
    "block",
    ["Some words make a sentence. ", "word " * 80 + "\n\n", "| a | b |\n"],
)
def test_a_megabyte_is_measured_four_times_as_much_as_a_quarter_of_it(block):
    head = "| a | b |\n|---|---|\n" if block[0] == "|" else ""
    small, large = (measured(head + block * (size // len(block))) for size in (1 << 18, 1 << 20))
    assert all(3 < more / less < 5 for less, more in zip(small, large, strict=True))
    assert large[1] <= 16 << 20


def assert_in_proportion(function, begin, piece, small):
    """Text eight times as long costs about eight times as much."""
    texts = [begin + piece * (size // len(piece)) for size in (small, 8 * small)]
    costs = [cpu_seconds(lambda text=text: function(text), times=2) for text in texts]
    assert grows_in_proportion(*costs, 8), (begin, piece, costs)


def split_at(limit):
    return lambda text: split(text, limit, UTF16)


@pytest.mark.parametrize("limit", [4096, 128])
@pytest.mark.parametrize("number", range(len(HEADS)), ids=HEADS)
def test_hostile_text_eight_times_as_long_takes_about_eight_times_as_long(number, limit):
    for piece in HOSTILE[number :: len(HEADS)]:
        assert_in_proportion(split_at(limit), HEADS[number], piece, 4000)


@pytest.mark.parametrize("piece", HOSTILE)
def test_a_hostile_preview_costs_as_much_as_its_text(piece):
    assert_in_proportion(close_open_constructs, "", piece, 8000)


@pytest.mark.proof
@pytest.mark.parametrize("limit", [4096, 128])
@pytest.mark.parametrize("head", HEADS)
def test_proof_that_any_hostile_text_costs_in_proportion(head, limit):
    for piece in HOSTILE:
        assert_in_proportion(split_at(limit), head, piece, 16_000)


@pytest.mark.proof
@pytest.mark.timeout(600)
@pytest.mark.parametrize("piece", [*HOSTILE, "Lorem ipsum dolor. ", "word " * 80 + "\n\n"])
def test_proof_that_a_megabyte_costs_eight_times_as_much_as_an_eighth_of_it(piece):
    assert_in_proportion(split_at(4096), "", piece, 1_000_000 // 8)
    assert_in_proportion(close_open_constructs, "", piece, 1_000_000 // 8)
