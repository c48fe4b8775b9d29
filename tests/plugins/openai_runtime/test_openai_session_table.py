"""The session's table and the continuation: what excludes what, and what `check` says."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from dragoman import Secret
from dragoman_openai import OpenAIConfig
from dragoman_openai.session_table import CompactTable, EncryptTable, SessionTable


def config(**changes):
    return OpenAIConfig(instructions="x", base_url="http://127.0.0.1:1/v1", **changes)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"continuation": "conversation", "session": SessionTable()},
            "continuation 'conversation' and session exclude each other",
        ),
        ({"continuation": "previous_response", "api": "chat"}, 'needs api = "responses"'),
        ({"session": SessionTable(backend="conversations"), "api": "chat"}, "needs api"),
        ({"session": SessionTable(compact=CompactTable()), "api": "chat"}, "needs api"),
        (
            {"session": SessionTable(compact=CompactTable()), "history_items": 100},
            "session.compact.above must be less than history_items (100)",
        ),
    ],
)
def test_d4_two_ways_at_once_are_refused(changes, words):
    """D4."""
    with pytest.raises(ValueError, match=re.escape(words)):
        config(**changes)


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"backend": "redis"}, "url is missing for backend 'redis'; write url = "),
        ({"backend": "dapr", "url": "x"}, "store is missing"),
        ({"backend": "sqlite", "ttl": 100}, "ttl has no meaning for backend 'sqlite'"),
        ({"backend": "redis", "url": "redis://a:hunter2@b"}, "must not hold a password"),
        ({"encrypt": True}, "dragoman's own store has no encryption"),
        ({"backend": "conversations", "encrypt": True}, "encrypt cannot be used"),
        ({"backend": "conversations", "compact": CompactTable()}, "compact cannot be used"),
        ({"backend": "redis", "url": "redis://a", "path": "x"}, "or async-sqlite or sqlite"),
    ],
)
def test_d3_a_key_that_a_back_end_does_not_have_is_refused(keys, words):
    """D3: with what to do about it."""
    if keys.get("encrypt"):
        keys = {**keys, "encrypt": EncryptTable(key=Secret("env:K", "x" * 32))}
    with pytest.raises(ValueError, match=re.escape(words)) as caught:
        SessionTable(**keys)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, []),
        ({"continuation": "previous_response"}, []),
        ({"continuation": "conversation"}, ["not fenced", "unproven"]),
        ({"session": SessionTable(backend="sqlite")}, ["not fenced"]),
        ({"session": SessionTable(backend="conversations")}, ["not fenced", "unproven"]),
        ({"session": SessionTable(backend="mongodb", url="x")}, ["not fenced", "unproven"]),
    ],
)
def test_d3_check_says_what_is_not_fenced_and_what_is_unproven(changes, said):
    """D3: as warnings, from the manifest alone."""
    found = config(**changes).notices()
    assert [one.text.partition(":")[0] for one in found] == said
    assert {one.level for one in found} <= {"warning"}


def test_d3_no_library_is_imported_that_was_not_chosen():
    """D3: the SDK's own modules for them are not looked at either."""
    code = (
        "import dragoman_openai.runtime, sys; "
        "print([m for m in ('redis', 'sqlalchemy', 'pymongo', 'dapr', 'aiosqlite')"
        " if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_d3_check_needs_nothing_but_the_manifest_to_say_so(tmp_path):
    """D3, E3: `dragoman check` warns, and finds no fault."""
    manifest = tmp_path / "dragoman.toml"
    manifest.write_text(
        'manifest = 1\n[platforms.console]\n[profiles.default]\nruntime = "support"\n'
        '[access]\nowners = ["console:local"]\n[runtimes.support]\nplugin = "openai"\n'
        'instructions = "x"\nbase_url = "http://127.0.0.1:9/v1"\n'
        '[runtimes.support.session]\nbackend = "dapr"\nurl = "127.0.0.1:9"\nstore = "x"\n'
    )
    dragoman = Path(sys.executable).parent / "dragoman"
    done = subprocess.run(
        [dragoman, "check", "-m", manifest], capture_output=True, text=True, check=True
    )
    warnings = [
        line.removeprefix("runtimes.support: warning: ") for line in done.stderr.splitlines()
    ]
    assert [line.partition(":")[0] for line in warnings] == ["not fenced", "unproven"]
