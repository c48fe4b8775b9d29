"""Many people, bad weather, and a gateway that is killed: everybody is answered once, in order."""

import pytest

from soak.__main__ import main
from soak.campaign import Plan, soak


@pytest.mark.proof
@pytest.mark.timeout(400)
def test_nobody_is_forgotten_over_three_kills(tmp_path):
    """B7, invariants 1, 3, 5 and 14: each message is answered once and in order per lane."""
    plan = Plan(conversations=20, messages=200, kills=3, in_flight=4, limit=300)
    result = soak(plan, tmp_path / "gateway")
    print(result)
    assert result.problems == []


@pytest.mark.proof
@pytest.mark.alone
@pytest.mark.timeout(700)
def test_nobody_is_forgotten_over_twenty_kills_and_memory_stays_flat():
    """B7, invariants 1, 3, 5, 10 and 14: the same with thousands of messages; then one long life."""
    assert main([]) == 0
