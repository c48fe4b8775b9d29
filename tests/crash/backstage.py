"""Programs that many trials share: started when first asked for, ended together."""

from __future__ import annotations

import threading
from contextlib import ExitStack
from types import TracebackType
from typing import Final, Self
from urllib.parse import urlsplit

from crash.scene import Said, words
from peers.aimock import AiMock

LOOK: Final = "Let me see."
DELETED: Final = f"It is deleted. {words('dot', 12)}"
WRITTEN: Final = f"It is written. {words('eve', 12)}"
FORECAST: Final = f"It is 21 degrees in Paris. {words('ann', 24)}"

FIXTURES: Final = (
    {
        "match": {"userMessage": "weather", "hasToolResult": False},
        "response": {
            "content": "Let me look.",
            "toolCalls": [{"name": "get_weather", "arguments": {"city": "Paris"}}],
        },
    },
    {
        "match": {"userMessage": "weather", "hasToolResult": True},
        "response": {"content": FORECAST},
        "streamingProfile": {"ttft": 50, "tps": 45, "jitter": 0},
    },
    {
        "match": {"userMessage": "delete", "hasToolResult": False},
        "response": {
            "content": LOOK,
            "toolCalls": [{"name": "delete", "arguments": {"path": "tmp"}}],
        },
    },
    {
        "match": {"userMessage": "delete", "hasToolResult": True},
        "response": {"content": DELETED},
        "streamingProfile": {"ttft": 50, "tps": 45, "jitter": 0},
    },
    {
        "match": {"userMessage": "write", "hasToolResult": False},
        "response": {
            "content": LOOK,
            "toolCalls": [{"name": "note", "arguments": {"text": "milk"}}],
        },
    },
    {
        "match": {"userMessage": "write", "hasToolResult": True},
        "response": {"content": WRITTEN},
        "streamingProfile": {"ttft": 50, "tps": 45, "jitter": 0},
    },
    {"match": {"userMessage": "bis"}, "response": {"content": "Quickly."}},
    {"match": {"userMessage": "dee"}, "response": {"content": "As before."}},
    {"match": {"userMessage": "cyd"}, "response": {"content": "Hello from the model."}},
)
"""What the model says: results of tools streamed, and short answers."""


def model_conversation(first: str, second: str) -> tuple[Said, ...]:
    """Return what people say to the model, and what it answers."""
    return (
        Said(first, "what is the weather", f"Let me look.\n\n{FORECAST}"),
        Said(first, "bis", "Quickly."),
        Said(second, "cyd", "Hello from the model."),
    )


class Backstage:
    """What is shared, for the length of a ``with`` block."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._lock = threading.Lock()
        self._model: AiMock | None = None

    def model(self) -> str:
        """Return the model server's ``host:port``."""
        with self._lock:
            if self._model is None:
                self._model = self._stack.enter_context(AiMock(FIXTURES, chunk_size=24))
            return urlsplit(self._model.base_url).netloc

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()
