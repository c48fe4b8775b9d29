"""A gateway made of third-party wheels only: one plugin of each kind, and core."""

import os
import signal
import subprocess
import time

import pytest

pytestmark = pytest.mark.timeout(400)

MANIFEST = """
manifest = 1

[platforms.postbox]
inbox = "in"
outbox = "out"

[runtimes.clerk]
greeting = "Good day"

[memories.shelf]

[sinks.book]
plugin = "shelf:ledger"
file = "book.jsonl"

[extensions.gate]

[profiles.default]
runtime = "clerk"
memory = "shelf"

[access]
admit_by = ["extensions.gate"]
"""


def until(condition, process, limit=60.0):
    """Wait for a condition, as long as the gateway lives."""
    deadline = time.monotonic() + limit
    while not condition():
        assert process.poll() is None, "the gateway has ended"
        assert time.monotonic() < deadline, "nothing happened in time"
        time.sleep(0.02)


def test_third_party_plugins_of_each_kind_run_together(deployment, tmp_path):
    """E1, E2, C1, D1: platform, runtime, memory store, sink and admission, all from wheels."""
    for name in ("in", "out"):
        (tmp_path / name).mkdir()
    (tmp_path / "dragoman.toml").write_text(MANIFEST)
    answers = lambda: sorted(path.read_text() for path in (tmp_path / "out").iterdir())  # noqa: E731
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(
            [deployment.prefix / "bin" / "dragoman", "run", "-m", tmp_path / "dragoman.toml"],
            env={"HOME": str(tmp_path), "PATH": os.defpath},
            stdout=log,
            stderr=log,
        )
    try:
        (tmp_path / "in" / "1.txt").write_text("please water the plants")
        until(lambda: len(answers()) == 1, process)
        (tmp_path / "in" / "2.txt").write_text("let me in")  # refused: the word is missing
        (tmp_path / "in" / "3.txt").write_text("please feed the plants")
        until(lambda: len(answers()) == 2, process)
    finally:
        process.send_signal(signal.SIGTERM)
        code = process.wait(60)
    assert code == 0, (tmp_path / "log").read_text()
    assert answers() == [
        "Good day: letter 1, found []",
        "Good day: letter 2, found ['please water the plants']",
    ]
    book = (tmp_path / "book.jsonl").read_text().splitlines()
    assert book == ['["default", "TextBlock"]', '["default", "Finished"]'] * 2
