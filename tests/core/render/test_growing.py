"""A text that grows: what is shown of it meanwhile, and what its parts cost."""

import random

import pytest
from markdown_it import MarkdownIt

from dragoman.render.split import GrowingSplit, split
from dragoman.render.text import OpenText, close_open_constructs
from rendering.documents import make

PARSER = MarkdownIt().enable(["table", "strikethrough"])
ANSWER = """Intro with **bold words**, *some* in _italics_ and ~~none~~, `a*b` and ***both***.

## A heading

1. First [a link](https://example.org/a_(b) "title") and <https://example.org/x>
   - nested **item `code` there**
   - snake_case_name stays, 2 * 3 = 6

| name | link |
|:-----|------|
| **a** | [open](https://example.org/a) |
| b | `c` |

```python
x = "**not bold**"
```

> quoted *words*

---

Last words. 中文**强调**文字。
"""


def growing(seed):
    """The document of a seed, piece by piece."""
    document, chance = make(seed), random.Random(seed)
    size = 0
    while size < len(document.text):
        size += chance.randint(1, max(len(document.text) // 12, 2))
        yield document, document.text[:size]


def small(seeds):
    return [seed for seed in seeds if len(make(seed).text) < 4000]


@pytest.mark.parametrize("first", range(0, 200, 50))
def test_a_text_that_grows_changes_its_last_two_parts_at_most(first):
    for seed in small(range(first, first + 50)):
        before = []
        for document, text in growing(seed):
            parts = split(text, document.limit, document.unit.measure)
            keep = max(len(before) - 2, 0)
            assert parts[:keep] == before[:keep], seed
            before = parts


@pytest.mark.parametrize("first", range(0, 200, 50))
def test_parts_that_are_kept_are_those_that_splitting_anew_gives(first):
    """However the text changes: it grows, its end changes, or it is another one."""
    for seed in small(range(first, first + 50)):
        chance, kept = random.Random(seed), None
        for document, text in growing(seed):
            kept = kept or GrowingSplit(document.limit, document.unit.measure)
            change = chance.random()
            shown = close_open_constructs(text) if change < 0.5 else text
            if change > 0.95:
                at = chance.randrange(len(text))
                shown = f"{text[:at]}```\n|{text[at + 3 :]}"
            assert kept.parts(shown) == split(shown, document.limit, document.unit.measure), seed


def test_parts_that_are_kept_cost_nothing():
    measured = []
    kept = GrowingSplit(1000, lambda text: measured.append(len(text)) or len(text))
    text = "".join(f"Words of sentence {i}, and more.\n\n" for i in range(3000))
    costs = []
    for size in range(1000, len(text), 500):
        measured.clear()
        kept.parts(text[:size] + " **closed**")
        costs.append(sum(measured))
    assert max(costs) <= 60_000
    assert max(costs[len(costs) // 2 :]) <= 1.2 * max(costs[: len(costs) // 4])


def test_a_length_that_raises_leaves_the_kept_parts_right():
    fails = False

    def length(text):
        assert not fails
        return len(text)

    kept = GrowingSplit(64, length)
    kept.parts("word " * 100)
    fails = True
    with pytest.raises(AssertionError):
        kept.parts("word " * 120)
    fails = False
    assert kept.parts("word " * 140) == split("word " * 140, 64, len)


@pytest.mark.parametrize("first", range(0, 200, 50))
def test_a_preview_that_remembers_shows_what_one_that_does_not_shows(first):
    for seed in small(range(first, first + 50)):
        preview = OpenText()
        for _, text in growing(seed):
            assert preview.shown(text) == close_open_constructs(text), (seed, len(text))


def test_a_preview_of_another_text_starts_again():
    preview = OpenText()
    assert preview.shown("one\n\ntwo\n\n```\nx") == "one\n\ntwo\n\n```\nx\n```"
    assert preview.shown("```\nfour\n\nfive\n\nsix") == "```\nfour\n\nfive\n\nsix\n```"


def visible(tokens):
    """The text that people read, code aside."""
    for token in tokens:
        if token.type == "inline":
            yield from (child.content for child in token.children if child.type == "text")


def test_no_preview_shows_marks_that_will_vanish():
    preview = OpenText()
    seen = set()
    for size in range(1, len(ANSWER) + 1):
        shown = preview.shown(ANSWER[:size])
        tokens = PARSER.parse(shown)
        text = "\n".join(visible(tokens))
        for mark in ("**", "`", "](", "](h", "<h", "~~ ", "|", "--", "_i", " *s", "##"):
            assert mark not in text, (shown[-60:], mark)
        assert not any(token.type.startswith("lheading") for token in tokens)
        assert not any(t.type == "heading_open" and t.markup in "-=" for t in tokens), shown[-60:]
        seen |= {token.type for token in tokens}
        if size > 200:
            assert len(shown) > size - 80
    assert {"table_open", "fence", "ordered_list_open", "hr"} <= seen


def test_what_a_preview_reads_is_the_text_since_the_last_closed_block(monkeypatch):
    from dragoman.render import text as module

    read = []
    scan = module.scan
    monkeypatch.setattr(
        module,
        "scan",
        lambda text, start=0: read.append(len(text) - start) or scan(text, start=start),
    )
    preview = OpenText()
    block = "Words.\n\n```py\nx = 1\n```\n\n| a |\n|---|\n| 1 |\n\n"
    for size in range(1, 200):
        preview.shown(block * size)
    assert max(read) <= 3 * len(block)
