"""Markdown that nobody would write, and such as models do: for properties that hold of any."""

import re

import regex
from hypothesis import strategies as st

from dragoman_telegram.text import cleaned

MARKUP = "*_~`[]()<>!#>-+.|\\\n\n  1:@/^"
LETTERS = "ab日é🎉👩‍👧\u05d0\u0301"
SOUP = st.lists(
    st.sampled_from(
        [
            *MARKUP,
            *LETTERS,
            "```",
            "**",
            "~~~",
            "\n- ",
            "\n> ",
            "\n1. ",
            "\n    ",
            "|-|-|\n",
            "](https://a.example/b)",
            "<https://a.example/|",
            "https://a.example/@b",
            "@ada",
            "\t",
            "\u202e",
            "\u200e\u200f",
            "\x00",
            "\r\n",
        ]
    ),
    max_size=40,
).map("".join)

WORD = st.text(st.sampled_from("abcdez日本é\u05d0🎉"), min_size=1, max_size=6) | st.sampled_from(
    [
        "👩‍👩‍👧",
        "e\u0301",
        "snake_case_name",
        "@ada",
        "a@b.example",
        "b<c",
        "a*b",
        "https://a.example/_b_",
    ]
)
INLINE = st.recursive(
    WORD,
    lambda inner: st.one_of(
        st.builds("**{}**".format, inner),
        st.builds("*{}*".format, inner),
        st.builds("~~{}~~".format, inner),
        st.builds("[{}](https://a.example/x_(y))".format, WORD),
        st.builds("`{}`".format, WORD),
        st.builds("{} {}".format, inner, inner),
        st.builds("{}\n{}".format, inner, inner),
    ),
    max_leaves=5,
)
LINE = INLINE.map(lambda text: text.replace("\n", " "))
CODE = st.builds("```py\n{}\n```".format, st.lists(WORD, min_size=1).map("\n  ".join))
TABLE = st.builds("| {} | {} |\n|:-:|--:|\n| {} | {} |".format, LINE, WORD, WORD, LINE)


def indented(mark: str, block: str) -> str:
    return mark + block.replace("\n", "\n" + " " * len(mark))


BLOCK = st.recursive(
    st.one_of(INLINE, CODE, TABLE, st.builds("## {}".format, LINE)),
    lambda inner: st.one_of(
        st.builds(indented, st.sampled_from(["- ", "1. ", "- [x] "]), inner),
        inner.map(lambda block: "> " + block.replace("\n", "\n> ")),
        st.builds("{}\n\n{}".format, inner, inner),
    ),
    max_leaves=6,
)
DOCUMENT = st.lists(BLOCK, min_size=1, max_size=4).map("\n\n".join)
LINES = st.lists(
    st.sampled_from(
        [
            *["", "", "", "a", "b **c** @ada", " ", "@", "# h", "---", "===", "* * *", "[a]: b"],
            *["- x", "  y", "   - z", "1. q", "2. r", "10) s", "- [ ] t", "-", "1.", "\t- w"],
            *[
                "> u",
                ">",
                "- > ```",
                "```",
                "  ```",
                "~~~py",
                "    code",
                "<div>",
                "`@a` `b` " * 25,
            ],
            *["| a | b |", "|---|---|", "| a |", "|-|", "|-x", "a | b"],
        ]
    ),
    max_size=25,
).map("\n".join)


def graphemes(text: str) -> list[str]:
    """The characters that people see, less those that may be markup."""
    found = regex.findall(r"\X", re.sub(r"[\u2060\r\u200c\u200e\u200f]", "", cleaned(text)))
    return [one for one in found if one.strip() and not set(one) & set(MARKUP)]


def words(text: str) -> list[str]:
    """The characters of a document's words; in none of them is one of its marks of lists."""
    return [one for one in graphemes(text) if one not in set("0123456789xpy☑•")]
