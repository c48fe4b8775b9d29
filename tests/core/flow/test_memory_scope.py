"""Whose notes an agent reads: the profile says what shares them, and nothing else does."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import attrs
import pytest

from dragoman import Finished, Note, Place, TextBlock
from dragoman.manifest.model import Access, Profile
from dragoman.store.operations import Link
from dragoman.testing import ScriptedRuntime, StubPlugin
from stage import gateway, table

pytestmark = pytest.mark.anyio

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@attrs.define(eq=False)
class Notes:
    """Keeps each note in its scope."""

    kept: list[tuple[str, str]] = attrs.field(factory=list)

    async def add(self, scope: str, text: str) -> Note:
        self.kept.append((scope, text))
        return Note(str(len(self.kept)), text, NOW)

    async def search(self, scope: str, query: str, limit: int) -> list[Note]:
        return [Note("1", text, NOW) for where, text in self.kept if where == scope][:limit]

    async def delete(self, scope: str, note_id: str) -> bool:
        return False


async def remembers(request: Any, host: Any) -> Any:
    """Tell what is known, then keep what was said."""
    known = await host.memory.search("", 10)
    await host.memory.add(request.inputs[0].text)
    yield TextBlock("1", ", ".join(note.text for note in known) or "nothing")
    yield Finished()


SAID = (
    ("a", "1", Place.DM, "7"),
    ("b", "2", Place.DM, "7"),
    ("c", "3", Place.DM, "8"),
    ("d", "-4", Place.GROUP, "7"),
    ("e", "1", Place.DM, "7"),
)
"""What is said in which channel by whom, one after the other."""


@pytest.mark.parametrize(
    ("scope", "known"),
    [
        ("conversation", ["nothing", "nothing", "nothing", "nothing", "a"]),
        ("person", ["nothing", "a", "nothing", "nothing", "a, b"]),
        ("profile", ["nothing", "a", "a, b", "a, b, c", "a, b, c, d"]),
    ],
)
async def test_a_profile_says_what_shares_its_notes(
    tmp_path: Path, scope: Any, known: list[str]
) -> None:
    """A7, invariant 16: notes of one are not read by others, where the profile does not say so."""
    assert await told(tmp_path, scope) == known


async def test_notes_of_a_person_are_those_of_all_linked_accounts(tmp_path: Path) -> None:
    """A5: linking shares what the profile lets a person share."""
    async with gateway(store=tmp_path / "store.db") as stage:
        link = Link(identity="stub:7", other="stub:8", by="operator", now=0.0)
        assert await stage.app.store.apply(link)
    assert await told(tmp_path, "person") == ["nothing", "a", "a, b", "nothing", "a, b, c"]


async def told(folder: Path, scope: Any) -> list[str]:
    """Return what the agent knew each time that somebody said something."""
    plugin, answers = StubPlugin(), list[str]()
    plugin.memories["notes"] = Notes()
    plugin.runtimes["scripted"] = ScriptedRuntime(remembers)
    profile = Profile(runtime="scripted", memory="notes", memory_scope=scope)
    async with gateway(
        plugin,
        store=folder / "store.db",
        components=[table("memories", "notes"), table("platforms", "stub")],
        profiles={"default": profile},
        access=Access(users=("stub:7", "stub:8")),
    ) as stage:
        for text, channel, place, user in SAID:
            await stage.platform.say(text, channel=channel, place=place, user=user)
            await stage.until_final()
            answers.append(stage.platform.shown(channel)[-1])
    return answers
