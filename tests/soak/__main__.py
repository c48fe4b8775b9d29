"""``python -m soak``: thousands of messages in bad weather, with kills and then without."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Final

import attrs

from soak.campaign import Plan, soak

FULL: Final = Plan(conversations=200, messages=10_000, kills=20, limit=400.0)
CALM: Final = attrs.evolve(FULL, kills=0, limit=250.0)
"""The same without kills: one life, whose memory is looked at."""
GROWTH: Final = 0.10


def main(arguments: list[str] | None = None) -> int:
    """Soak; print a line for each run and what is wrong; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kills", type=int, default=FULL.kills)
    parser.add_argument("--no-calm", action="store_true", help="leave out the run without kills")
    options = parser.parse_args(arguments)
    plans = [attrs.evolve(FULL, seed=options.seed, kills=options.kills)]
    if not options.no_calm:
        plans.append(attrs.evolve(CALM, seed=options.seed))
    good = True
    for plan in plans:
        with tempfile.TemporaryDirectory(prefix="soak-") as folder:
            result = soak(plan, Path(folder))
        problems = result.problems
        if not plan.kills and result.growth >= GROWTH:
            problems.append(f"memory grew by {result.growth:.1%}")
        print(result, flush=True)
        for problem in problems[:20]:
            print(f"  wrong: {problem}", flush=True)
        good = good and not problems
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
