"""The JSON Schema: what it accepts is what the reader accepts, and it marks the wrong key."""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING, Any

import pytest
from jsonschema import Draft7Validator
from jsonschema.exceptions import best_match

from dragoman.manifest.schema import schema

if TYPE_CHECKING:
    from conftest import Reader, SmallCatalogue


@pytest.fixture
def validator(catalogue: SmallCatalogue) -> Draft7Validator:
    installed: dict[str, dict[str, Any]] = {}
    for kind, reference in catalogue.components:
        installed.setdefault(kind, {})[reference] = catalogue.resolve(kind, reference)
    made = schema(installed)
    Draft7Validator.check_schema(made)
    return Draft7Validator(made)


ALL_KEYS = """\
manifest = 1
data_dir = "x"
store = ":memory:"
[platforms.chat]
token = { env = "TOKEN" }
mode = "webhook"
style = "long"
poll_timeout = 3
allow = [1]
size = [1, 2]
labels = { a = "b" }
cache = "c"
webhook = { port = 80 }
extra = "x"
[platforms.second]
plugin = "chat"
token = { file = "token" }
[runtimes.plain]
optional = true
[profiles.default]
runtime = "plain"
scope = { dm = "user" }
[[routes]]
profile = "default"
channel = -100
user = "1"
[access]
owners = ["chat:1", 2]
[limits]
grace = 0
[network]
proxy = "x"
"""


def test_a_manifest_with_every_kind_of_key_is_valid(
    validator: Draft7Validator, read_text: Reader, tmp_path: Any, canary: str
) -> None:
    (tmp_path / "token").write_text(canary)
    text = ALL_KEYS.replace("[runtimes.plain]\noptional = true", "[runtimes.plain]")
    assert read_text(text).problems == ()
    assert list(validator.iter_errors(tomllib.loads(ALL_KEYS))) == []


@pytest.mark.parametrize(
    ("old", "new", "place", "words"),
    [
        ("poll_timeout = 3", "poll_timout = 3", "platforms.chat", "'poll_timout' was unexpected"),
        ("poll_timeout = 3", 'poll_timeout = "3"', "platforms.chat.poll_timeout", "'number'"),
        ("poll_timeout = 3", "poll_timeout = -3", "platforms.chat.poll_timeout", "minimum"),
        ("port = 80", "port = 0", "platforms.chat.webhook.port", "less than or equal"),
        ("port = 80", "", "platforms.chat.webhook", "'port' is a required property"),
        ('mode = "webhook"', 'mode = "x"', "platforms.chat.mode", "is not one of"),
        ('plugin = "chat"', "", "platforms.second", "'plugin' is a required property"),
        ('{ env = "TOKEN" }', '"literal"', "platforms.chat.token", "'object'"),
        ('{ env = "TOKEN" }', '{ env = "A", file = "b" }', "platforms.chat.token", "too many"),
        ('{ file = "token" }', "{}", "platforms.second.token", "non-empty"),
        ("manifest = 1", "manifest = 2", "manifest", "1 was expected"),
        ("channel = -100", "channel = 1.5", "routes.0.channel", "'string', 'integer'"),
        ("grace = 0", "grace = -1", "limits.grace", "minimum"),
        ("[platforms.second]", "[platforms.Second]", "platforms", "does not match"),
        ("[limits]", "[limit]", "", "'limit' was unexpected"),
    ],
)
def test_a_mistake_is_marked_at_its_own_key(
    validator: Draft7Validator, old: str, new: str, place: str, words: str
) -> None:
    error = best_match(validator.iter_errors(tomllib.loads(ALL_KEYS.replace(old, new))))
    assert error is not None
    assert ".".join(map(str, error.absolute_path)) == place
    assert words in error.message


def test_help_and_defaults_reach_the_editor(validator: Draft7Validator) -> None:
    table: Any = validator.schema["definitions"]["platforms.chat"]["properties"]
    assert table["token"]["description"] == "the bot's token"
    assert "default" not in table["token"]
    assert table["poll_timeout"] == {
        "type": "number",
        "description": "seconds",
        "default": 30.0,
        "minimum": 0,
    }
    assert table["webhook"]["properties"]["port"]["description"] == "where it listens"
