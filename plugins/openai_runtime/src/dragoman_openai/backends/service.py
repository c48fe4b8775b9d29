"""Histories that the model service keeps: its Conversations interface."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dragoman_openai.backends.backend import Backend

if TYPE_CHECKING:
    from agents.memory import Session
    from openai import AsyncOpenAI


def conversations(client: AsyncOpenAI) -> Backend:
    """Return the back end over the runtime's own client.

    A conversation is begun by name before its first use: two first uses would begin two.
    """
    from agents.memory import OpenAIConversationsSession

    async def make(name: str) -> Session:
        return OpenAIConversationsSession(conversation_id=name, openai_client=client)

    async def begin(_: str) -> str:
        return (await client.conversations.create()).id

    return Backend("conversations", make, name=begin, opaque=False, given=_given, taken=_taken)


def _given(items: list[Any]) -> list[Any]:
    """Return items without what the service refuses: ids that are not its own, and the like.

    The SDK does so only for a session that it is given directly.
    """
    from agents.run_internal import session_persistence as sdk

    cleaned = [sdk._sanitize_openai_conversation_item(item) for item in items]  # noqa: SLF001
    return [
        item
        for item in cleaned
        if not sdk._is_unpersistable_for_openai_conversation(item)  # noqa: SLF001
    ]


def _taken(items: list[Any]) -> list[Any]:
    """Return items as a model may be sent them."""
    from agents.run_internal import session_persistence as sdk

    return sdk._sanitize_openai_conversation_history_items_for_model_input(  # noqa: SLF001
        items, set(range(len(items)))
    )
