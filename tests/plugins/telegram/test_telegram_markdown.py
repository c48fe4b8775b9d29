"""What people see of Markdown on Telegram."""

from __future__ import annotations

import time

import pytest

from dragoman_telegram.blocks import Converter
from peers.telegram_fake.judging import called, check, spans

CONVERTER = Converter.load()
HTML = "<b>html</b> <!-- c -->\n\n<div>\nx\n</div>"
URLS = "https://a.example/__x__/*y* (https://a.example/b_(c))."


def seen(markdown: str) -> tuple[str, list[tuple[str, ...]]]:
    """Return the text and its entities, which Telegram keeps as they are."""
    formatted = CONVERTER.convert(markdown)
    check(formatted)
    return formatted.text, spans(formatted.text, formatted.entities)


@pytest.mark.parametrize(
    ("markdown", "text", "entities"),
    [
        ("plain\ntext  \nhard\\\nbreaks", "plain\ntext\nhard\nbreaks", []),
        (
            "**b** *i* ~~s~~ `c*d*`",
            "b i s c*d*",
            [("bold", "b"), ("italic", "i"), ("strikethrough", "s"), ("code", "c*d*")],
        ),
        ("***x***", "x", [("bold", "x"), ("italic", "x")]),
        ("🎉 **b 🎉 *i***", "🎉 b 🎉 i", [("bold", "b 🎉 i"), ("italic", "i")]),
        ("**a `c` b**", "a c b", [("bold", "a"), ("code", "c"), ("bold", "b")]),
        ("# Big *i* **b**", "Big i b", [("bold", "Big i b"), ("italic", "i")]),
        ("# T\ntext\n\n## U\n\nmore", "T\ntext\n\nU\n\nmore", [("bold", "T"), ("bold", "U")]),
        ("a\n\n---\n\nb", "a\n\n———\n\nb", []),
        (r"\*not\* &lt;b&gt; &#42;", "*not* <b> *", []),
        ("a_b_c 2 * 3 * 4 **open", "a_b_c 2 * 3 * 4 **open", []),
        (HTML, HTML, []),
        ("日本**語**です עברית **רז**", "日本語です עברית רז", [("bold", "語"), ("bold", "רז")]),
    ],
)
def test_marks_in_a_text(markdown, text, entities):
    assert seen(markdown) == (text, entities)


@pytest.mark.parametrize(
    ("markdown", "text", "entities"),
    [
        ("```py\ndef f():\n    x\n```", "def f():\n    x", [("pre", "def f():\n    x", "py")]),
        ("a\n```\nx\n```\nb", "a\nx\nb", [("pre", "x")]),
        ("    x\n    \ty", "x\n    y", [("pre", "x\n    y")]),
        ("~~~\n```\n~~~", "```", [("pre", "```")]),
        ("```py title=x\na\n```", "title=x\na", [("pre", "a", "py")]),
        ("```py\nopen", "open", [("pre", "open", "py")]),
        ("```py\n```", "py", []),
        # The server would cut the indentation off.
        ("```\n    return\n```", "\u00a0   return", [("pre", "\u00a0   return")]),
        ("`` a`b `` `@ada`", "a`b @ada", [("code", "a`b"), ("code", "@ada")]),
    ],
)
def test_code_is_left_as_it_is(markdown, text, entities):
    assert seen(markdown) == (text, entities)


@pytest.mark.parametrize(
    ("markdown", "text"),
    [
        ("- a\n- b\n  more\n  - c\n- d", "• a\n• b\n    more\n    • c\n• d"),
        ("3. a\n4. b\n   1) c", "3. a\n4. b\n    1) c"),
        ("- a\n\n- b\n\n  p", "• a\n\n• b\n\n    p"),
        ("Two:\n- [ ] a\n- [x] b\n1. [X] c", "Two:\n☐ a\n☑ b\n1. ☑ c"),
        ("- [link](https://a.example)", "• link"),
        ("-\n- a", "• \n• a"),
        ("- a\n  ```\n  x\n  ```\n- b", "• a\nx\n• b"),
        ("- - a", "• • a"),
    ],
)
def test_lists(markdown, text):
    assert seen(markdown)[0] == text


