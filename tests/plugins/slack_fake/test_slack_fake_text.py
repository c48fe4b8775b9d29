"""Text and Markdown as Slack keeps them, and whether the rules are written down."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import peers.slack_fake
from peers.slack_fake import text
from peers.slack_fake.blocks import words
from peers.slack_fake.markdown import read


@pytest.mark.parametrize(
    ("given_text", "kept"),
    [
        ("a & b", "a &amp; b"),
        ("a &amp; b &lt;", "a &amp; b &lt;"),
        ("1 < 2 > 0", "1 &lt; 2 &gt; 0"),
        ("<@U1> <#C1|general> <!here>", "<@U1> <#C1|general> <!here>"),
        ("<b>bold</b>", "&lt;b&gt;bold&lt;/b&gt;"),
        ("see https://example.com/a?b=1&c=2.", "see <https://example.com/a?b=1&amp;c=2>."),
        ("(https://example.com/)", "(<https://example.com/>)"),
        ("<https://example.com/|there>", "<https://example.com/|there>"),
        ("to ada@example.com!", "to <mailto:ada@example.com|ada@example.com>!"),
        ("`curl http://127.0.0.1`", "`curl <http://127.0.0.1>`"),
        ("http:/ alone", "http:/ alone"),
    ],
)
def test_an_apps_text_is_kept_escaped_with_its_forms(given_text, kept):
    assert text.accept(given_text) == kept
    assert text.accept(kept) == kept, "what was kept stays as it is"


def test_a_person_types_what_they_mean():
    assert text.typed("&amp; <b>") == "&amp;amp; &lt;b&gt;"
    assert text.typed("<@U1> hi") == "<@U1> hi"
    assert text.plain("a &lt; b <https://example.com/|there> <!here>") == "a < b there @here"


def test_a_long_text_is_kept_in_no_time():
    assert text.accept("x" * 50_000) == "x" * 40_000
    assert text.accept("x@" * 20_000) == "x@" * 20_000


@pytest.mark.parametrize(
    ("markdown", "kept"),
    [
        ("# Title", "Title"),
        ("**b** *i* ~~s~~ `c`", "*b* _i_ ~s~ `c`"),
        ("a\n\nb", "a\n\nb"),
        ("- a\n- b\n  1. c", "• a\n• b\n    1. c"),
        ("[a](https://example.com/x)", "<https://example.com/x|a>"),
        ("<https://example.com/>", "<https://example.com/|https://example.com/>"),
        ("https://example.com/", "<https://example.com/>"),
        ("> quoted", "&gt; quoted"),
        ("```py\na < b\n```", "```\na &lt; b\n```"),
        ("|a|b|\n|-|-|\n|1|2|", "```\na | b\n1 | 2\n```"),
        ("![a cat](https://example.com/c.png)", "<https://example.com/c.png|a cat>"),
        ("x < y & <b>", "x &lt; y &amp; &lt;b&gt;"),
        ("", ""),
    ],
)
def test_markdown_is_kept_in_slacks_marks(markdown, kept):
    assert read(markdown).text == kept


def test_rich_text_has_styles_and_lists():
    [block] = read("**b `c`** <@U1>\n\n1. x\n\n```\ncode\n```").blocks
    section, listed, code = block["elements"]
    assert section["elements"] == [
        {"type": "text", "text": "b ", "style": {"bold": True}},
        {"type": "text", "text": "c", "style": {"bold": True, "code": True}},
        {"type": "text", "text": " "},
        {"type": "user", "user_id": "U1"},
    ]
    assert (listed["type"], listed["style"]) == ("rich_text_list", "ordered")
    assert code["type"] == "rich_text_preformatted"
    assert words([block]) == "b c <@U1>xcode\n"


@pytest.mark.parametrize(
    ("markdown", "people"),
    [
        ("<@U1> and <!channel>", {"U1", "channel"}),
        ("`<@U1>` and ```<!here>```", set()),
        (r"\<@U1> &lt;!channel&gt;", set()),
        ("<!subteam^S1> @everyone", set()),
    ],
)
def test_who_is_called(markdown, people):
    assert text.called(read(markdown).text) == people


@given(st.text(alphabet="ab `*_~#>-|[]()<@!U1\n\\&;:/.", max_size=60))
def test_any_text_at_all_is_read(anything):
    read(anything)
    kept = text.accept(anything)
    assert text.accept(kept) == kept
    text.rich_text(kept)


def test_every_rule_is_written_down_and_kept():
    folder = Path(peers.slack_fake.__file__).parent
    written = set(re.findall(r"^\| (R\d+) ", (folder / "RULES.md").read_text(), re.MULTILINE))
    code = "".join(path.read_text() for path in folder.glob("*.py"))
    spans = re.findall(r"R(\d+) to R(\d+)", code)
    cited = {f"R{n}" for first, last in spans for n in range(int(first), int(last) + 1)}
    cited |= set(re.findall(r"\bR\d+\b", code))
    assert cited == written
