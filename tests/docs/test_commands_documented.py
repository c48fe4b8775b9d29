"""``docs/commands.md`` and the registry say the same, and every command has somebody to carry it out."""

import runpy

import pytest

from dragoman.flow.registry import OWN
from dragoman.manifest.model import Access
from stage import gateway


def test_the_page_is_current(root):
    made = runpy.run_path(str(root / "docs" / "generate.py"))["PAGES"]["commands.md"]()
    assert (root / "docs" / "commands.md").read_text() == made, "run `make docs`"


@pytest.mark.anyio
async def test_every_command_of_the_table_is_carried_out():
    """B11: none is only listed, and none is only there."""
    async with gateway(access=Access(owners=("stub:1",))) as stage:
        for entry in OWN:
            await stage.platform.say(f"/{entry.name}", channel="1", user="1")
        await stage.platform.until_count(len(OWN), "1")
        assert await stage.states("inbound_events") == ["handled"] * len(OWN)
