"""The SDK by itself: a session that keeps a log, models that follow a script, runs in both ways."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, Literal

import anyio
import anyio.lowlevel
import attrs
from agents import Agent, ModelSettings, ModelTracing, RunConfig, RunHooks, Runner
from agents.memory import SessionSettings
from agents.testing import ModelStep, ScriptedModel, assistant_message, function_call

QUIET = RunConfig(tracing_disabled=True)
Mode = Literal["run", "streamed"]
_SHORT = {"function_call": "call", "function_call_output": "out"}


def brief(items: Sequence[Any]) -> list[str]:
    """Return items in one word each."""
    return [
        str(item.get("role") or _SHORT.get(item["type"], item["type"])) for item in map(dict, items)
    ]


class Recorded:
    """A session over a list. ``log`` has what was done, and what hooks have put beside it."""

    session_id = "s"

    def __init__(self, *items: Any, limit: int | None = None, fails_at: int = 0) -> None:
        self.items: list[Any] = list(items)
        self.log: list[Any] = []
        self.session_settings: SessionSettings | None = (
            SessionSettings(limit=limit) if limit else None
        )
        self._fails_at = fails_at

    async def get_items(self, limit: int | None = None) -> list[Any]:
        await anyio.lowlevel.checkpoint()  # as every store that is none but a list
        limit = limit or (self.session_settings.limit if self.session_settings else None)
        return list(self.items[-limit:] if limit else self.items)

    async def add_items(self, items: list[Any]) -> None:
        writes = sum(isinstance(entry, list) for entry in self.log) + 1
        self.log.append(brief(items))
        if writes == self._fails_at:
            raise OSError("disk full")
        self.items += items

    async def pop_item(self) -> Any:
        self.log.append("pop")
        return self.items.pop()

    async def clear_session(self) -> None:
        self.log.append("clear")

    @property
    def kept(self) -> list[str]:
        return brief(self.items)


class Told(RunHooks[Any]):
    """Writes the model's calls into a session's log."""

    def __init__(self, session: Recorded) -> None:
        self._log = session.log

    async def on_llm_start(self, *_: Any) -> None:
        self._log.append("model")

    async def on_llm_end(self, *_: Any) -> None:
        self._log.append("answer")


@attrs.define
class Ended:
    """How a run ended."""

    raised: BaseException | None = None
    result: Any = None

    @property
    def output(self) -> Any:
        return self.result.final_output if self.result is not None else None


def said(text: str = "Hello.") -> list[Any]:
    """One model answer of text."""
    return [assistant_message(text)]


def calls(tool: str, call_id: str = "c1", text: str = "") -> list[Any]:
    """One model answer that calls a tool, with words before it where given."""
    words = [assistant_message(text)] if text else []
    return [*words, function_call(tool, {}, call_id=call_id)]


def scripted(*answers: Any) -> ScriptedModel:
    """A model that gives these answers."""
    return ScriptedModel(answers)


async def run(
    mode: Mode,
    agent: Agent[Any],
    given: Any,
    session: Recorded,
    *,
    at: Callable[[Any, Any], None] | None = None,
    **more: Any,
) -> Ended:
    """Run to the end, in one of the two ways; ``at(result, event)`` is told each event."""
    more.setdefault("run_config", QUIET)
    ended = Ended()
    try:
        if mode == "run":
            ended.result = await Runner.run(agent, given, session=session, **more)
        else:
            ended.result = Runner.run_streamed(agent, given, session=session, **more)
            async for event in ended.result.stream_events():
                if at is not None:
                    at(ended.result, event)
    except Exception as error:
        ended.raised = error
    return ended


def in_pieces(
    output: Sequence[Any], gate: anyio.Event | None = None, error: Exception | None = None
) -> ModelStep:
    """Return an answer that stops within its text: for ``gate``, by ``error``, or for good."""

    async def stream(_: Any) -> AsyncIterator[Any]:
        for event in await _events(output):
            yield event
            if event.type == "response.output_text.delta":
                if error is not None:
                    raise error
                await (gate or anyio.Event()).wait()

    return ModelStep.stream(stream)


async def _events(output: Sequence[Any]) -> list[Any]:
    stream = ScriptedModel([output]).stream_response(
        None,
        "",
        ModelSettings(),
        [],
        None,
        [],
        ModelTracing.DISABLED,
        previous_response_id=None,
        conversation_id=None,
        prompt=None,
    )
    return [event async for event in stream]
