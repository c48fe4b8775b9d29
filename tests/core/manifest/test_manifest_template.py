"""The manifest that ``init`` writes: valid TOML that only lacks what it asks for."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.manifest.kinds import plain_value
from dragoman.manifest.template import Choice, secrets_to_set, template, toml_text, write

if TYPE_CHECKING:
    from conftest import Reader, SmallCatalogue


@pytest.fixture
def choices(catalogue: SmallCatalogue) -> tuple[Choice, ...]:
    return (
        Choice("platforms", "chat", "chat", catalogue.resolve("platforms", "chat")),
        Choice("runtimes", "agent", "agent", catalogue.resolve("runtimes", "agent")),
    )


def test_the_text_passes_the_check_once_its_secrets_are_set(
    choices: tuple[Choice, ...], read_text: Reader, canary: str
) -> None:
    text = template(choices)
    assert secrets_to_set(text) == ("CHAT_TOKEN",)
    assert [each.message for each in read_text(text).problems] == [
        "environment variable CHAT_TOKEN is not set"
    ]
    found = read_text(text, CHAT_TOKEN=canary)
    assert found.problems == ()
    assert [each.path for each in found.warnings] == ["access"]


def test_each_key_is_there_with_its_help_and_the_required_ones_stand_out(
    choices: tuple[Choice, ...],
) -> None:
    lines = template(choices).splitlines()
    assert lines[lines.index("# the bot's token") + 1] == 'token = { env = "CHAT_TOKEN" }'
    assert lines[lines.index("# seconds") + 1] == "# poll_timeout = 30.0"
    assert 'instructions = "Be brief."' in lines
    assert '# style = "short"' in lines
    assert "# webhook = { port = 1 }" in lines
    assert '# owners = ["chat:YOUR-ID"]' in lines


def test_every_commented_key_is_toml(choices: tuple[Choice, ...]) -> None:
    text = template(choices)
    keys = [line[2:] for line in text.splitlines() if line.startswith("# ") and " = " in line]
    assert len(keys) > 10
    for line in keys:
        tomllib.loads(line)


def test_a_file_that_is_there_is_kept_unless_it_may_be_replaced(tmp_path: Path) -> None:
    path = tmp_path / "dragoman.toml"
    write(path, "first", replace=False)
    with pytest.raises(FileExistsError):
        write(path, "second", replace=False)
    assert path.read_text() == "first"
    write(path, "third", replace=True)
    assert path.read_text() == "third"
    assert [each.name for each in tmp_path.iterdir()] == ["dragoman.toml"]


@attrs.frozen
class Inner:
    words: tuple[str, ...] = ()
    none: str | None = None


PLAIN = st.recursive(
    st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner) | st.dictionaries(st.text("ab .\"'\\", max_size=3), inner),
    max_leaves=10,
)


@given(PLAIN)
def test_values_are_written_as_toml_that_means_the_same(value: Any) -> None:
    assert tomllib.loads(f"x = {toml_text(value)}")["x"] == value


def test_records_and_paths_have_a_plain_form() -> None:
    assert plain_value(Inner(("a",))) == {"words": ["a"]}
    assert plain_value(Path("a/b")) == "a/b"
    assert plain_value(attrs.Factory(Inner)) == {"words": []}
