"""Nothing of one session, person or profile reaches another, however they come together."""

from __future__ import annotations

import itertools
import json
import logging
import re
import secrets
import zlib
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import anyio
import attrs
import pytest

import dragoman_memory
import dragoman_openai
from dragoman import Attachment, Place, SystemClock
from dragoman.keys import Scope, ScopeRule
from dragoman.manifest.model import Access, ComponentTable, Profile, Route
from dragoman.testing import StubPlatform, StubPlugin
from dragoman_files.config import FilesConfig
from dragoman_files.reader import FileTexts
from dragoman_memory import NotesConfig
from dragoman_openai import OpenAIConfig
from peers import owners_agent
from peers.owners_agent import PERSONA, PERSONAS, USED, Puppeteer, tokens_in
from stage import UNLIMITED, Stage, can, gateway, table

pytestmark = pytest.mark.anyio

PLATFORMS: Final = ("one", "two", "three")
VERBS: Final = ("look", "read", "note", "recall", "pry", "plain", "fail", "look", "recall")


@attrs.frozen
class Owner:
    """One session, as a person sees it: who speaks where, and the word that is theirs alone."""

    platform: str
    channel: str
    thread: str = ""
    people: tuple[str, ...] = ("1",)
    place: Place = Place.GROUP
    token: str = attrs.field(factory=lambda: f"tok{secrets.token_hex(8)}")

    @property
    def user(self) -> str:
        """Whom the session's key names."""
        return self.people[0] if self.place is Place.GROUP and self.platform == "one" else ""

    @property
    def profile(self) -> str:
        return {"one": "default", "two": "sales", "three": "help"}[self.platform]


def owners(people: str) -> Iterator[Owner]:
    """Return sessions that have as much in common as they can: ids of people, chats and threads."""
    for platform in PLATFORMS:
        for person in people:  # a direct message is called like the person in it
            yield Owner(platform, person, people=(person,), place=Place.DM)
    for person in "123":  # the profile gives each of a group a session of their own
        yield Owner("one", "50", people=(person,))
    for thread in ("1", "2"):
        yield Owner("three", "50", thread, people=("1", "2", "3"))


@pytest.fixture
def model() -> Iterator[Puppeteer]:
    USED.clear()
    owners_agent.KEPT.clear()
    owners_agent.FILES.clear()
    with Puppeteer() as server:
        yield server


def manifest(model: Puppeteer) -> dict[str, Any]:
    """Return two runtimes, a memory that all share, and a profile for each platform."""
    PERSONAS.update({name: f"pers{secrets.token_hex(8)}" for name in ("default", "sales", "help")})
    config = OpenAIConfig(agent="peers.owners_agent:assistant", base_url=model.base_url)
    runtimes = [
        ComponentTable(kind="runtimes", id=name, plugin="openai", config=config)
        for name in ("first", "second")
    ]
    notes = ComponentTable(kind="memories", id="notes", plugin="memory", config=NotesConfig())
    each = ScopeRule(group=Scope.USER)
    return {
        "components": [
            *runtimes,
            notes,
            table("extensions", "files"),
            *(table("platforms", name) for name in PLATFORMS),
        ],
        "plugins": {"openai": dragoman_openai, "memory": dragoman_memory},
        "profiles": {
            "default": Profile(runtime="first", memory="notes", scope=each),
            "sales": Profile(runtime="first", memory="notes"),
            "help": Profile(runtime="second", memory="notes"),
        },
        "routes": (
            Route(profile="sales", platform="two"),
            Route(profile="help", platform="three"),
        ),
        "access": Access(
            channels=tuple(f"stub:{name}" for name in ("1", "2", "3", "4", "5", "50"))
        ),
        "limits": UNLIMITED,
    }


async def talk(stage: Stage, owner: Owner, verbs: Sequence[str]) -> None:
    """Say one thing after the other, each when the one before has been answered."""
    platform = stage.plugin.platform(owner.platform)
    for number, (verb, person) in enumerate(
        zip(verbs, itertools.cycle(owner.people), strict=False)
    ):
        name = f"{owner.token}-{number}"
        platform.contents[name] = f"the file says {owner.token}".encode()
        file = Attachment(name, "document", f"{owner.token}.txt", "text/plain", 35)
        await platform.say(
            f"{verb} {owner.token}",
            channel=owner.channel,
            thread=owner.thread,
            user=person,
            place=owner.place,
            native_id=name,
            attachments=[file] if verb in {"read", "pry"} else (),
        )
        await answered(stage, name)


async def answered(stage: Stage, name: str) -> None:
    """Wait until a message has its answer."""
    with anyio.fail_after(300):
        while await stage.rows(  # noqa: ASYNC110 - the store rings no bell
            "SELECT 1 FROM inbound_events WHERE native_id = ? AND state <> 'answered'", name
        ):
            await anyio.sleep(0.1)  # twenty ask


async def owners_by_session(stage: Stage, everybody: Sequence[Owner]) -> dict[str, Owner]:
    """Return whose each session is: by its key, which nothing that was said has made."""
    found = await stage.rows(
        "SELECT s.id, k.platform, k.channel, k.thread, k.user FROM platform_sessions s"
        " JOIN conversation_keys k USING (conversation_id)"
    )
    known = {(one.platform, one.channel, one.thread, one.user): one for one in everybody}
    return {session: known[platform, *key] for session, platform, *key in found}


