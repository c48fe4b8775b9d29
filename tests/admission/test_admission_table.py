"""Who may, shown: every kind of input by everybody, over the wire of three platforms."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from admission.everybody import PLATFORMS
from admission.ways import LISTED, LISTED_POSTS, ROLES, Cell, Outcome, table

pytestmark = pytest.mark.anyio
PAGE = Path(__file__).resolve().parents[2] / "docs" / "access.md"
KINDS = (
    "message edit command slash complete press modal react forward post anonymous hook bot".split()
)
"""What each platform has, or says why not."""


@pytest.mark.parametrize("name", PLATFORMS)
async def test_fc_aut_03_who_is_let_in_by_which_way_on_which_platform(name: str) -> None:
    """FC-AUT-03, FC-AUT-02, FC-CMD-01, B10, invariant 15: and the page shows just this."""
    wire, found = await PLATFORMS[name]()
    for kind in KINDS:
        rows = {cell.role for cell in found if cell.way.act == kind}
        assert rows == set(ROLES) or (not rows and wire.LACKS[kind]), kind
    for cell, outcome in found.items():
        _judge(cell, outcome)
    sections = PAGE.read_text(encoding="utf-8").split("### ")
    assert f"{name}\n\n{table(wire.LACKS, found)}" in [one.rstrip() + "\n" for one in sections]


def _judge(cell: Cell, outcome: Outcome) -> None:
    """Nothing is reached without a recorded rule; strangers reach nothing and learn nothing."""
    if outcome.did:
        rule = {"member": "roles", "listed_bot": "bots"}.get(cell.way.act, "channels")
        named = cell.role != "stranger" and cell.way.act not in {"post", "listed_bot"}
        assert outcome.rule == (f"{cell.role}s" if named else rule), cell
        assert outcome.state in {"answered", "handled", "noted"}, cell
    listed = cell.place in {LISTED, LISTED_POSTS} or cell.way.act in {"member", "listed_bot"}
    if cell.role == "stranger" and not listed:
        assert outcome.did == (), cell
        assert outcome.public == (), cell
        assert outcome.alone in {(), ("This is not for you.",)}, cell
    said = " ".join([*outcome.alone, *outcome.public])
    assert not re.search("probe|manage", said), cell
