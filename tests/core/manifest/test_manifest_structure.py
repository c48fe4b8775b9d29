"""One table against its class: exact types, all problems at once, no value in any message."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman import Secret
from dragoman.manifest.problems import Problems
from dragoman.manifest.secrets import SecretReader
from dragoman.manifest.structure import Structurer

if TYPE_CHECKING:
    from decimal import Decimal

    from conftest import Reader

BASE = Path("/somewhere")


@attrs.frozen
class Taken:
    value: Any
    problems: tuple[Any, ...]


def take(value: object, cls: Any) -> Taken:
    structurer = Structurer(SecretReader(BASE, {"TOKEN": "value-of-token"}))
    problems = Problems()
    made = None
    with problems.at():
        made = structurer.read(value, cls)
    return Taken(made, tuple(problems.found))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("poll_timeout = true", "poll_timeout: expected a number, got a boolean"),
        ('poll_timeout = "3"', "poll_timeout: expected a number, got a string"),
        ("poll_timeout = nan", "poll_timeout: nan is no usable number"),
        ("poll_timeout = -1", "poll_timeout: must be >= 0"),
        ("allow = [1, 2.0]", "allow[1]: expected an integer, got a float"),
        ("allow = [1, true]", "allow[1]: expected an integer, got a boolean"),
        ('allow = "12"', "allow: expected an array, got a string"),
        ("size = [1]", "size: expected 2 elements, got 1"),
        ('size = [1, "2"]', "size[1]: expected an integer, got a string"),
        ("labels = { a = 1 }", "labels.a: expected a string, got an integer"),
        ("labels = []", "labels: expected a table, got an array"),
        ("cache = 1979-05-27", "cache: expected a string, got a date"),
        ('cache = "~/x"', 'cache: "~" is not expanded: write the whole path'),
        ('cache = ""', "cache: expected a path, got an empty or unusable string"),
        ("webhook = {}", "webhook.port: this key is required"),
        ("webhook.port = 0", "webhook.port: must be > 0"),
        ("webhook = { port = 1, pathh = 2 }", "webhook.pathh: unknown key — did you mean 'path'?"),
        ("webhook = 1", "webhook: expected a table, got an integer"),
        (
            "extra = 1.5",
            "extra: expected an integer, got a float, or expected a string, got a float",
        ),
        ('style = "shrt"', "style: expected one of 'short', 'long' — did you mean 'short'?"),
        ("style = 1", "style: expected one of 'short', 'long'"),
        (
            'mode = "polling2"',
            "mode: expected one of 'polling', 'webhook' — did you mean 'polling'?",
        ),
        ('url = "gopher-secret"', "url: must be an address, not the value"),
        ("poll_timout = 1", "poll_timout: unknown key — did you mean 'poll_timeout'?"),
        ("plugin = 3", "plugin: expected a string, got an integer"),
        ('optional = "yes"', "optional: expected a boolean, got a string"),
    ],
)
def test_a_wrong_value_is_named_by_its_path_and_type(
    read_text: Reader, good: str, line: str, message: str
) -> None:
    """E3: the key, what was expected and a suggestion; validators speak for their own field."""
    found = read_text(good.replace('"TOKEN" }\n', f'"TOKEN" }}\n{line}\n'))
    assert [str(each) for each in found.problems] == [f"dragoman.toml:4: platforms.chat.{message}"]


@pytest.mark.parametrize(
    ("value", "cls", "expected"),
    [
        (3, float, 3.0),
        (3, int | str, 3),
        ("x", int | str, "x"),
        ("a/b", Path, BASE / "a/b"),
        ("/a/b", Path, Path("/a/b")),
        ([1, 2], tuple[int, ...], (1, 2)),
        ([1, 2], list[int], [1, 2]),
        ([1, 1], frozenset[int], frozenset({1})),
        ({"a": [1]}, dict[str, list[int]], {"a": [1]}),
    ],
)
def test_a_right_value_becomes_what_the_class_asks_for(
    value: object, cls: Any, expected: object
) -> None:
    result = take(value, cls)
    assert (result.value, result.problems) == (expected, ())
    assert type(result.value) is type(expected)


def test_an_error_that_is_not_ours_is_told_by_its_type_alone() -> None:
    """E2: a class that asks for the impossible is a problem of one key, and no crash."""
    result = take({"a": [["canary"]]}, dict[str, frozenset[list[str]]])
    assert result.problems == ((("a",), "the value is not usable (TypeError)"),)


@attrs.frozen
class Pair:
    low: int
    high: int = attrs.field()

    @high.validator
    def _ordered(self, _: object, value: int) -> None:
        if value < self.low:
            msg = "must not be below low"
            raise ValueError(msg)


def test_a_validator_that_looks_at_another_field_is_run_with_it() -> None:
    assert take({"low": 2, "high": 1}, Pair).problems == ((("high",), "must not be below low"),)
    assert take({"low": "x", "high": 1}, Pair).problems == (
        (("low",), "expected an integer, got a string"),
    )
    assert take({"low": 1, "high": 2}, Pair).value == Pair(1, 2)


@attrs.frozen
class Careless:
    token: Secret = attrs.field()
    words: tuple[str, ...] = ()

    @token.validator
    def _shows_it(self, _: object, value: Secret) -> None:
        raise ValueError(f"{value.reveal()} is bad")


def test_a_validator_that_puts_the_secret_into_its_error_is_cut() -> None:
    """Invariant 12: not even a plugin's own carelessness shows the value."""
    result = take({"token": {"env": "TOKEN"}}, Careless)
    assert result.problems == ((("token",), "the value is bad"),)


@attrs.frozen
class Hidden:
    amount: Decimal


def test_a_class_whose_types_are_not_there_is_the_plugins_problem() -> None:
    ((path, message),) = take({"amount": 1}, Hidden).problems
    assert path == ()
    assert "TYPE_CHECKING" in message


@attrs.frozen(kw_only=True)
class Everything:
    a: int = 0
    b: float = 0.0
    c: str = ""
    d: bool = False
    e: tuple[str, ...] = ()
    f: dict[str, int] = attrs.field(factory=dict)
    g: Path = Path("x")
    h: Secret | None = None
    i: Pair | None = None


VALUES = st.recursive(
    st.integers() | st.floats() | st.booleans() | st.just("canary-canary"),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abcdefghi"), inner)
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from("abcdefghij"), VALUES))
def test_no_table_makes_structuring_raise_or_show_a_value(table: dict[str, Any]) -> None:
    result = take(table, Everything)
    assert (result.value is None) == bool(result.problems)
    assert "canary" not in repr(result.problems)
