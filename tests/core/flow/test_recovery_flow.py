"""kill -9 at every station of a message, and what people see after the next start."""

import json
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("killable.py")
NOTICE = "*(a restart interrupted this before there was an answer; please ask again)*"
MARK = "\n\n*(interrupted by a restart)*"
REPEAT = "*(this may be a repeat)*\n\n"
SO_FAR = ("this is what was shown so far " * 4).rstrip()


def start(folder, life, fault, idempotent):
    return subprocess.Popen(
        [sys.executable, str(SCRIPT), str(folder), life, fault, str(int(idempotent))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def live_until_killed(folder, fault, idempotent, texts, marks, condition=None):
    """Send texts to a first process, wait for what it tells and for a condition, then kill it."""
    process = start(folder, "1", fault, idempotent)
    try:
        for number, text in enumerate(texts):
            line = json.dumps({"id": str(number), "channel": "1", "text": text})
            process.stdin.write(line + "\n")
        process.stdin.flush()
        missing = set(marks)
        while missing:
            told = process.stdout.readline().strip()
            assert told, "the process ended by itself"
            missing.discard(told)
        deadline = time.monotonic() + 60
        while condition and not condition(folder):
            assert time.monotonic() < deadline
            time.sleep(0.01)
    finally:
        process.kill()  # SIGKILL
        process.wait()
        process.stdin.close()
        process.stdout.close()


def live_again(folder, idempotent):
    """Run a second process until every row is final; return the states of all rows."""
    process = start(folder, "2", "none", idempotent)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    return json.loads(out.splitlines()[-1])


def shown(folder):
    return [row["text"] for row in json.loads((folder / "screen.json").read_text())]


def ask(folder, sql):
    with sqlite3.connect(folder / "dragoman.db") as db:
        rows = db.execute(sql).fetchall()
    db.close()
    return rows


def noted(folder):
    return ask(folder, "SELECT 1 FROM deliveries WHERE shown <> ''") != []


def queued(folder):
    return ask(folder, "SELECT 1 FROM inbound_events WHERE state = 'queued'") != []


STATIONS = {
    # station: (texts, what the process tells before it is killed, further condition)
    "undecided": (["one", "two"], ["received 0", "received 1"], None),
    "queued": (["silent", "next"], ["running", "received 1"], queued),
    "silent": (["silent"], ["running"], None),
    "streamed": (["stream"], ["running"], noted),
    "unsent": (["hello"], ["sending"], None),
    "landed": (["hello"], ["landed"], None),
    "second part": (["parts", "after"], ["sending", "received 1"], None),
}


def expected(station, idempotent):
    mark = "" if idempotent else REPEAT
    parts = [f"part{n} ".ljust(60, "x") for n in range(3)]
    return {
        "undecided": ["one", "two"],
        "queued": [NOTICE, "next"],
        "silent": [NOTICE],
        "streamed": [SO_FAR + MARK],
        "unsent": [f"{mark}hello"],
        "landed": ["hello"] if idempotent else ["hello", f"{REPEAT}hello"],
        "second part": [parts[0], mark + parts[1], parts[2], "after"],
    }[station]


@pytest.mark.parametrize(
    ("station", "idempotent"),
    [
        ("undecided", False),
        ("queued", False),
        ("silent", True),
        ("streamed", True),
        ("streamed", False),
        ("unsent", False),
        ("landed", True),
        *(
            pytest.param(station, idempotent, marks=pytest.mark.proof)
            for station, idempotent in [
                ("undecided", True),
                ("queued", True),
                ("silent", False),
                ("unsent", True),
                ("landed", False),
                ("second part", True),
                ("second part", False),
            ]
        ),
    ],
)
def test_fc_rst_01_after_a_kill_everything_ends_visibly_and_once(tmp_path, station, idempotent):
    """Invariants 1, 3 and 5."""
    texts, marks, condition = STATIONS[station]
    live_until_killed(tmp_path, station, idempotent, texts, marks, condition)
    states = live_again(tmp_path, idempotent)
    assert shown(tmp_path) == expected(station, idempotent)
    assert set(states["deliveries"]) == {"delivered"}
    events = set(states["inbound_events"])
    assert events == (
        {"refused"}
        if station in ("silent", "streamed")
        else {"refused", "answered"}
        if station == "queued"
        else {"answered"}
    )
    live_again(tmp_path, idempotent)  # a further start changes nothing that people see
    assert shown(tmp_path) == expected(station, idempotent)
