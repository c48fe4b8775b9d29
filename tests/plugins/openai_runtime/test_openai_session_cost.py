"""What our session costs a run, beside none and the SDK's own: ``benchmarks/openai_sessions.py``."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.proof, pytest.mark.alone, pytest.mark.timeout(900)]
BENCHMARK = Path(__file__).parents[3] / "benchmarks" / "openai_sessions.py"


def test_our_session_is_about_as_fast_as_the_sdks_own_and_a_long_past_costs_no_more():
    """D5, D6: ratios within one process; the seconds themselves are the machine's affair.

    Wanted are 0.7 of the runs without a session, as many as with the SDK's own over a file, and five
    times as many as with its asynchronous one. The bounds leave what other work on two cores was
    seen to take.
    """
    done = subprocess.run(
        [sys.executable, BENCHMARK], capture_output=True, text=True, timeout=800, check=False
    )
    assert done.returncode == 0, done.stderr
    many, long = map(json.loads, done.stdout.splitlines())
    print(done.stdout)
    assert many["conversations"] == 64
    assert many["of_no_session"] >= 0.6
    assert many["of_sqlite"] >= 0.75
    assert many["of_async_sqlite"] >= 3
    assert many["descriptors_opened"]["dragoman"] == 0
    assert many["commits_per_run"] < 0.1
    assert long["of_short"] <= 1.5
