"""What splitting costs: it grows with the text and no faster, whatever the text is made of."""

import time

import pytest

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


def seconds(function, text):
    best = float("inf")
    for _ in range(2):
        before = time.process_time()
        function(text)
        best = min(best, time.process_time() - before)
    return best


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


@pytest.mark.timeout(120)
@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("limit", [4096, 128])
def test_hostile_text_eight_times_as_long_takes_about_eight_times_as_long(head, limit):
    for piece in HOSTILE if not head and limit == 4096 else HOSTILE[::3]:

        def cost(size, piece=piece):
            return seconds(lambda t: split(t, limit, len), head + piece * (size // len(piece)))

        assert cost(40_000) < 3 * 8 * cost(5000) + 0.1, piece


@pytest.mark.parametrize("piece", HOSTILE)
def test_a_hostile_preview_costs_as_much_as_its_text(piece):
    def cost(size):
        return seconds(close_open_constructs, piece * (size // len(piece)))

    assert cost(64_000) < 3 * 8 * cost(8000) + 0.05


@pytest.mark.proof
@pytest.mark.timeout(600)
@pytest.mark.parametrize("piece", [*HOSTILE, "Lorem ipsum dolor. ", "word " * 80 + "\n\n"])
def test_proof_that_a_megabyte_is_split_and_shown_in_seconds(piece):
    text = piece * (1_000_000 // len(piece))
    assert seconds(lambda t: split(t, 4096, UTF16), text) < 4
    assert seconds(close_open_constructs, text) < 4
