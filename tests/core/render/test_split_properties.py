"""Properties of the splitter, over generated Markdown in many scripts."""

import re
import unicodedata

import pytest
import regex
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from dragoman.capabilities import LengthUnit
from dragoman.render.split import split
from dragoman.render.text import is_blank

CLUSTERS = [
    "\N{MAN}\N{ZERO WIDTH JOINER}\N{WOMAN}\N{ZERO WIDTH JOINER}\N{GIRL}",
    "\U0001f1fa\U0001f1f3",
    "\N{THUMBS UP SIGN}\N{EMOJI MODIFIER FITZPATRICK TYPE-4}",
    "\N{HEAVY BLACK HEART}\N{VARIATION SELECTOR-16}",
    "e\N{COMBINING ACUTE ACCENT}\N{COMBINING DOT BELOW}",
    "\u0915\u094d\u0937\u093f",
    "\u1112\u1161\u11ab",
    "\U0001f600",
]
WORDS = ["a", "word", "two-part", "sentence.", "Why?", "x_y", "end!", "it's", "(so)", "1."]
SCRIPTS = [
    "\u65e5\u672c\u8a9e\u306e\u6587\u7ae0\u3067\u3059\u3002",
    "\u3053\u308c\u306f\uff01",
    "\u0645\u0631\u062d\u0628\u0627",
    "\u05e9\u05dc\u05d5\u05dd",
    "\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35",
    "stra\u00dfe",
]
INLINE = [
    "**bold words here**",
    "`code span`",
    "[a link](https://example.org/a_(b)?c=d)",
    "~~gone~~",
]

word = st.sampled_from(WORDS + SCRIPTS + CLUSTERS + INLINE)
long_word = st.builds(
    lambda piece, count: piece * count,
    st.sampled_from(["x", *SCRIPTS, *CLUSTERS]),
    st.integers(1, 90),
)
line = st.lists(word | word | word | long_word, min_size=1, max_size=25).map(" ".join)
prose = st.lists(line, min_size=1, max_size=4).map("\n".join)
items = st.lists(st.tuples(st.integers(0, 3), line), min_size=1, max_size=6).map(
    lambda rows: "\n".join(f"{'  ' * depth}- {text}" for depth, text in rows)
)
table = st.lists(word, min_size=1, max_size=12).map(
    lambda cells: "| a | b |\n|---|---|\n" + "\n".join(f"| {cell} | 1 |" for cell in cells)
)
code_line = st.lists(
    st.sampled_from(["x = 1", "    if y:", "", "#", "'\u00e9'", "a" * 70]), max_size=4
)


@st.composite
def fenced(draw):
    """A closed block at the margin, indented by up to three columns."""
    marker = draw(st.sampled_from("`~")) * draw(st.integers(3, 6))
    indent = " " * draw(st.integers(0, 3))
    info = draw(st.sampled_from(["", "python", "c++", "js title=x"]))
    lines = draw(st.lists(code_line.map("".join), min_size=1, max_size=25))
    code = "".join(f"{indent}{text}\n" for text in lines)
    return f"{indent}{marker}{info}\n{code}{indent}{marker}"


paragraphs = st.lists(prose | items | table, min_size=1, max_size=6).map("\n\n".join)
documents = st.lists(prose | items | table | fenced(), min_size=1, max_size=7).map("\n\n".join)
FRAGMENTS = [
    *["```", "~~~", "`", "``````", "```py\n", "\n```\n", "\n~~~\n", "**", "[x](", ")"],
    *["\n", "\r\n", " ", "\t", "    ", "- ", "10. ", "> ", "z" * 40],
    *["\ud83d", "\udc88", "\u200b", "\u0301", "\u0600"],
    *["\N{NO-BREAK SPACE}", "\N{IDEOGRAPHIC SPACE}", *CLUSTERS, *SCRIPTS, *WORDS],
]
noise = st.lists(st.sampled_from(FRAGMENTS), max_size=120).map("".join)
MARKS = ["```", "~~~", "`", "``", "````", "**", " ", " ", "\n", "- x ", "word", "z" * 30]
marked_lines = st.lists(st.sampled_from(MARKS), max_size=80).map(
    lambda pieces: "w " + "".join(pieces).replace("\n", "\nw ")
)
limits = st.integers(64, 400) | st.sampled_from([64, 65, 500, 2000, 4096]) | st.integers(64, 40_000)
units = st.sampled_from(list(LengthUnit))