@pytest.mark.parametrize(
    ("markdown", "text", "entities"),
    [
        ("> a\n> **b**\n\nc", "a\nb\n\nc", [("blockquote", "a\nb"), ("bold", "b")]),
        ("> a\n\n> b", "a\n\nb", [("blockquote", "a"), ("blockquote", "b")]),
        ("> a\n> > b\n> > c\n> d", "a\n> b\n> c\n> d", [("blockquote", "a\n> b\n> c\n> d")]),
        ("> - a\n>   - b", "• a\n    • b", [("blockquote", "• a\n    • b")]),
        ("> ```py\n> x\n> ```", "x", [("blockquote", "x"), ("pre", "x", "py")]),
    ],
)
def test_quotations(markdown, text, entities):
    assert seen(markdown) == (text, entities)


def test_fc_mkd_01_links_of_all_kinds_lead_where_they_should():
    """FC-MKD-01: Slack's form, lists and parentheses included; nothing is encoded twice."""
    markdown = (
        "See <https://example.com/doc|the document>.\n"
        "- <https://example.com/x|Ticket 1> done\n"
        "- [Ticket 2](https://example.com/y_(v2)) open\n"
        "- [é %20](https://example.com/é%20b) <https://example.com/auto>"
    )
    text, entities = seen(markdown)
    assert text == (
        "See the document.\n• Ticket 1 done\n• Ticket 2 open\n• é %20 https://example.com/auto"
    )
    assert [entity[1:] for entity in entities] == [
        ("the document", "https://example.com/doc"),
        ("Ticket 1", "https://example.com/x"),
        ("Ticket 2", "https://example.com/y_(v2)"),
        ("é %20", "https://example.com/%C3%A9%20b"),
        ("https://example.com/auto", "https://example.com/auto"),
    ]


@pytest.mark.parametrize(
    ("markdown", "text", "entities"),
    [
        ("[a](tg://user?id=5)", "a (tg://user?id=5)", []),
        ("[a](TG:user?id=5)", "a (TG:user?id=5)", []),
        ("[a](./file.md)", "a (./file.md)", []),
        ("[a](http://localhost:80/)", "a (http://localhost:80/)", []),
        ("[a](https://a.example:99999/)", "a (https://a.example:99999/)", []),
        ("[a](https://x@a.example/)", "a (https://x@a.example/)", []),
        ("[write](mailto:a@b.example) <a@b.example>", "write (mailto:a@b.example) a@b.example", []),
        ("[a](javascript:x)", "[a](javascript:x)", []),
        (
            "[](https://a.example)",
            "https://a.example",
            [("text_link", "https://a.example", "https://a.example")],
        ),
        ('[a](https://a.example "T")', "a (T)", [("text_link", "a", "https://a.example")]),
        (
            "[**a** `c`](https://a.example)",
            "a c",
            [("text_link", "a c", "https://a.example"), ("bold", "a")],
        ),
        (
            "![alt](https://a.example/i.png)",
            "alt",
            [("text_link", "alt", "https://a.example/i.png")],
        ),
        (
            "[![i](https://a.example/i)](https://b.example)",
            "i (https://a.example/i)",
            [("text_link", "i (https://a.example/i)", "https://b.example")],
        ),
        ("[a][1]\n\n[1]: https://a.example", "[a][1]\n\n[1]: https://a.example", []),
        (URLS, URLS, []),
        ("**https://a.example/b**", "https://a.example/b", [("bold", "https://a.example/b")]),
    ],
)
def test_links_that_telegram_would_not_take_are_written_out(markdown, text, entities):
    assert seen(markdown) == (text, entities)


def test_fc_mkd_02_a_table_is_readable_and_its_links_can_be_used():
    """FC-MKD-02: and what an agent quotes calls nobody."""
    markdown = (
        "| item | n | 名 |\n|---|--:|:-:|\n| [open](https://example.com/a) | 1 | 日 |\n"
        "| `a\\|b` | 10 |\n| x | 2 | y | more |\n\n"
        "Quoted user text: <!channel> <@U00000001> <!subteam^S1>"
    )
    text, entities = seen(markdown)
    assert text.replace("\u2060", "") == (
        "item                         |  n | 名\n"
        "-----------------------------+----+---\n"
        "open (https://example.com/a) |  1 | 日\n"
        "a|b                          | 10\n"
        "x                            |  2 | y  | more\n\n"
        "Quoted user text: <!channel> <@U00000001> <!subteam^S1>"
    )
    assert [kind for kind, *_ in entities] == ["pre"]
    assert called(CONVERTER.convert(markdown)) == []


@pytest.mark.parametrize("before", ["", "a paragraph\n\n"])
@pytest.mark.parametrize("item", ["2. x", "-"])
def test_any_list_ends_a_table(before, item):
    text, _ = seen(f"{before}| a |\n|---|\n{item}")
    assert text.endswith("a\n-\n2. x" if item == "2. x" else "a\n-\n•")


