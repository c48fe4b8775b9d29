"""Codes over kills: what was committed counts once, and people see what came of it."""

from __future__ import annotations

import re

import pytest

from dragoman.flow.pairing import LATER, LET_IN
from dragoman.manifest.model import Access
from dragoman.store import operations as ops
from dragoman.store.writer import Writer
from dragoman.testing import StubPlugin
from lives import wreck
from stage import gateway

pytestmark = pytest.mark.anyio

ACCESS = Access(operators=("stub:2",), users=("stub:3", "stub:4"), pairing=True)
CODE = re.compile(r"(?:[2-9A-HJ-NP-Z]{4}-?){3}")


@pytest.fixture
def killed(monkeypatch):
    """Have a gateway killed right after its first commit of a kind; what is left is in the list."""

    def after(kind, store, plugin):
        left = []
        real = Writer.commit

        async def commit(self, group):
            answers = await real(self, group)
            if not left and any(isinstance(one, kind) for one in group):
                left.append(wreck(store, plugin))
            return answers

        monkeypatch.setattr(Writer, "commit", commit)
        return left

    return after


async def say(stage, channel, text):
    await stage.platform.say(text, channel=channel)
    await stage.until_final()
    return (stage.platform.shown(channel) or [""])[-1]


def code_in(text):
    return CODE.search(text)[0]


async def test_a_code_whose_event_was_not_ended_is_shown_once_and_good(tmp_path, killed):
    """FC-PAI-01: the row and its notice are one commit."""
    plugin = StubPlugin()
    left = killed(ops.MakeCode, tmp_path / "a.db", plugin)
    async with gateway(plugin, store=tmp_path / "a.db", access=ACCESS) as stage:
        await say(stage, "9", "hello")
    (life,) = left
    assert life.platform.messages == []
    async with gateway(life.plugin, store=life.store, access=ACCESS) as stage:
        await stage.until_final()
        (offer,) = stage.platform.shown("9")
        assert await say(stage, "2", f"/pair {code_in(offer)}") == "Let in: `stub:9`, as user."


async def test_a_code_that_was_used_is_not_wrong_when_its_command_is_carried_out_again(
    tmp_path, killed
):
    """FC-PAI-01: who said it is told what came of it, nothing is counted, and the other side is
    told once."""
    plugin = StubPlugin()
    left = killed(ops.Redeem, tmp_path / "a.db", plugin)
    async with gateway(plugin, store=tmp_path / "a.db", access=ACCESS) as stage:
        offer = await say(stage, "9", "hello")
        await say(stage, "2", f"/pair {code_in(offer)}")
    (life,) = left
    async with gateway(life.plugin, store=life.store, access=ACCESS) as stage:
        await stage.until_final()
        assert stage.platform.shown("2") == ["Let in: `stub:9`, as user."]
        assert stage.platform.shown("9")[1:] == [LET_IN]
        assert await stage.rows("SELECT failures FROM attempts") == [(0,)]
        assert await say(stage, "9", "here") == "here"


async def test_a_link_that_was_asked_for_again_shows_its_code(tmp_path, killed):
    """The command is carried out again, says so, and the code of the first time is good."""
    plugin = StubPlugin()
    left = killed(ops.MakeCode, tmp_path / "a.db", plugin)
    async with gateway(plugin, store=tmp_path / "a.db", access=ACCESS) as stage:
        await say(stage, "3", "/link")
    (life,) = left
    async with gateway(life.plugin, store=life.store, access=ACCESS) as stage:
        await stage.until_final()
        shown = stage.platform.shown("3")
        assert sorted(map(bool, map(CODE.search, shown))) == [False, True]
        assert LATER in shown
        code = next(code_in(text) for text in shown if CODE.search(text))
        assert await say(stage, "4", f"/link {code}") == "Linked: `stub:3` is you as well."