quick = settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))
many = settings(max_examples=20_000, deadline=None, suppress_health_check=list(HealthCheck))

FENCE_LINE = re.compile(
    r"^[ \t]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)*(?:`{3,}[^`\n]*|~{3,}.*)$", re.MULTILINE
)
PARSER = MarkdownIt()


def visible(text):
    """Everything but fence lines, white space and what cannot be seen."""
    rest = FENCE_LINE.sub("", text)
    return "".join(
        c for c in rest if not c.isspace() and unicodedata.category(c) not in {"Cc", "Cf"}
    )


def blocks(text):
    """(info, code) of the fenced blocks, as another parser sees them; each has to be closed."""
    found = []
    lines = text.split("\n")
    for token in PARSER.parse(text):
        if token.type != "fence":
            continue
        last = lines[token.map[1] - 1].strip()
        assert token.map[1] - 1 > token.map[0], text
        assert last.startswith(token.markup), text
        assert not last.strip(token.markup[0]), text
        found.append((token.info.strip(), token.content))
    return found


def check_parts(text, limit, unit):
    parts = split(text, limit, unit.measure)
    assert all(unit.measure(part) <= limit for part in parts)
    assert not any(is_blank(part, limit // 8) for part in parts)
    assert len(parts) <= 4 * unit.measure(text) / limit + 8
    return parts


def check_document(text, limit, unit):
    parts = check_parts(text, limit, unit)
    assert visible("\n".join(parts)) == visible(text)
    before, after = blocks(text), [block for part in parts for block in blocks(part)]
    for info in ("", "python", "c++", "js title=x"):
        code = ["".join(c for i, c in found if i == info) for found in (before, after)]
        assert "".join(code[0].split()) == "".join(code[1].split())
    return parts


@quick
@given(documents, limits, units)
def test_parts_are_within_the_limit_balanced_and_lose_nothing(text, limit, unit):
    """B6: no code fence is broken, whichever unit the platform counts in."""
    check_document(text, limit, unit)


@quick
@given(noise, limits, units)
def test_fc_spl_01_hostile_text_ends_within_the_limit_and_the_number_of_parts(text, limit, unit):
    check_parts(text, limit, unit)


@quick
@given(marked_lines, st.integers(64, 300), units)
def test_marks_inside_lines_are_text_and_none_is_lost(text, limit, unit):
    parts = check_parts(text, limit, unit)
    assert "".join("".join(parts).split()) == "".join(text.split())


@quick
@given(paragraphs, st.integers(64, 300), units)
def test_no_cut_is_inside_a_grapheme_cluster(text, limit, unit):
    """B6: what people see as one character stays one, wherever a part ends."""

    def seen(source):
        return [c for c in regex.findall(r"\X", source) if not c.isspace()]

    parts = split(text, limit, unit.measure)
    assert [cluster for part in parts for cluster in seen(part)] == seen(text)


@quick
@given(documents, documents, st.sampled_from(["", " ", "\n", "\n\n"]), st.integers(64, 400), units)
def test_text_that_grows_changes_the_last_two_parts_at_most(first, second, between, limit, unit):
    before = split(first, limit, unit.measure)
    after = split(first + between + second, limit, unit.measure)
    keep = max(len(before) - 2, 0)
    assert after[:keep] == before[:keep]


@quick
@given(documents, limits)
def test_a_length_that_conversion_makes_uneven_is_still_a_limit(text, limit):
    """The platform counts after conversion: marks and addresses vanish, signs are escaped."""

    def length(markdown):
        shown = re.sub(r"\*\*|`+|~~", "", re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", markdown))
        return LengthUnit.UTF16.measure(re.sub(r"['(!]", "&#39;", shown))

    parts = split(text, limit, length)
    assert all(length(part) <= limit for part in parts)
    assert visible("\n".join(parts)) == visible(text)


@quick
@given(documents, units)
def test_a_text_that_fits_is_one_part_and_stays_as_it_is(text, unit):
    assume(not is_blank(text))
    assert split(text, 40_000 * 4, unit.measure) == [text.rstrip()]


@pytest.mark.proof
@pytest.mark.timeout(600)
@many
@given(documents, limits, units)
def test_proof_that_parts_are_balanced_and_complete(text, limit, unit):
    check_document(text, limit, unit)
