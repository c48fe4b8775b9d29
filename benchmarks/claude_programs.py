"""What programs of the Claude Agent SDK cost in a gateway, beside the SDK alone; prints JSON.

PYTHONPATH=tests python benchmarks/claude_programs.py [--pairs 40] [--people 6] [--turns 12]

The real program, against a model server of the tests that answers at once. ``latency`` is the time
from a message to the first delta of its answer, in a live program: through a whole gateway (the
event is durable, a turn begins, its prompt is made) and through a client of the SDK alone with the
same options. One of each makes a pair, with the order turned every time: what else the machine does
meets both. ``people`` talk at once in room for half of them; what their programs use is read from
``smaps_rollup``, and the budget, the places and the starts at once are checked.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import statistics
import tempfile
import time
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient, InMemorySessionStore, StreamEvent

from dragoman_claude.home import Homes, bundled_program
from peers.claude_server import ClaudeServer
from plugins.claude_runtime.crowd import Crowd, Watch, counted_starts, crowd, question


@asynccontextmanager
async def alone(options: ClaudeAgentOptions, folder: Path) -> AsyncIterator[ClaudeSDKClient]:
    """Run a client of the SDK with a runtime's options, in a home of its own."""
    program = bundled_program()
    assert program is not None
    home = Homes(folder, program).home("alone")
    same = {"ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "CLAUDE_CODE_MAX_RETRIES"}
    wanted = {name: value for name, value in options.env.items() if name in same}
    options = dataclasses.replace(
        options,
        session_id=str(uuid.uuid4()),
        cli_path=str(home.cli),
        cwd=str(home.workspace),
        env=home.environment({"ENABLE_TOOL_SEARCH": "false", **wanted}),
        session_store=InMemorySessionStore(),
    )
    client = ClaudeSDKClient(options)
    await client.connect()
    try:
        yield client
    finally:
        await client.disconnect()
        await home.end(1)
        await home.remove()


async def ask_alone(client: ClaudeSDKClient, text: str) -> float:
    """Return the milliseconds to the first delta."""
    begun, first = time.perf_counter(), 0.0

    async def prompt() -> AsyncIterator[dict[str, Any]]:
        content = [{"type": "text", "text": text}]
        message = {"role": "user", "content": content}
        yield {"type": "user", "message": message, "parent_tool_use_id": None}

    await client.query(prompt())
    async for message in client.receive_response():
        if not first and isinstance(message, StreamEvent) and "text_delta" in str(message.event):
            first = time.perf_counter()
    return (first - begun) * 1000


async def ask_gateway(one: Crowd, number: int) -> float:
    """Return the milliseconds to the first delta."""
    begun = time.perf_counter()
    await one.ask(1, number, pause=0)
    await one.stage.until_final()
    return (one.claude.first_delta - begun) * 1000


async def latency(server: ClaudeServer, folder: Path, pairs: int) -> dict[str, Any]:
    """Compare the first delta of warm programs."""
    ours: list[float] = []
    theirs: list[float] = []
    async with crowd(server, turns=10_000) as one:
        began = time.perf_counter()
        await one.ask(1, 0, pause=0)
        cold = (one.claude.first_delta - began) * 1000
        async with alone(one.options, folder) as client:
            await ask_alone(client, question(1, 0))
            for number in range(1, pairs + 1):
                one.script(1, number, pause=0)
                for first in (number % 2 == 0, number % 2 == 1):
                    if first:
                        ours.append(await ask_gateway(one, number))
                    else:
                        theirs.append(await ask_alone(client, question(1, number)))
    added = [mine - other for mine, other in zip(ours, theirs, strict=True)]
    return {
        "pairs": pairs,
        "cold_ms": round(cold, 1),
        "gateway_p50_ms": round(statistics.median(ours), 1),
        "alone_p50_ms": round(statistics.median(theirs), 1),
        "added_p50_ms": round(statistics.median(added), 1),
        "added_best_ms": round(min(ours) - min(theirs), 1),
        "load": os.getloadavg()[0],
    }


async def many(server: ClaudeServer, people: int, turns: int) -> dict[str, Any]:
    """Let people talk at once, in room for half of them."""

    async def talk(person: int) -> None:
        for number in range(turns):
            await one.ask(person, number)

    places = max(1, people // 2)
    with counted_starts() as starts:
        async with crowd(server, memory=max(256, places * 200), starts=2) as one:
            watch, begun = Watch(one.stage.app.manifest.data_dir), time.perf_counter()
            with watch.watching():
                async with anyio.create_task_group() as tasks:
                    for person in range(people):
                        tasks.start_soon(talk, person)
            took = time.perf_counter() - begun
            for person in range(people):
                one.check(person, turns)
            programs, ending = one.pool.size, time.perf_counter()
            await one.pool.close()
            ending = time.perf_counter() - ending
    assert watch.programs <= places, f"{watch.programs} programs in room for {places}"
    assert watch.most <= places * 200, f"{watch.most} MB in room for {places}"
    assert max(starts) <= 2, f"{max(starts)} starts at once"
    assert len(starts) <= people * turns
    return {
        "people": people,
        "turns": people * turns,
        "seconds": round(took, 1),
        "starts": len(starts),
        "programs": watch.programs,
        "most_megabytes": watch.most,
        "megabytes_each": round(max(used / count for count, used in watch.samples if count)),
        "ending": {"programs": programs, "seconds": round(ending, 2)},
        "load": os.getloadavg()[0],
    }


async def measure(pairs: int, people: int, turns: int) -> None:
    """Measure all, and print each as it is known."""
    with ClaudeServer() as server, tempfile.TemporaryDirectory() as folder:
        found = await latency(server, Path(folder), pairs)
        print(json.dumps({"measured": "latency", **found}), flush=True)
        found = await many(server, people, turns)
        print(json.dumps({"measured": "many", **found}), flush=True)


def main() -> None:
    """Parse the arguments and measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=40)
    parser.add_argument("--people", type=int, default=6)
    parser.add_argument("--turns", type=int, default=12)
    args = parser.parse_args()
    anyio.run(measure, args.pairs, args.people, args.turns)


if __name__ == "__main__":
    main()
