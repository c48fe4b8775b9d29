"""Which model server a model's name belongs to."""

from __future__ import annotations

import importlib
import importlib.util
import os
from collections.abc import Mapping, Sequence
from typing import Any, Final

import attrs
from agents import Model, ModelProvider, OpenAIProvider
from openai import AsyncOpenAI

from dragoman import NetworkPolicy
from dragoman_openai.agent_tables import ModelTable
from dragoman_openai.client import ResponseHook, make_client
from dragoman_openai.config import LITELLM, OpenAIConfig

MISSING: Final = 'LiteLLM is missing; pip install "dragoman-openai[litellm]"'


@attrs.define(eq=False)
class Models(ModelProvider):
    """All model servers of a runtime.

    ``main`` is that of the table itself. A name that begins with that of a ``models`` table and a
    slash belongs to it, one that begins with ``litellm/`` to LiteLLM; every other slash is part of
    the model's name.
    """

    main: AsyncOpenAI
    _provider: ModelProvider
    _others: Mapping[str, ModelProvider]
    _clients: tuple[AsyncOpenAI, ...]

    def get_model(self, model_name: str | None) -> Model:
        """Return the model of a name, or the SDK's default."""
        server, slash, name = (model_name or "").partition("/")
        if slash and server in self._others:
            return self._others[server].get_model(name)
        return self._provider.get_model(model_name)

    async def aclose(self) -> None:
        """Close all connections."""
        for client in self._clients:
            await client.close()


def needs_litellm(config: OpenAIConfig, model: str) -> bool:
    """Whether LiteLLM calls a model of this name."""
    server, slash, _ = model.partition("/")
    table = config.models.get(server)
    return bool(slash) and (server == LITELLM or (table is not None and table.api == LITELLM))


def make_models(
    config: OpenAIConfig, network: NetworkPolicy, on_response: Sequence[ResponseHook] = ()
) -> Models:
    """Return the model servers of a table, without touching the network."""
    main = make_client(config, network, on_response)
    clients = [main]
    others: dict[str, ModelProvider] = {LITELLM: LiteLLM(config)}
    for name, table in config.models.items():
        if table.api == LITELLM:
            others[name] = LiteLLM(config, table)
            continue
        client = make_client(config, network, on_response, table)
        clients.append(client)
        others[name] = OpenAIProvider(openai_client=client, use_responses=table.api != "chat")
    own = OpenAIProvider(openai_client=main, use_responses=config.api != "chat")
    return Models(main, own, others, tuple(clients))


@attrs.define(eq=False)
class LiteLLM(ModelProvider):
    """The model servers that LiteLLM knows. Its own import takes seconds: `load_litellm` first."""

    _config: OpenAIConfig
    _table: ModelTable = attrs.field(factory=lambda: ModelTable(api=LITELLM))

    def get_model(self, model_name: str | None) -> Model:
        """Return the model that LiteLLM knows by this name."""
        from agents.extensions.models.litellm_model import LitellmModel

        key = self._table.api_key
        return LitellmModel(
            model_name or "",
            base_url=self._table.base_url,
            api_key=None if key is None else key.reveal(),
        )


def load_litellm(config: OpenAIConfig) -> None:
    """Import LiteLLM, which takes seconds and megabytes: in a worker thread, before it is used.

    Raises `ImportError` where it is missing. It would fetch a list of prices and print advice.
    """
    if importlib.util.find_spec(LITELLM) is None:
        raise ImportError(MISSING)
    if config.litellm_prices == "local":
        os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    litellm: Any = importlib.import_module(LITELLM)
    litellm.telemetry = False
    litellm.suppress_debug_info = True
    litellm.request_timeout = config.request_timeout
    importlib.import_module("agents.extensions.models.litellm_model")
