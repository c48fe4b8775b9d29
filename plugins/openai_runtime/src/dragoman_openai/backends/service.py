"""Histories that the model service keeps: its Conversations interface."""

from __future__ import annotations

from typing import TYPE_CHECKING

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

    return Backend("conversations", make, name=begin, opaque=False)
