"""Lets every mutant run, and says which of them was not noticed."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import attrs

from crash.campaign import Campaign
from crash.deployments import Deployment
from crash.fence import accepted_by
from crash.mutants import CORE, MUTANTS, Mutant

LIMIT: Final = 10.0
"""Seconds after which a mutant that does not come to its end is one that hangs."""


@attrs.frozen
class Catch:
    """What a mutant's run showed."""

    mutant: Mutant
    faults: tuple[str, ...]

    @property
    def noticed(self) -> bool:
        """Whether it failed for the reason that it was made for."""
        return any(self.mutant.symptom in fault for fault in self.faults)

    @property
    def line(self) -> str:
        """The result, as one line."""
        if self.noticed:
            shown = next(fault for fault in self.faults if self.mutant.symptom in fault)
            return f"mutant {self.mutant.name}: noticed ({shown})"
        return f"mutant {self.mutant.name}: NOT NOTICED {'; '.join(self.faults)}"


def hunt(
    deployment: Deployment, pieces: str, folder: Path, workers: int, core: Path = CORE
) -> Sequence[Catch]:
    """Run every mutant on a platform without certain sends."""

    def one(mutant: Mutant) -> Catch:
        own = folder / mutant.name.replace(" ", "-")
        copy = mutant.write(own / "core", core)
        if not mutant.points:
            accepted = accepted_by(str(copy))
            return Catch(mutant, tuple(f"a late {name} was accepted" for name in accepted))
        campaign = Campaign(deployment, f"{copy}:{pieces}", own, workers=1, limit=LIMIT)
        result = campaign.run(mutant.points)
        return Catch(mutant, tuple(fault for _, fault in result.faults))

    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(one, MUTANTS))
