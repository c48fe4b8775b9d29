"""Says what came of a campaign."""

from __future__ import annotations

from crash.campaign import Result


def show(result: Result, *, logs: bool = False) -> None:
    """Print the summary, the explanation of each imperfection, and what must not be."""
    print(f"{result.deployment.label}: {result.line} ({result.seconds:.0f} s)", flush=True)
    for outcome in result.outcomes:
        for one in outcome.explained:
            if one.allowed:
                print(f"  {one.text}")
    interrupted = sum(outcome.judgement.interrupted for outcome in result.outcomes)
    if interrupted:
        print(f"  {interrupted} answers cut by a kill, and said to be")
    for outcome, fault in result.faults:
        print(f"  FAULT {outcome.target or 'no kill'}: {fault}")
        if logs:
            print("    " + outcome.log.replace("\n", "\n    "))


def faults_of(result: Result) -> list[str]:
    """Return each fault as a line."""
    return [f"{outcome.target or 'no kill'}: {fault}" for outcome, fault in result.faults]