def test_lines_that_end_as_on_old_machines_are_lines():
    assert seen("a\rb\r\r**c**") == ("a\nb\n\nc", [("bold", "c")])


def test_fc_mkd_04_a_name_with_underscores_in_bold_is_shown():
    """FC-MKD-04."""
    markdown = "Column **antique_identifier** and `half code and *star"
    assert seen(markdown) == (
        "Column antique_identifier and `half code and *star",
        [("bold", "antique_identifier")],
    )


@pytest.mark.parametrize("markdown", ["**", "```", "#", ">", "<!-- -->", "[]()"])
def test_markup_without_a_text_is_shown_itself(markdown):
    assert seen(markdown)[0] == markdown


@pytest.mark.parametrize(
    "markdown",
    [
        "@ada (@ada) -@ada <@ada> @ada_b.",
        "@*ada* **@**ada @\\ada &#64;ada @&#97;da",
        "@\u202eada @\x00ada @\u200eada",
        "[@ada](https://a.example) [x](https://a.example/@ada) https://notes.example/@ada https://a/@ada",
        "| a |\n|---|\n| @ada |",
        "é@ada1 日@ada",
    ],
)
def test_nobody_is_called_unless_the_table_allows_it(markdown):
    """Invariant 12: a name in an answer notifies nobody."""
    formatted = CONVERTER.convert(markdown)
    check(formatted)
    assert called(formatted) == []
    assert called(CONVERTER.as_it_is(markdown)) == []
    assert "ada" in formatted.text


def test_addresses_and_targets_keep_their_at_sign():
    text, entities = seen("a@b.example https://notes.example/@ada/x_y, `@ada`")
    assert text == "a@b.example https://notes.example/@\u2060ada/x_y, @ada"
    assert entities == [
        ("text_link", "https://notes.example/@\u2060ada/x_y", "https://notes.example/@ada/x_y"),
        ("code", "@ada"),
    ]


def test_with_mentions_allowed_names_are_as_they_were_written():
    converter = Converter.load(mentions=True)
    assert converter.convert("**@ada**").text == "@ada"
    assert called(converter.convert("@ada and @*ada*")) == ["@ada", "@ada"]
    assert converter.as_it_is("@ada").text == "@ada"


def test_of_more_entities_than_count_the_text_stays_and_calls_nobody():
    """The server drops those beyond a hundred: then links are written out, and code calls nobody."""
    markdown = " ".join(f"**b{n}** `@ada{n}` [l{n}](https://a.example/{n})" for n in range(60))
    formatted = CONVERTER.convert(markdown)
    check(formatted)
    assert len(formatted.entities) == 100
    text = formatted.text.replace("\u2060", "")
    assert text == " ".join(f"b{n} @ada{n} l{n} (https://a.example/{n})" for n in range(60))
    assert called(formatted) == []


def test_what_nests_too_deep_for_the_parser_is_shown_as_it_is():
    for markdown in (f"{'> ' * 120}x", f"{'- ' * 120}x"):
        assert seen(markdown)[0].endswith("x")
        assert seen(markdown)[0].count(markdown[0]) == 120


def seconds(markdown: str) -> float:
    """CPU seconds of one conversion, the least of three that remember nothing."""
    found = []
    for _ in range(3):
        converter = Converter.load()
        before = time.process_time()
        converter.convert(markdown)
        found.append(time.process_time() - before)
    return min(found)


WIDE = "|" + "a|" * 50 + "\n|" + "-|" * 50 + "\n" + "||\n" * 50


def test_an_answer_that_grows_costs_what_its_last_blocks_cost() -> None:
    """A paragraph more takes a small part of what all of them took."""
    paragraphs = [f"**Paragraph** {n}: words, `code` and\n\n- an item\n\n" for n in range(200)]
    converter, found = Converter.load(), []
    for count in (197, 198, 199, 200):
        before = time.process_time()
        converter.convert("".join(paragraphs[:count]))
        found.append(time.process_time() - before)
    assert min(found[1:]) * 4 < found[0]


@pytest.mark.parametrize(
    "piece",
    ["[", "![", "[a](", "[[]", "[a](<", "<", "<https://a|", "**a _b", "`` ` ", "&#", "> - ", WIDE],
)
def test_text_that_a_model_repeats_without_end_costs_in_proportion(piece: str) -> None:
    """Eight times the text takes about eight times as long, not sixty-four times."""
    once, longer = (seconds(piece * (size // len(piece))) for size in (2000, 16000))
    assert longer < once * 24 + 0.02
