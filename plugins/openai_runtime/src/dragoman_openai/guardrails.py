"""What input guardrails are given: what a turn is asked, not all that was ever said.

The SDK passes them the whole history. A guardrail that looks at all of it goes on refusing what it
refused once; and it would pay for the history in each turn, if a model does the judging.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from agents import Agent, GuardrailFunctionOutput, InputGuardrail, RunContextWrapper
from agents.util._types import MaybeAwaitable

from dragoman.runtimes import TurnContext
from dragoman_openai.history import is_user


def judging_what_is_new(guardrail: InputGuardrail[Any]) -> InputGuardrail[Any]:
    """Return a copy that is given the items of the turn's own messages only."""
    judge = guardrail.guardrail_function

    def judged(
        run: RunContextWrapper[Any], agent: Agent[Any], said: Any
    ) -> MaybeAwaitable[GuardrailFunctionOutput]:
        return judge(run, agent, _new(run.context, said))

    return dataclasses.replace(guardrail, guardrail_function=judged, name=guardrail.get_name())


def _new(turn: object, said: Any) -> Any:
    """Return the newest items that a person said, at most one for each message of the turn."""
    if not isinstance(turn, TurnContext) or not isinstance(said, list):
        return said
    told = [item for item in said if is_user(item)]
    return told[-len(turn.inputs) :] if turn.inputs else said[-1:]
