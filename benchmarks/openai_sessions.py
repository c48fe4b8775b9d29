"""What our session costs the OpenAI Agents SDK, beside no session and the SDK's own; prints JSON.

python benchmarks/openai_sessions.py [--rounds 9] [--conversations 64]

The model answers at once and from memory, so that a run costs what the SDK and its session cost.
Ours is over a real store file, group commit and fencing included, and made anew for each run as a
turn does; the SDK's sessions are made once for each conversation, which is the best that they can
be. Every round runs all of them one after another, each time beginning with another one, and
ratios are taken within a round: what else the machine does meets all of them. Where a session of the
SDK gives up because its file is locked, that is counted, and its time stands. ``no_session`` is the
same work with the history given to the run as a list; ``nothing`` has no history at all.
``best_of_no_session`` compares the best rounds, which the machine has disturbed least.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import json
import os
import sqlite3
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any, Final

import anyio
import attrs
from agents import Agent, Model, ModelResponse, RunConfig, Runner, SQLiteSession, Usage
from agents.extensions.memory import AsyncSQLiteSession
from agents.memory import Session, SessionSettings
from openai.types.responses import (
    Response,
    ResponseCompletedEvent,
    ResponseOutputMessage,
    ResponseOutputText,
    ResponseTextDeltaEvent,
)

from dragoman import SystemClock
from dragoman.flow.turnhost import FencedRecords
from dragoman.store.operations import TurnGrant
from dragoman.store.sqlite import SqliteStore, open_sqlite
from dragoman.testing.store import Scene
from dragoman_openai.config import OpenAIConfig
from dragoman_openai.history import Limits
from dragoman_openai.session import NAMESPACE, RecordsSession
from dragoman_openai.writes import Writes

QUIET: Final = RunConfig(tracing_disabled=True)
SHORT: Final = 20
"""Items of the history that a model is sent when many talk at once."""
WINDOW: Final = attrs.fields_dict(OpenAIConfig)["history_items"].default
DELTAS: Final = 20
ANSWER: Final = "hello " * DELTAS
PERSON: Final = {"role": "user", "content": "hi"}


class InstantModel(Model):
    """Streams the same answer at once."""

    async def get_response(self, *_: Any, **__: Any) -> ModelResponse:
        """Answer in one piece."""
        return ModelResponse(output=[_message()], usage=Usage(requests=1), response_id="resp")

    async def stream_response(self, *_: Any, **__: Any) -> AsyncIterator[Any]:  # type: ignore[override]
        """Answer in pieces."""
        answer = _message()
        for number in range(DELTAS):
            yield ResponseTextDeltaEvent(
                type="response.output_text.delta",
                content_index=0,
                item_id=answer.id,
                output_index=0,
                delta="hello ",
                sequence_number=number,
                logprobs=[],
            )
        response = Response(
            id="resp",
            created_at=0,
            model="instant",
            object="response",
            output=[answer],
            tool_choice="auto",
            tools=[],
            parallel_tool_calls=True,
        )
        yield ResponseCompletedEvent(
            type="response.completed", sequence_number=DELTAS, response=response
        )


def _message() -> ResponseOutputMessage:
    text = ResponseOutputText(type="output_text", text=ANSWER, annotations=[])
    return ResponseOutputMessage(
        id=f"msg_{os.urandom(12).hex()}",
        type="message",
        role="assistant",
        status="completed",
        content=[text],
    )


AGENT: Final = Agent(name="agent", model=InstantModel())


async def run(given: str | list[Any], session: Session | None = None) -> None:
    """One streamed run, to its end."""
    result = Runner.run_streamed(AGENT, given, session=session, run_config=QUIET)
    async for _ in result.stream_events():
        pass


@attrs.define(eq=False)
class Ours:
    """Turns that run in sessions of a store, one session for each conversation."""

    store: SqliteStore
    grants: list[TurnGrant]

    def records(self, number: int) -> FencedRecords:
        """Return what a turn's host has for the session's items."""
        return FencedRecords(self.store, self.grants[number].lease, NAMESPACE)

    async def talk(self, number: int, items: int = SHORT) -> None:
        """One run over a conversation's session, as a turn does it.

        What the person says is among the records before the run begins, which is core's work and
        counted here.
        """
        records = self.records(number)
        await records.append([json.dumps(PERSON)])
        async with anyio.create_task_group() as tasks:
            writes = Writes(tasks, SystemClock())
            await run([], RecordsSession(str(number), records, Limits(items), writes))


@contextlib.asynccontextmanager
async def ours(folder: Path, conversations: int) -> AsyncIterator[Ours]:
    """Open a store with a running turn for each conversation."""
    async with open_sqlite(folder / "ours.db") as store:
        scene = Scene(store)
        yield Ours(store, [await scene.running(channel=str(each)) for each in range(conversations)])


@attrs.define(eq=False)
class Theirs:
    """One of the SDK's sessions for each conversation, and how often they found their file locked."""

    sessions: list[Any]
    locked: int = 0

    async def talk(self, number: int) -> None:
        """One run over a conversation's session."""
        try:
            await run("hi", self.sessions[number])
        except sqlite3.OperationalError:
            self.locked += 1


