"""Agents whose tools end when a test says so, and say what became of them."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import anyio
from agents import Agent, function_tool

LOG: list[str] = []
GO: dict[str, anyio.Event] = {}
"""What each async tool waits for, and the instructions of later calls."""
LET_GO = threading.Event()
"""What the plain function waits for."""


async def work(name: str) -> str:
    LOG.append(f"{name} begins")
    try:
        await GO[name].wait()
    except asyncio.CancelledError:
        LOG.append(f"{name} is cancelled")
        raise
    LOG.append(f"{name} ends")
    return f"{name}: 42"


@function_tool
async def measure() -> str:
    """Measure."""
    return await work("measure")


@function_tool
async def weigh() -> str:
    """Weigh."""
    return await work("weigh")


@function_tool(needs_approval=True)
async def measure_carefully() -> str:
    """Measure, if a person agrees."""
    return await work("measure")


@function_tool
def hold() -> str:
    """Work in a thread."""
    LOG.append("hold begins")
    LET_GO.wait(60)
    LOG.append("hold ends")
    return "hold: 42"


async def thoughtful(run: Any, agent: Agent[Any]) -> str:
    """Instructions that take their time behind a tool."""
    if LOG:
        LOG.append("thinks")
        await GO["think"].wait()
    return "Work."


worker = Agent(name="worker", instructions="Work.", tools=[measure, weigh, hold])
careful = Agent(name="careful", instructions="Ask.", tools=[measure_carefully])
thinking = Agent(name="thinking", instructions=thoughtful, tools=[measure])
foreman = Agent(
    name="foreman",
    instructions="Let others work.",
    tools=[worker.as_tool(tool_name="ask_worker", tool_description="Ask the worker.")],
)
