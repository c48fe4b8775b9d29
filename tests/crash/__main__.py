"""``python -m crash``: kills gateways at every point, and says what people saw of it."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from crash.agency import agencies
from crash.backstage import Backstage
from crash.campaign import WORKERS, Campaign
from crash.claude import CLAUDE
from crash.deployments import bare_wire, deployments
from crash.fence import accepted_by
from crash.hunt import hunt
from crash.mutants import CORE
from crash.pieces import installed
from crash.points import Point
from crash.report import show


def main(arguments: list[str] | None = None) -> int:
    """Run what the command line asks for; return the exit code."""
    options = _options(arguments)
    with tempfile.TemporaryDirectory(prefix="crash-") as root, Backstage() as backstage:
        folder = Path(root)
        pieces = installed(folder / "pieces")
        good = True
        if not options.mutants:
            good = _kill(options, pieces, folder, backstage)
        if not options.only and not options.platform and not options.recovery:
            good = _hunt(options, pieces, folder) and good
    return 0 if good else 1


def _kill(options: argparse.Namespace, pieces: str, folder: Path, backstage: Backstage) -> bool:
    """Kill the gateway in each deployment; return whether nothing is wrong."""
    good = True
    path = f"{options.core}:{pieces}"
    for deployment in [*deployments(backstage), *agencies(backstage), CLAUDE]:
        if options.platform not in (None, deployment.name):
            continue
        if options.recovery not in (None, deployment.recovery):
            continue
        campaign = Campaign(deployment, path, folder / deployment.label, options.workers)
        result = campaign.run(options.only)
        show(result, logs=options.logs)
        good = good and not result.faults
    return good


def _hunt(options: argparse.Namespace, pieces: str, folder: Path) -> bool:
    """Break the gateway in each way; return whether each was noticed, and the whole one passes."""
    began = time.monotonic()
    accepted = accepted_by(str(options.core))
    print(f"fence: late writes accepted {len(accepted)}", *accepted, flush=True)
    catches = hunt(
        bare_wire(), pieces, folder / "mutants", options.workers, options.core / "dragoman"
    )
    for catch in catches:
        print(catch.line)
    noticed = sum(catch.noticed for catch in catches)
    print(
        f"mutants {len(catches)} noticed {noticed} ({time.monotonic() - began:.0f} s)", flush=True
    )
    return noticed == len(catches) and not accepted


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m crash", description=__doc__)
    parser.add_argument(
        "--only",
        type=Point.parse,
        action="append",
        metavar="SITE:ORDINAL:STAGE",
        help="kill at this point only, as in commit.Finish:1:after; may be repeated",
    )
    parser.add_argument("--platform", help="this deployment only, as in wire")
    parser.add_argument("--recovery", choices=("notify", "retry"), help="this policy only")
    parser.add_argument("--workers", type=int, default=WORKERS, help="gateways at once")
    parser.add_argument("--mutants", action="store_true", help="only the broken gateways")
    parser.add_argument(
        "--core", type=Path, default=CORE.parent, help="the folder of the dragoman package to kill"
    )
    parser.add_argument("--logs", action="store_true", help="show the log of each failed trial")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
