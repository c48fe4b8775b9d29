"""What the real program has said in the scenes: see recorder.py."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from claude_agent_sdk import Message
from claude_agent_sdk._internal.message_parser import parse_message

from dragoman.testing.runtime_grammar import Grammar
from dragoman_claude.results import end_of
from dragoman_claude.stream import Translator
from plugins.claude_runtime.scenes import identity

RECORDED: Final = Path(__file__).parent / "recorded"


def raw(scene: str) -> list[dict[str, Any]]:
    """Return what the program said, as it said it."""
    return [json.loads(line) for line in (RECORDED / f"{scene}.jsonl").read_text().splitlines()]


def messages(scene: str) -> list[Message]:
    """Return what the SDK makes of it."""
    parsed = (parse_message(one) for one in raw(scene) if one["type"] != "raised")
    return [one for one in parsed if one is not None]


class Played:
    """A scene, translated for one of its prompts."""

    def __init__(self, scene: str, number: int | None = 1, *, skip: int = 0, **how: Any) -> None:
        self.translator = Translator(None if number is None else identity(number), **how)
        self.events = [
            event
            for message in messages(scene)[skip:]
            for event in self.translator.translate(message)
        ]
        self.grammar = Grammar()
        for event in self.events:
            self.grammar.feed(event)

    @property
    def end(self) -> object:
        """How the turn has ended."""
        assert self.translator.result is not None
        return end_of(self.translator.result, error=self.translator.error)

    @property
    def texts(self) -> list[str]:
        """The blocks of the answer that hold text."""
        return [text for text in self.grammar.texts.values() if text]

    def of(self, kind: type) -> list[Any]:
        """Return the events of one kind."""
        return [event for event in self.events if isinstance(event, kind)]
