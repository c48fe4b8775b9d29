"""Where keys stand, judged by a writer that counts its own lines and by two other parsers."""

from __future__ import annotations

import string
import tomllib
from typing import Any

import attrs
import pytest
import tomlkit
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.manifest.locate import KeyPath, locate

BARE = st.text(string.ascii_lowercase + string.digits + "_-", min_size=1, max_size=3)
ANY_KEY = BARE | st.text("ab .\"'#=[]\\\té", max_size=4)
SCALARS = st.sampled_from(
    [
        "1",
        "-2.5e3",
        "true",
        '"a # b = [c] \\" d"',
        "'lit # \\'",
        "1979-05-27 07:32:00",
        "1979-05-27T07:32:00Z # comment = [",
        '""',
        '"""one\ntwo = 2\n[three]\n"""',
        '"""\\\n   joined \\""" x"""""',
        "'''raw\n\\ [x]\n'''",
        "'''''two quotes'''''",
    ]
)


@attrs.define
class Writer:
    """Writes a document piece by piece and notes on which line each path comes."""

    text: str = ""
    lines: dict[KeyPath, int] = attrs.field(factory=dict)

    @property
    def line(self) -> int:
        return self.text.count("\n") + 1

    def note(self, path: KeyPath) -> None:
        self.lines.setdefault(path, self.line)

    def pair(self, table: KeyPath, keys: list[str], value: Any, quote: bool) -> None:
        path = table
        for key in keys:
            path = (*path, key)
            self.note(path)
        self.text += " . ".join(spelled(key, quote) for key in keys) + " = "
        self.value(path, value, quote)

    def value(self, path: KeyPath, value: Any, quote: bool) -> None:
        if isinstance(value, str):
            self.text += value
        elif isinstance(value, list):
            self.text += "[ # begin ]\n"
            for index, each in enumerate(value):
                self.note((*path, index))
                self.value((*path, index), each, quote)
                self.text += "\n, # next\n" if index % 2 else "\n,\n"
            self.text += "]"
        else:
            self.text += "{"
            for index, (key, each) in enumerate(value.items()):
                self.text += ", " if index else " "
                self.pair(path, [key], each, quote)
            self.text += " }"


def spelled(key: str, quote: bool) -> str:
    plain = key and all(each in string.ascii_letters + string.digits + "_-" for each in key)
    if plain and not quote:
        return key
    if "'" not in key:
        return f"'{key}'"
    return '"' + key.replace("\\", "\\\\").replace('"', '\\"').replace("\t", "\\t") + '"'


def without_comments(value: str) -> str:
    return value.split(" #", maxsplit=1)[0] if value.startswith("1979") else value


INLINE = st.recursive(
    SCALARS.map(without_comments),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(ANY_KEY, inner, max_size=3),
    max_leaves=6,
)


@st.composite
def documents(draw: st.DrawFn) -> Writer:
    writer = Writer()
    quote = draw(st.booleans())

    def body(table: KeyPath) -> None:
        for key in draw(st.lists(ANY_KEY, unique=True, max_size=3)):
            if draw(st.booleans()):
                writer.text += draw(st.sampled_from(["", "\n", "# note = 1\n", "  "]))
            # A dotted key shares no prefix with another one, so the document stays valid.
            keys = [key, *draw(st.lists(BARE, max_size=2))]
            value = draw(INLINE)
            writer.pair(table, keys, value, quote)
            writer.text += draw(st.sampled_from(["\n", " # [tail]\n", "\n\n"]))

    body(())
    used = {path[0] for path in writer.lines}
    for name in draw(st.lists(BARE.filter(lambda each: each not in used), unique=True, max_size=3)):
        parents = [name, *draw(st.lists(BARE, max_size=1))]
        shown = ".".join(spelled(each, quote) for each in parents)
        for depth in range(1, len(parents)):
            writer.note(tuple(parents[:depth]))
        path: KeyPath = tuple(parents)
        if draw(st.booleans()):
            for index in range(draw(st.integers(1, 3))):
                writer.note(path)
                writer.note((*path, index))
                writer.text += f"[[ {shown} ]] # array\n"
                body((*path, index))
                if draw(st.booleans()) and (*path, index, "zz") not in writer.lines:
                    writer.note((*path, index, "zz"))
                    writer.text += f"[{shown}.zz]\n"
                    body((*path, index, "zz"))
        else:
            writer.note(path)
            writer.text += f"[{shown}]\n"
            body(path)
            if (*path, "zz") not in writer.lines:
                writer.note((*path, "zz"))
                writer.note((*path, "zz", 0))
                writer.text += f"[[{shown}.zz]]\n"
    return writer


def paths(value: Any, path: KeyPath = ()) -> set[KeyPath]:
    items = value.items() if isinstance(value, dict) else enumerate(value)
    found: set[KeyPath] = set()
    for key, inner in items:
        found.add((*path, key))
        if isinstance(inner, dict | list):
            found |= paths(inner, (*path, key))
    return found


@settings(max_examples=300, deadline=None)
@given(documents())
def test_every_path_of_a_document_is_found_at_the_line_where_it_was_written(doc: Writer) -> None:
    """E3: an error names the line of its key, however the key is written."""
    assert paths(tomllib.loads(doc.text)) == set(doc.lines)
    assert locate(doc.text) == doc.lines
    assert locate(doc.text.replace("\n", "\r\n")) == doc.lines


SENTINEL = "sentinel-of-the-test"


def with_sentinel(text: str, path: KeyPath) -> str:
    """Return the text with the value at ``path`` replaced, everything else kept as it was."""
    document: Any = tomlkit.parse(text)
    holder = document
    for part in path[:-1]:
        holder = holder[part]
    holder[path[-1]] = SENTINEL
    return str(tomlkit.dumps(document))


@settings(max_examples=100, deadline=None)
@given(st.dictionaries(BARE, SCALARS.map(without_comments), min_size=1, max_size=4), st.data())
def test_the_line_is_the_one_that_a_round_trip_parser_changes(
    pairs: dict[str, str], data: st.DataObject
) -> None:
    text = "# top\n"
    for table in ("first", "second"):
        text += f"\n[{table}]\n" + "".join(f"{key} = {value}\n" for key, value in pairs.items())
    path = (data.draw(st.sampled_from(["first", "second"])), data.draw(st.sampled_from([*pairs])))
    changed = with_sentinel(text, path)
    assert locate(text)[path] == changed[: changed.index(SENTINEL)].count("\n") + 1


@pytest.mark.parametrize(
    ("text", "path", "line"),
    [
        ("[a.b]\n[a]\n", ("a",), 2),
        ("[[a.b]]\n", ("a",), 1),
        ("[[a]]\n[[a]]\n[a.b]\nc=1\n", ("a", 1, "b", "c"), 4),
        ("[[a]]\n[[a.b]]\n[[a.b]]\nx=1\n", ("a", 0, "b", 1, "x"), 4),
        ('"\\u0061" = 1\n', ("a",), 1),
        ("a.b.c = 1\na.d = 2\n", ("a", "d"), 2),
        ('x = """\n\n"""\ny = 1\n', ("y",), 4),
    ],
)
def test_tables_arrays_and_quoted_keys_have_the_line_of_their_own_header(
    text: str, path: KeyPath, line: int
) -> None:
    assert locate(text)[path] == line
