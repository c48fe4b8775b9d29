"""What a request to a model is left with: the operator's own function, then the budget.

The SDK asks before each model call. What is stored is not touched: only what is sent gets shorter.
"""

from __future__ import annotations

import copy
import inspect
import logging
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

import attrs
from agents import FunctionTool, Handoff
from agents.run_config import CallModelData, ModelInputData
from anyio import to_thread

from dragoman import Clock, ManifestError
from dragoman.runtimes import ReferenceProblem, resolve
from dragoman_openai import budget, history
from dragoman_openai.budget import Counted, Counts, HistoryFacts, Window
from dragoman_openai.config import OpenAIConfig
from dragoman_openai.history import Item

if TYPE_CHECKING:
    from agents import Agent, ModelResponse

SECONDS: Final = 5.0
"""How long the operator's function may take."""


HistoryFunction: TypeAlias = Callable[
    [list[Item], HistoryFacts], "list[Item] | Awaitable[list[Item]]"
]
"""Returns the items to send. It may leave items out and shorten what tools have said."""


@attrs.frozen(kw_only=True)
class Trimming:
    """How the requests of a runtime are shortened, and what is known of their sizes."""

    window: Window | None = None
    function: HistoryFunction | None = None
    counts: Counts = attrs.field(factory=Counts)


def load(config: OpenAIConfig, table: str) -> Trimming:
    """Return what the table says of shortening; raises `dragoman.ManifestError`."""
    window = None
    if config.context_window is not None:
        reserve = config.history_reserve
        window = Window(
            config.context_window, config.context_window // 4 if reserve is None else reserve
        )
    return Trimming(window=window, function=_function(config.history, f"{table}.history"))


def _function(reference: str | None, key: str) -> HistoryFunction | None:
    if reference is None:
        return None
    try:
        found = resolve(reference)
    except ReferenceProblem as problem:
        raise ManifestError([f"{key}: {problem}"]) from problem
    if not callable(found) or isinstance(found, type):
        msg = f"{key}: {reference} is no function; name one that takes (items, facts)"
        raise ManifestError([msg])
    try:
        inspect.signature(found).bind([], None)
    except TypeError as error:
        msg = f"{key}: {reference} has to take two arguments, the items and the facts"
        raise ManifestError([msg]) from error
    return found


@attrs.define(eq=False, kw_only=True)
class Trim:
    """Shortens the requests of one turn: a ``call_model_input_filter`` of the SDK."""

    trimming: Trimming
    session_id: str
    profile: str
    clock: Clock
    log: logging.Logger
    _sent: dict[str, int] = attrs.field(factory=dict, init=False)

    @property
    def wanted(self) -> bool:
        """Whether there is anything to do."""
        return self.trimming.window is not None or self.trimming.function is not None

    async def __call__(self, data: CallModelData[Any]) -> ModelInputData:
        """Return what is sent instead; raises what `dragoman_openai.budget.fit` raises."""
        agent, instructions = data.agent, data.model_data.instructions
        items = cast("list[Item]", data.model_data.input)
        counted = self.trimming.counts.of((self.session_id, agent.name))
        around = budget.weigh(instructions) + _weight_of_tools(agent)
        if self.trimming.function is not None:
            items = await self._by_operator(items, agent.name, counted, around)
        if self.trimming.window is not None:
            fit = partial(budget.fit, items, around, counted, self.trimming.window)
            items, self._sent[agent.name] = await to_thread.run_sync(fit)
        return ModelInputData(input=cast("Any", items), instructions=instructions)

    def learn(self, agent: Agent[Any], response: ModelResponse) -> None:
        """Take the provider's count of the request that was sent last for an agent."""
        if (size := self._sent.pop(agent.name, None)) is not None:
            key = (self.session_id, agent.name)
            self.trimming.counts.learn(key, size, response.usage.input_tokens)

    async def _by_operator(
        self, items: list[Item], agent: str, counted: Counted, around: int
    ) -> list[Item]:
        """Return what the operator's function leaves; all of it where that cannot be used."""
        window = self.trimming.window
        facts = HistoryFacts(
            session_id=self.session_id,
            profile=self.profile,
            agent=agent,
            room=max(window.room - counted.tokens_of(around), 0) if window else None,
            counted=counted,
        )
        left, why = items, f"it took more than {SECONDS:g} s"
        with self.clock.move_on_after(SECONDS):
            left, why = await self._ask(items, facts)
        if why:
            self.log.warning(
                "session %s: what the history function returned is not used: %s",
                self.session_id,
                why,
            )
        return left

    async def _ask(self, items: list[Item], facts: HistoryFacts) -> tuple[list[Item], str]:
        """Return what is to be sent, and why that is not what the function returned."""
        try:
            left = await self._call(copy.deepcopy(items), facts)
        except Exception as error:  # noqa: BLE001 - the operator's own code may raise anything
            return items, f"it raised {type(error).__name__}"
        wrong = await to_thread.run_sync(problem, items, left)
        return (items, wrong) if wrong else (left, "")

    async def _call(self, items: list[Item], facts: HistoryFacts) -> list[Item]:
        function = self.trimming.function
        assert function is not None
        if inspect.iscoroutinefunction(function):
            return cast("list[Item]", await function(items, facts))
        return cast(
            "list[Item]",
            await to_thread.run_sync(function, items, facts, abandon_on_cancel=True),
        )


def problem(items: Sequence[Item], left: object) -> str:
    """Return why a function's result cannot be sent instead of ``items``; empty if it can."""
    if not isinstance(left, list) or not all(isinstance(item, dict) for item in left):
        return "it is no list of items"
    remaining = iter(items)
    if not all(any(_stands_for(item, known) for known in remaining) for item in left):
        return "it holds an item that was not there, was changed, or came in another place"
    if _halves(left) > _halves(items):
        return "a call, its output or the reasoning before it lacks the others"
    said = [item for item in history.last_turn(list(items)) if history.is_user(item)]
    if said and [item for item in left if history.is_user(item)][-len(said) :] != said:
        return "the newest message is missing"
    return ""


def _halves(items: Sequence[Item]) -> int:
    return len(items) - len(history.repair(items))


def _stands_for(item: Item, known: Item) -> bool:
    """Whether an item is one that was there, or an output that only got shorter."""
    if item == known:
        return True
    if not history.is_output(known) or item.keys() != known.keys():
        return False
    rest = all(item[key] == known[key] for key in known if key != "output")
    output = item["output"]
    return rest and isinstance(output, str) and len(output) < len(str(known["output"]))


def _weight_of_tools(agent: Agent[Any]) -> int:
    """Return the bytes of what a model is told of an agent's own tools and handoffs.

    What MCP servers and the model service add is not here: the provider's counts include it.
    """
    tools = [
        (tool.name, tool.description, tool.params_json_schema)
        for tool in agent.tools
        if isinstance(tool, FunctionTool)
    ]
    handoffs = [
        (each.tool_name, each.tool_description, each.input_json_schema)
        if isinstance(each, Handoff)
        else (Handoff.default_tool_name(each), Handoff.default_tool_description(each), {})
        for each in agent.handoffs
    ]
    return budget.weigh([tools, handoffs])
