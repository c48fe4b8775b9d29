"""A deployment whose store holds one message's whole way, and the program to ask about it."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio
import attrs
import pytest

from dragoman import Address, FailureKind, Inbound, Sender, Usage
from dragoman.cli.main import main
from dragoman.keys import ConversationKey
from dragoman.states import DeliveryState, EventState, TurnState
from dragoman.store import operations as ops
from dragoman.store.requests import pieces_of
from dragoman.store.sqlite import open_sqlite

NOW = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC).timestamp()
REQUESTS = ('{"input":["hello \x9b"],"model":"large"}', '{"input":["hello \x9b","back"]}')
CHAT = Address("console", "700", thread="9")
MANIFEST = """
manifest = 1

[platforms.console]

[runtimes.echo]

[profiles.default]
runtime = "echo"
"""


@attrs.define(eq=False)
class Deployment:
    """A folder with a manifest and a store."""

    folder: Path
    capsys: pytest.CaptureFixture[str]
    turn: str = "turn_1"
    session: str = ""
    requests: tuple[str, ...] = REQUESTS

    @property
    def store(self) -> Path:
        return self.folder / ".dragoman" / "dragoman.db"

    def run(self, *words: str) -> tuple[int, str, str]:
        """Call the program; return its exit code and what it printed."""
        code = main([*words, "-m", str(self.folder / "dragoman.toml")])
        shown = self.capsys.readouterr()
        return code, shown.out, shown.err

    def ask(self, *words: str) -> dict[str, list[dict[str, Any]]]:
        """Call the program for JSON."""
        code, out, err = self.run(*words, "--json")
        assert (code, err) == (0, "")
        found: dict[str, list[dict[str, Any]]] = json.loads(out)
        return found

    def sql(self, text: str, *values: object) -> list[tuple[Any, ...]]:
        with contextlib.closing(sqlite3.connect(self.store)) as db:
            rows = db.execute(text, values).fetchall()
            db.commit()
            return rows

    def put(self, delivery_id: str, state: DeliveryState, text: str | None = "words") -> None:
        """Put a row of the ledger into a state."""
        self.sql(
            """
            INSERT INTO deliveries (id, part, lane, address, state, text, error, created_at,
                ready_at, place)
            SELECT ?, 0, lane, address, ?, ?, 'as put', created_at, ready_at, 1
            FROM deliveries LIMIT 1
            """,
            delivery_id,
            state.value,
            text,
        )


def message(number: int, text: str) -> Inbound:
    return Inbound(f"native-{number}", CHAT, Sender("7", "Ann"), text, datetime.now(UTC), "m1")


def _calls() -> ops.KeptCalls:
    """Two requests, of which the second repeats the first."""
    kept = [
        ops.KeptCall(
            id=f"call_{number}",
            model="large",
            begun_at=NOW + number,
            ended_at=NOW + number + 0.5,
            outcome="completed",
            request_id=f"req_{number}",
            response_id=f"resp_{number}",
            pieces=pieces_of(sent),
        )
        for number, sent in enumerate(REQUESTS, 1)
    ]
    return ops.KeptCalls(tuple(kept), 5)


async def _way_of_one_message(store: Any) -> str:
    """Receive, admit, run with a tool, and owe two parts; one more event is refused."""
    received = await store.apply(ops.Receive(inbound=message(1, "hello \x1b[31m"), now=NOW))
    accepted = await store.apply(
        ops.Accept(
            event_id=received.event_id,
            conversation=ConversationKey("console", "", "700", "9", ""),
            profile="default",
            runtime="echo",
            rule="owners",
            namespace="echo",
            item="hello",
            adoption=ops.Adoption(
                turn_id="turn_1", delivery_id="msg_1", owner="me", lease_until=30.0, now=NOW + 1
            ),
            now=NOW + 1,
        )
    )
    lease = accepted.turn.lease
    for key, read_only in (("e1", False), ("e2", True)):
        await store.apply(
            ops.BeginTool(
                lease=lease,
                effect_key=key,
                call_key=f"c-{key}",
                tool=f"tool-{key}",
                read_only=read_only,
                now=NOW + 2,
            )
        )
    await store.apply(ops.KeepCalls(lease=lease, kept=_calls()))
    await store.apply(ops.EndTool(lease=lease, effect_key="e1", result="canary", now=NOW + 3))
    await store.apply(
        ops.Finish(
            lease=lease,
            state=TurnState.FAILED,
            failure=FailureKind.TOOL,
            detail="it broke",
            parts=(
                ops.Part(delivery_id="msg_1", number=0, text="hello back"),
                ops.Part(delivery_id="msg_2", number=1, text="and more"),
            ),
            usage=(Usage(2, 11, 7, "large", 3, 1),),
            now=NOW + 4,
        )
    )
    await store.apply(ops.BeginSend(delivery_id="msg_1", attempt=1))
    await store.apply(
        ops.EndSend(
            delivery_id="msg_1",
            state=DeliveryState.DELIVERED,
            native_id="77",
            shown="hello back",
            now=NOW + 5,
        )
    )
    refused = await store.apply(ops.Receive(inbound=message(2, "let me in"), now=NOW + 6))
    await store.apply(
        ops.Settle(event_id=refused.event_id, state=EventState.REFUSED, reason="nobody", rule="no")
    )
    return str(accepted.session_id)


@pytest.fixture
def deployment(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Deployment:
    (tmp_path / "dragoman.toml").write_text(MANIFEST)
    made = Deployment(tmp_path, capsys)

    async def fill() -> str:
        async with open_sqlite(made.store) as store:
            return await _way_of_one_message(store)

    made.session = anyio.run(fill)
    return made
