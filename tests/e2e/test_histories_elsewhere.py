"""Each way to keep a conversation, through the manifest, over a restart of the process.

One gateway has a runtime for each way and a person who talks to it. `told` is what came of it.
"""

import json
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing
from pathlib import Path

import attrs
import pytest

from peers.aimock import AiMock
from peers.botapi import BotApi
from peers.dapr_sidecar import DaprSidecar
from peers.databases import Postgres, Redis
from peers.deployment import FIXTURES
from peers.gateway import Gateway
from peers.model_service import ModelService
from peers.mongo_standin import MongoStandIn
from peers.needs import absent, leave

pytestmark = pytest.mark.proof

KEY = "0123456789abcdef0123456789abcdef"
ENCRYPTED = 'encrypt = {{ key = {{ env = "SESSION_KEY" }} }}'
ANSWERS = {
    "hello": "Hello from the model.",
    "do you remember": "You asked about Paris.",
}


@attrs.frozen
class Place:
    """A way to keep a conversation: its keys in the manifest, and what they need."""

    session: str = ""
    runtime: str = ""
    modules: tuple[str, ...] = ()
    servers: bool = False

    def lacking(self) -> str | None:
        """Return what is missing on this machine."""
        return absent(*self.modules, servers=self.servers)


PROVEN = {
    "dragoman": Place('backend = "dragoman"'),
    "sqlite": Place('backend = "sqlite"'),
    "async-sqlite": Place('backend = "async-sqlite"', modules=("aiosqlite",)),
    "advanced-sqlite": Place('backend = "advanced-sqlite"'),
    "redis": Place(
        'backend = "redis"\nurl = {{ env = "REDIS" }}\nttl = 86400', "", ("redis",), servers=True
    ),
    "sqlalchemy-postgresql": Place(
        'backend = "sqlalchemy"\nurl = "{postgres}"', "", ("sqlalchemy", "asyncpg"), servers=True
    ),
    "sqlalchemy-sqlite": Place(
        'backend = "sqlalchemy"\nurl = "sqlite+aiosqlite:///alchemy.sqlite"',
        modules=("sqlalchemy", "aiosqlite"),
    ),
    "encrypted-sqlite": Place(f'backend = "sqlite"\n{ENCRYPTED}'),
    "encrypted-redis": Place(
        'backend = "redis"\nprefix = "secret"\nurl = {{ env = "REDIS" }}\n' + ENCRYPTED,
        modules=("redis",),
        servers=True,
    ),
}
UNPROVEN = {
    "conversations": Place('backend = "conversations"'),
    "mongodb": Place('backend = "mongodb"\nurl = "{mongodb}"', modules=("pymongo",)),
    "dapr": Place(
        'backend = "dapr"\nurl = "127.0.0.1:{dapr}"\nstore = "statestore"', modules=("dapr",)
    ),
}
SERVED = {
    way: Place(runtime=f'continuation = "{way}"')
    for way in ("previous_response", "auto_previous_response", "conversation")
}
COMPACTED = {"compacted": Place("compact = {{ above = 1 }}")}
PLACES = PROVEN | UNPROVEN | SERVED | COMPACTED


@attrs.define(eq=False)
class Told:
    """What the conversations have left behind."""

    folder: Path
    service: ModelService
    shown: Mapping[str, list[str]]
    """What each person saw, by way."""
    stored: Callable[[str], str]
    """What is stored of a way, as text."""

    def calls(self, way: str) -> list[dict[str, object]]:
        """The bodies of a way's model calls."""
        return [call for call in self.service.calls if call["instructions"] == way]

    def rows(self, namespace: str, way: str) -> list[tuple[object, ...]]:
        """The records of a way's only session."""
        with closing(sqlite3.connect(self.folder / ".dragoman" / "dragoman.db")) as db:
            return db.execute(
                "SELECT generation, item FROM records WHERE namespace = ? AND item IS NOT NULL "
                "AND session_id = (SELECT id FROM platform_sessions WHERE profile = ?) "
                "ORDER BY generation, number",
                (namespace, way),
            ).fetchall()


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """Everybody says hello, the process ends, another begins, everybody asks what was said."""
    folder = tmp_path_factory.mktemp("deployment")
    with ExitStack() as open_now:
        start = open_now.enter_context
        places = {name: place for name, place in PLACES.items() if place.lacking() is None}
        api, model = start(BotApi()), start(AiMock(FIXTURES))
        service = ModelService(upstream=model.base_url)
        service.start()
        open_now.callback(service.stop)
        environment = {"TELEGRAM_TOKEN": api.token, "MODEL_KEY": "sk-dummy", "SESSION_KEY": KEY}
        addresses: dict[str, object] = {}
        databases = None
        if any(place.servers for place in places.values()):
            databases = start(Redis()), start(Postgres())
            environment["REDIS"], addresses["postgres"] = databases[0].url, databases[1].url
        if "mongodb" in places:
            addresses["mongodb"] = start(MongoStandIn()).url
        if "dapr" in places:
            sidecar = start(DaprSidecar())
            environment |= sidecar.environment
            addresses["dapr"] = sidecar.port
        people = {name: 700000001 + number for number, name in enumerate(places)}
        gateway = Gateway(folder, _manifest(api, service, places, people, addresses), environment)
        numbers = iter(range(1, 1000))
        with gateway:
            _all_say(api, people, "hello", numbers)
            assert gateway.stop() == 0
            gateway.start()
            _all_say(api, people, "do you remember", numbers)
            assert gateway.stop() == 0
        assert service.errors == []
        shown = {name: list(api.messages(person).values()) for name, person in people.items()}
        yield Told(folder, service, shown, lambda way: _stored(folder, databases, way))


