"""The gateway is killed at every point of a turn; what people see afterwards is judged."""

import itertools

import pytest

from crash.__main__ import main

pytestmark = [pytest.mark.proof, pytest.mark.alone, pytest.mark.timeout(900)]


@pytest.mark.parametrize(
    ("platform", "recovery"),
    [
        *itertools.product(["telegram", "wire", "bare", "files", "again"], ["notify", "retry"]),
        ("model", "retry"),
        ("discord", "retry"),
        ("slack", "retry"),
        ("sessions", "retry"),
        ("approval", "retry"),
        ("compaction", "notify"),
        ("claude", "retry"),
    ],
)
def test_a_kill_at_any_point_loses_nothing_and_shows_nothing_twice(platform, recovery):
    """B7, D6, D9, invariants 1, 2, 3, 5 and 7: nothing lost or done twice, each scar explained."""
    assert main(["--platform", platform, "--recovery", recovery]) == 0


def test_each_broken_gateway_is_noticed():
    """Invariants 1, 2, 3 and 5 can be seen to fail: seven mutants, each for its own reason."""
    assert main(["--mutants"]) == 0