async def kept(stage: Stage) -> AsyncIterator[tuple[str, str, set[str]]]:
    """Yield, of every row that belongs to a session, its table, that session, and the tokens in it."""
    of_turn = dict(await stage.rows("SELECT id, session_id FROM agent_runs"))
    of_memory = {
        f"{profile}/{conversation}": session
        for session, profile, conversation in await stage.rows(
            "SELECT id, profile, conversation_id FROM platform_sessions"
        )
    }
    for (name,) in await stage.rows("SELECT name FROM sqlite_master WHERE type = 'table'"):
        columns = [row[1] for row in await stage.rows(f"PRAGMA table_info({name})")]
        for values in await stage.rows(f"SELECT * FROM {name}"):
            row = dict(zip(columns, values, strict=True))
            session = row.get("session_id") or of_turn.get(row.get("turn_id"))
            if name == "agent_runs":
                session = row["session_id"]
            if name == "component_values" and row["component"] == "memories.notes":
                session = of_memory[json.loads(re.split("note_", row["name"])[0])]
            if session:
                yield name, session, tokens_in(str(list(map(plain, values))))


def plain(value: Any) -> str:
    """Return what a column says, also where it is packed."""
    if isinstance(value, bytes):
        with suppress(zlib.error):
            return zlib.decompress(value).decode()
    return str(value)


@pytest.mark.parametrize(
    ("people", "turns"), [("12", 3), pytest.param("12345", 25, marks=pytest.mark.proof)]
)
async def test_invariant_16_nothing_of_one_reaches_another(
    model: Puppeteer, tmp_path: Path, caplog: pytest.LogCaptureFixture, people: str, turns: int
) -> None:
    """Invariant 16: interleaved turns with tools, files, memory and errors, of people and profiles
    that have ids, a runtime and a memory in common; 500 of them as a proof."""
    caplog.set_level(logging.INFO)
    everybody = list(owners(people))
    plugin = StubPlugin()
    for name in PLATFORMS:
        plugin.platforms[name] = StubPlatform(can(fetch=10_000), id=name)
    plugin.extensions["files"] = FileTexts(FilesConfig(), SystemClock())
    async with gateway(plugin, data_dir=tmp_path, **manifest(model)) as stage:
        async with anyio.create_task_group() as talks:
            for number, owner in enumerate(everybody):
                verbs = itertools.islice(itertools.cycle(VERBS), number, number + turns)
                talks.start_soon(talk, stage, owner, list(verbs))
        await stage.until_final()
        whose = await owners_by_session(stage, everybody)
        assert len(whose) == len(everybody)
        assert await stage.states("agent_runs") == ["succeeded"] * len(everybody) * turns
        seen = Counter()
        async for name, session, tokens in kept(stage):
            assert tokens <= {whose[session].token}, (name, whose[session])
            seen[name] += bool(tokens)
        for name in ("inbound_events", "deliveries", "records", "tool_calls", "component_values"):
            assert seen[name] > 3, seen
        shown = {
            (name, one.address.channel, one.address.thread, one.text)
            for name in PLATFORMS
            for one in plugin.platform(name).messages
        }
    check_requests(model, everybody)
    check_tools(whose)
    check_files(tmp_path, whose)
    check_screens(shown, everybody)
    assert not tokens_in(caplog.text)


def check_requests(model: Puppeteer, everybody: Sequence[Owner]) -> None:
    """Each request has the token of one session and the persona of its profile, and no other."""
    personas = {one.token: PERSONAS[one.profile] for one in everybody}
    for body in model.page.bodies:
        [token] = tokens_in(body)
        assert set(PERSONA.findall(json.dumps(body))) == {personas[token]}
    assert {token for body in model.page.bodies for token in tokens_in(body)} == set(personas)


def check_tools(whose: Mapping[str, Owner]) -> None:
    """Each call was made for the session whose model wanted it."""
    assert len(USED) > 3
    assert [(whose[session].token, token) for session, token in USED] == [
        (token, token) for _, token in USED
    ]


def check_files(folder: Path, whose: Mapping[str, Owner]) -> None:
    """Each session has a folder, and its own files in it."""
    files = [path for path in (folder / "incoming").rglob("*") if path.is_file()]
    assert len({path.parent for path in files}) > 3
    for path in files:
        assert tokens_in(path.read_text()) == {whose[path.parent.name].token}


def check_screens(
    shown: AbstractSet[tuple[str, str, str, str]], everybody: Sequence[Owner]
) -> None:
    """A chat shows what belongs to those who are in it; the people of one group see each other."""
    for platform, channel, thread, text in shown:
        there = [one for one in everybody if (one.platform, one.channel) == (platform, channel)]
        allowed = {one.token for one in there if one.thread == thread}
        assert len(tokens_in(text)) <= 1
        assert tokens_in(text) <= allowed
    assert set().union(*(tokens_in(text) for *_, text in shown)) == {one.token for one in everybody}
