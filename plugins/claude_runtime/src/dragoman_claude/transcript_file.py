"""The file that a program resumes from, written from the store.

It lies in the program's own configuration directory, which is thrown away with the program.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from dragoman_claude import history, pauses

_SUB: Final = re.compile(r"subagents(/[A-Za-z0-9_-]+)+")


def write_transcript(config: Path, cwd: Path, session_id: str, stored: Sequence[str]) -> Path:
    """Write what a program resumes from into its own configuration directory; return the file.

    ``cwd`` is the directory that the program will work in. Blocks, for some 20 ms with 300
    turns and longer with files, and imports the SDK: call it in a worker thread.
    """
    main = _file(config, cwd, session_id)
    found = history.entries(stored)
    _write_lines(main, found.pop(None, []))
    for sub, lines in found.items():
        if sub is not None and _SUB.fullmatch(sub):
            _write_subagent(main.with_suffix("") / f"{sub}.jsonl", lines)
    return main


def close_waiting(config: Path, cwd: Path, session_id: str, behind: str) -> list[history.Entry]:
    """Close the calls of a local transcript that wait for a decision; return the lines added.

    They follow the line ``behind``, after which the session goes on: what is there beyond it does
    not count. Blocks, as `write_transcript`.
    """
    main = _file(config, cwd, session_id)
    if not main.exists():
        return []
    lines = []
    for text in main.read_text(encoding="utf-8", errors="replace").split("\n"):
        lines.append(history.decode(text))
        if history.uuid_of(lines[-1]) == behind:
            break
    made = pauses.withdrawn(lines, behind)
    _write_lines(main, made, "a")
    return made


def _file(config: Path, cwd: Path, session_id: str) -> Path:
    from claude_agent_sdk import project_key_for_directory

    if not history.is_session_id(session_id):
        raise ValueError(f"{session_id!r} is no id of a session")
    return config / "projects" / project_key_for_directory(cwd) / f"{session_id}.jsonl"


def _write_subagent(path: Path, lines: Sequence[history.Entry]) -> None:
    """Write a subagent's lines; what describes it belongs into a file beside, the newest counts."""
    described = [line for line in lines if line.get("type") == "agent_metadata"]
    _write_lines(path, [line for line in lines if line.get("type") != "agent_metadata"])
    if described:
        facts = {key: value for key, value in described[-1].items() if key != "type"}
        _write_lines(path.with_suffix(".meta.json"), [facts])


def _write_lines(path: Path, lines: Sequence[history.Entry], mode: str = "w") -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.touch(mode=0o600)
    with path.open(mode, encoding="ascii") as file:
        for line in lines:
            file.write(json.dumps(line, separators=(",", ":")) + "\n")
