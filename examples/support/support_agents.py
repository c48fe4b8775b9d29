"""A support desk: one agent receives everybody, another one takes over what is about money.

The desk has a tool that only looks, a tool that changes something and asks a person first, a
handoff, and a guardrail that keeps card numbers from the model. The README beside this file says
how to run it.
"""

from __future__ import annotations

import re
from typing import Any

from agents import (
    Agent,
    GuardrailFunctionOutput,
    RunContextWrapper,
    function_tool,
    input_guardrail,
)

from dragoman_openai import TurnContext

ORDERS = {"1001": "sent on Monday", "1002": "waiting for payment"}
CARD = re.compile(r"(?:\d[ -]?){13,19}")


@function_tool(timeout=10)
async def order_status(run: RunContextWrapper[TurnContext], order: str) -> str:
    """Look up how far an order has come.

    Args:
        order: The order's number, digits only.
    """
    person = run.context.inputs[-1].sender.name or "somebody"
    status = ORDERS.get(order.strip())
    return f"Order {order} is {status}." if status else f"{person} has no order {order}."


@function_tool(timeout=10, needs_approval=True)
async def refund(run: RunContextWrapper[TurnContext], order: str) -> str:
    """Pay the money for an order back. A person is asked before this runs.

    Args:
        order: The order's number, digits only.
    """
    # A payment service that is given this key pays once, however often it is asked.
    key = run.context.effect_key
    return f"Order {order} is paid back, under reference {key[:8]}."


@input_guardrail
async def no_card_numbers(
    run: RunContextWrapper[TurnContext], agent: Agent[TurnContext], said: str | list[Any]
) -> GuardrailFunctionOutput:
    """Refuse a message with the number of a card in it, before any model has seen it."""
    items = [{"content": said}] if isinstance(said, str) else said
    found = any(CARD.search(str(item.get("content"))) for item in items)
    return GuardrailFunctionOutput(output_info=None, tripwire_triggered=found)


billing = Agent(
    name="billing",
    handoff_description="Answers questions about payments and invoices, and pays money back.",
    instructions="You answer questions about payments, briefly and politely.",
    tools=[order_status, refund],
    input_guardrails=[no_card_numbers],
)

triage = Agent(
    name="triage",
    instructions=(
        "You receive everybody who writes to the support desk. Answer questions about orders "
        "yourself; hand over to billing what is about payments."
    ),
    tools=[order_status],
    handoffs=[billing],
    input_guardrails=[no_card_numbers],
)