def _manifest(api, service, places, people, addresses):
    users = json.dumps([f"telegram:{person}" for person in people.values()])
    parts = [
        "manifest = 1",
        f'[platforms.telegram]\ntoken = {{ env = "TELEGRAM_TOKEN" }}\napi_url = "{api.url}"',
        f"[access]\nusers = {users}",
        '[profiles.default]\nruntime = "dragoman"',
    ]
    for name, place in places.items():
        session = place.session.format(**addresses)
        runtime = (
            f'[runtimes.{name}]\nplugin = "openai"\ninstructions = "{name}"\n'
            f'api_key = {{ env = "MODEL_KEY" }}\nbase_url = "{service.base_url}"\n{place.runtime}'
        )
        parts += [
            runtime,
            f"[runtimes.{name}.session]\n{session}" if session else "",
            f'[profiles.{name}]\nruntime = "{name}"',
            f'[[routes]]\nuser = "{people[name]}"\nprofile = "{name}"',
        ]
    return "\n\n".join(parts)


def _all_say(api, people, text, numbers):
    for person in people.values():
        api.say(person, text, message_id=next(numbers))
    for person in people.values():
        api.wait_for(
            lambda who=person: list(api.messages(who).values())[-1:] == [ANSWERS[text]], 60
        )


def _stored(folder, databases, way):
    if "redis" in way:
        prefix = "secret" if "encrypted" in way else "dragoman"
        found = databases[0].command("KEYS", f"{prefix}:*:messages").split()
        (name,) = (word.decode() for word in found if b":" in word)
        return str(databases[0].command("LRANGE", name, "0", "-1"))
    if way == "sqlalchemy-postgresql":
        return databases[1].query("SELECT message_data FROM agent_messages")
    path = folder / "alchemy.sqlite"
    if way != "sqlalchemy-sqlite":
        (path,) = (
            found
            for found in folder.rglob("sessions.sqlite")
            if found.parent.name.endswith(f".{way}")
        )
        assert path.stat().st_mode & 0o077 == 0
    with closing(sqlite3.connect(path)) as db:
        return str(db.execute("SELECT message_data FROM agent_messages").fetchall())


@pytest.fixture
def way(request, told):
    """One of the ways; skipped by name where something is missing, which CI takes for a failure."""
    leave(PLACES[request.param].lacking())
    return request.param


def each(places):
    return pytest.mark.parametrize("way", places, indirect=True)


def texts(call):
    """What a model call says of what was said, item by item."""
    return [
        item["content"]
        if isinstance(item.get("content"), str)
        else "".join(part.get("text", "") for part in item.get("content", ()))
        for item in call["input"]
    ]


WHOLE = ["hello", "Hello from the model.", "do you remember"]


@each(PROVEN | UNPROVEN)
def test_d3_a_history_is_there_after_a_restart(told, way):
    """D3: the second turn's model call holds the first turn, and nothing twice."""
    assert told.shown[way] == [ANSWERS["hello"], ANSWERS["do you remember"]]
    assert [texts(call) for call in told.calls(way)] == [WHOLE[:1], WHOLE]


@each([name for name in PROVEN if name != "dragoman"])
def test_d3_it_is_stored_where_the_manifest_says(told, way):
    """D3: items are in the file or server alone, readable there unless they are encrypted."""
    stored = told.stored(way)
    assert ("hello" in stored) == ("encrypted" not in way)
    assert len(stored) > 100
    here = [json.loads(item) for _, item in told.rows("openai", way)]
    assert texts({"input": here}) == ["hello", "do you remember"]


@each(SERVED)
def test_d4_the_service_remembers(told, way):
    """D4: the second turn names the past, and sends the new message alone."""
    first, second = told.calls(way)
    assert texts(first) == ["hello"]
    assert texts(second) == ["do you remember"]
    if way == "conversation":
        assert first["conversation"] == second["conversation"]
        assert len(told.service.conversations[first["conversation"]]) == 4
    else:
        assert first.get("previous_response_id") is None
        assert str(second["previous_response_id"]).startswith("resp")


@each(SERVED)
def test_d4_our_records_have_it_all_the_same(told, way):
    """D4: what the service keeps can be given to it, or to a session, again."""
    items = [json.loads(item) for _, item in told.rows("openai", way)]
    assert texts({"input": items}) == [*WHOLE, "You asked about Paris."]


@each(COMPACTED)
def test_d6_a_long_history_is_compacted_between_turns(told, way):
    """D6: what was stored stays stored; the model is sent what the service made of it."""
    assert len(told.service.compactions) == 1
    assert texts(told.service.compactions[0]) == WHOLE[:2]
    kinds = [item.get("role") or item["type"] for item in told.calls(way)[-1]["input"]]
    assert kinds == ["compaction", "user"]
    generations = [generation for generation, _ in told.rows("openai", way)]
    assert generations == [1, 1, 1, 2, 2, 2]
