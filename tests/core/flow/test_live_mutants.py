"""Ways to break the pace at which an answer is shown, each of which turns tests red."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import attrs
import pytest

import dragoman

CORE = Path(dragoman.__file__).parent
ROOT = Path(__file__).resolve().parents[3]
JUDGES = (
    "tests/core/render/test_pacing.py",
    "tests/core/flow/test_live_flow.py",
    "tests/core/flow/test_live_ways.py",
)


@attrs.frozen
class Mutant:
    """One replacement in a copy of core, and the test that has to notice it first."""

    name: str
    file: str
    old: str
    new: str
    judge: str


MUTANTS = [
    Mutant(
        "a first text at once",
        "render/pacing.py",
        "if not (shown or ended or pending >= self.first_chars):",
        "if False:",
        "a_first_text_waits",
    ),
    Mutant(
        "no distance between changes",
        "render/pacing.py",
        "at = max(at, changed + self.interval)",
        "pass",
        "the_next_edit_waits",
    ),
    Mutant(
        "a rate limit forgotten",
        "render/pacing.py",
        "at = max(at, not_before)",
        "pass",
        "a_rate_limit_wins",
    ),
    Mutant(
        "distance from the beginning of a change",
        "flow/calls.py",
        "            return await call()\n        finally:\n            lane.changed_at = self._clock.boot()\n",
        "            lane.changed_at = self._clock.boot()\n            return await call()\n        finally:\n            pass\n",
        "a_slow_platform",
    ),
    Mutant(
        "previews after the end",
        "flow/live.py",
        "        self._calls.cut()\n",
        "        pass\n",
        "a_hanging_edit",
    ),
    Mutant(
        "a draft counts as a message",
        "flow/live.py",
        " or not (shown.native_id or draft)",
        "",
        "outgrows_its_draft",
    ),
]


@pytest.mark.proof
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_broken_pace_is_noticed(tmp_path, mutant):
    """B6."""
    shutil.copytree(CORE, tmp_path / "dragoman", ignore=shutil.ignore_patterns("__pycache__"))
    file = tmp_path / "dragoman" / mutant.file
    text = file.read_text()
    assert text.count(mutant.old) == 1
    file.write_text(text.replace(mutant.old, mutant.new))
    paths = [str(tmp_path), str(ROOT / "tests"), os.environ.get("PYTHONPATH", "")]
    pytest_ = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider"]
    run = subprocess.run(
        [*pytest_, "-k", mutant.judge, *JUDGES],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert run.returncode == 1, run.stdout
    assert " failed" in run.stdout
