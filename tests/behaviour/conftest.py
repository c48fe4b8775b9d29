"""The scenarios in which chat gateways lose, repeat or hold up messages, with what ours shows."""

import pytest


@pytest.fixture(scope="session")
def outcomes():
    """Rows of the table, printed when all scenarios are done (``-s`` shows it)."""
    rows = {}
    yield rows
    for scenario, outcome in rows.items():
        print(f"\n{scenario:<22}{outcome}", end="")


@pytest.fixture
def outcome(outcomes, request):
    """Note what a scenario came to, under its name."""

    def note(scenario, **values):
        outcomes[scenario] = ", ".join(f"{name} = {value}" for name, value in values.items())

    return note