@contextlib.asynccontextmanager
async def theirs(make: Callable[..., Any], path: Path, conversations: int) -> AsyncIterator[Theirs]:
    """Make one of the SDK's sessions for each conversation; all share a file."""
    settings = SessionSettings(limit=SHORT)
    sessions = [make(f"s{each}", path, session_settings=settings) for each in range(conversations)]
    yield Theirs(sessions)
    for session in sessions:
        closing = session.close()
        if closing is not None:
            await closing


async def at_once(talk: Callable[[int], Any], conversations: int) -> float:
    """Let all conversations run once, all at the same time; return runs a second."""
    gc.collect()
    begun = time.perf_counter()
    await asyncio.gather(*(talk(number) for number in range(conversations)))
    return conversations / (time.perf_counter() - begun)


def descriptors() -> int:
    """Return how many files this process has open."""
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def turned(names: list[str], rounds: int) -> Iterator[list[str]]:
    """Yield the order of each round."""
    for number in range(rounds):
        first = number % len(names)
        yield names[first:] + names[:first]


def paired(one: list[float], other: list[float]) -> float:
    """Return the median of how many times ``other`` ``one`` is, round by round."""
    return statistics.median(a / b for a, b in zip(one, other, strict=True))


async def many_at_once(folder: Path, conversations: int, rounds: int) -> dict[str, Any]:
    """Compare sessions when many conversations run at once."""
    async with (
        ours(folder, conversations) as mine,
        theirs(SQLiteSession, folder / "sqlite.db", conversations) as sqlite,
        theirs(AsyncSQLiteSession, folder / "async.db", conversations) as asynchronous,
    ):
        same = [json.loads(item) for item in past(SHORT - 1, ANSWER)]
        talks: dict[str, Callable[[int], Any]] = {
            "nothing": lambda _: run("hi"),
            "no_session": lambda _: run([*same, PERSON]),
            "dragoman": mine.talk,
            "sqlite": sqlite.talk,
            "async_sqlite": asynchronous.talk,
        }
        rates: dict[str, list[float]] = {name: [] for name in talks}
        opened = dict.fromkeys(talks, 0)
        commits = 0
        for name, talk in talks.items():
            for _ in range(2 if name == "async_sqlite" else SHORT // 2):
                await at_once(talk, conversations)
        for order in turned(list(talks), rounds):
            for name in order:
                before, written = descriptors(), mine.store.commits
                rates[name].append(await at_once(talks[name], conversations))
                opened[name] += descriptors() - before
                commits += mine.store.commits - written
    return {
        "conversations": conversations,
        "runs_per_s": {name: round(statistics.median(found), 1) for name, found in rates.items()},
        "of_no_session": round(paired(rates["dragoman"], rates["no_session"]), 3),
        "best_of_no_session": round(max(rates["dragoman"]) / max(rates["no_session"]), 3),
        "of_nothing": round(paired(rates["dragoman"], rates["nothing"]), 3),
        "of_sqlite": round(paired(rates["dragoman"], rates["sqlite"]), 2),
        "of_async_sqlite": round(paired(rates["dragoman"], rates["async_sqlite"]), 1),
        "found_locked": {"sqlite": sqlite.locked, "async_sqlite": asynchronous.locked},
        "descriptors_opened": opened,
        "commits_per_run": round(commits / (rounds * conversations), 3),
    }


def past(items: int, answer: str) -> list[str]:
    """Return that many items in turns, the last one the assistant's."""
    return [
        json.dumps(
            PERSON
            if (items - number) % 2 == 0
            else {
                "type": "message",
                "role": "assistant",
                "id": f"msg_{number}",
                "status": "completed",
                "content": [{"type": "output_text", "text": answer, "annotations": []}],
            }
        )
        for number in range(items)
    ]


async def long_history(folder: Path, rounds: int, runs: int = 8) -> dict[str, Any]:
    """Compare a long history with a short one, with the window that a manifest has by default.

    Times are the process's own, its threads' included: one run after the other waits for nobody.
    """
    sizes = (100, 10_000)
    times: dict[str, list[float]] = {str(size): [] for size in sizes}
    async with ours(folder, len(sizes)) as mine:
        for order in turned(list(times), rounds):
            for name in order:
                number = sizes.index(int(name))
                records = mine.records(number)
                await records.new_generation(past(int(name) - runs, ANSWER))  # its mean is the size
                await mine.talk(number, WINDOW)
                gc.collect()
                begun = time.process_time()
                for _ in range(runs):
                    await mine.talk(number, WINDOW)
                times[name].append((time.process_time() - begun) / runs)
    short, long = (times[str(size)] for size in sizes)
    return {
        "items": sizes,
        "window": WINDOW,
        "cpu_ms_per_run": {
            name: round(1000 * statistics.median(all_), 2) for name, all_ in times.items()
        },
        "of_short": round(paired(long, short), 3),
    }


async def measure(conversations: int, rounds: int) -> None:
    """Measure all, and print each as it is known."""
    with tempfile.TemporaryDirectory() as folder:
        found = await many_at_once(Path(folder), conversations, rounds)
        print(json.dumps({"measured": "many at once", **found}), flush=True)
    with tempfile.TemporaryDirectory() as folder:
        found = await long_history(Path(folder), rounds)
        print(json.dumps({"measured": "long history", **found}), flush=True)


def main() -> None:
    """Parse the arguments and measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--conversations", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=9)
    args = parser.parse_args()
    anyio.run(measure, args.conversations, args.rounds)


if __name__ == "__main__":
    main()
