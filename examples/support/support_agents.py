"""A support desk: one agent receives everybody, another one takes over what is about money.

Run it with the manifest beside this file: ``dragoman run --manifest examples/support/dragoman.toml``.
"""

from __future__ import annotations

from agents import Agent, RunContextWrapper, function_tool

from dragoman_openai import TurnContext

ORDERS = {"1001": "sent on Monday", "1002": "waiting for payment"}


@function_tool(timeout=10)
async def order_status(run: RunContextWrapper[TurnContext], order: str) -> str:
    """Look up how far an order has come.

    Args:
        order: The order's number, digits only.
    """
    person = run.context.inputs[-1].sender.name or "somebody"
    status = ORDERS.get(order.strip())
    return f"Order {order} is {status}." if status else f"{person} has no order {order}."


billing = Agent(
    name="billing",
    handoff_description="Answers questions about payments and invoices.",
    instructions="You answer questions about payments, briefly and politely.",
    tools=[order_status],
)

triage = Agent(
    name="triage",
    instructions=(
        "You receive everybody who writes to the support desk. Answer questions about orders "
        "yourself; hand over to billing what is about payments."
    ),
    tools=[order_status],
    handoffs=[billing],
)
