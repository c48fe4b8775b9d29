"""The runtime's contract, over the real SDK and HTTP, with a model server of the tests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import attrs
import pytest

from dragoman import Component, Secret
from dragoman.testing.runtime_suite import (
    Act,
    Count,
    Fail,
    Hold,
    Line,
    RuntimeSuite,
    Say,
    Step,
    Think,
)
from dragoman_openai import OpenAIConfig, dragoman_runtimes
from peers.model_server import ModelServer, events
from peers.scripted_model import Page

KEY = "sk-contract-key"
NOWHERE = "http://127.0.0.1:9/v1"


@attrs.define(eq=False)
class OpenAIHarness:
    """An agent with one tool, and the model server behind it."""

    server: ModelServer
    page: Page
    secrets: tuple[str, ...] = (KEY,)
    cannot: dict[str, str] = attrs.field(factory=dict)

    @property
    def component(self) -> Component[Any, Any]:
        [found] = dragoman_runtimes()
        return found

    def config(self, *, reachable: bool = True, hasty: bool = False) -> OpenAIConfig:
        return OpenAIConfig(
            agent="contract_agents:assistant",
            api_key=Secret("a test", KEY),
            base_url=self.server.base_url if reachable else NOWHERE,
            retries=0,
            request_timeout=0.3 if hasty else 60.0,
        )

    def script(self, said: str, *steps: Step) -> None:
        self.page.book.add(said, steps)

    async def release(self) -> None:
        self.page.released.set()

    async def asked(self) -> Sequence[Sequence[Line]]:
        return list(self.page.asked)

    async def models(self) -> Sequence[str]:
        return [body["model"] for body in self.page.bodies]

    async def effects(self) -> Sequence[str]:
        return list(self.page.effects)

    async def busy(self) -> int:
        return self.page.busy


@pytest.fixture(scope="module")
def scripted_server() -> Iterator[ModelServer]:
    with ModelServer() as server:
        yield server


class TestOpenAIRuntime(RuntimeSuite):
    @pytest.fixture
    def harness(self, scripted_server: ModelServer, empty_home: None) -> OpenAIHarness:
        import contract_agents

        page = scripted_server.begin()
        contract_agents.PAGES.append(page)
        return OpenAIHarness(scripted_server, page)


def test_what_the_server_sends_is_what_the_clients_models_say():
    from openai.types.responses import ResponseStreamEvent
    from pydantic import TypeAdapter

    known = TypeAdapter(ResponseStreamEvent)
    steps = (Think("Hm."), Count(3, 4), Say(("one ", "two")), Hold(), Act("this"), Act("that"))
    sent = [event for event in events(steps) if isinstance(event, dict)]
    for event in sent:
        read = known.validate_python(event, strict=True)
        assert read.type == event["type"]
        unknown = set(event) - set(type(read).model_fields)
        assert not unknown, (event["type"], unknown)
    assert len(sent) > 20
    assert [one for one in events((Fail("transport", "no"),)) if isinstance(one, Fail)]
