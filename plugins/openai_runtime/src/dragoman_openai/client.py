"""The HTTP client of a model server that all runs of a runtime share, and what all runs share."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, TypeAlias

import httpx2
from agents import (
    ModelProvider,
    ModelRetrySettings,
    ModelSettings,
    RunConfig,
    ToolExecutionConfig,
)
from agents.retry import RetryDecision, RetryPolicyContext
from openai import AsyncOpenAI

from dragoman import NetworkPolicy
from dragoman_openai import calls
from dragoman_openai.agent_tables import ModelTable
from dragoman_openai.config import OFFICIAL_SERVER, OpenAIConfig

_CONNECTIONS: Final = httpx2.Limits(
    max_connections=256, max_keepalive_connections=32, keepalive_expiry=30.0
)
_POOL_TIMEOUT: Final = 30.0
"""Seconds that a call waits for a free connection: as many turns run as there are connections."""

ResponseHook: TypeAlias = Callable[[httpx2.Response], Awaitable[None]]

_TRANSIENT: Final = frozenset({408, 429, 500, 502, 503, 504, 529})
_LONGEST_WAIT: Final = 20.0
"""Seconds. A service that asks for more is not waited for: the person is told instead."""


def make_client(
    config: OpenAIConfig,
    network: NetworkPolicy,
    on_response: Sequence[ResponseHook] = (),
    server: ModelTable | None = None,
) -> AsyncOpenAI:
    """Return a client without retries of its own: repeats are counted in one place."""
    where = config if server is None else server
    key = where.api_key
    timeout = httpx2.Timeout(
        config.request_timeout, connect=network.connect_timeout, pool=_POOL_TIMEOUT
    )
    context = httpx2.create_ssl_context()
    if network.ca_file is not None:
        context.load_verify_locations(network.ca_file)
    http = httpx2.AsyncClient(
        verify=context,
        proxy=network.proxy,
        timeout=timeout,
        limits=_CONNECTIONS,
        follow_redirects=True,
        event_hooks=calls.hooks(on_response),
    )
    return AsyncOpenAI(
        api_key=key.reveal() if key is not None else "none",
        base_url=where.base_url or OFFICIAL_SERVER,
        max_retries=0,
        timeout=timeout,
        http_client=http,
    )


def run_config(config: OpenAIConfig, models: ModelProvider, **changes: Any) -> RunConfig:
    """Return what all runs have in common; ``changes`` are one run's own settings."""
    return RunConfig(
        model_provider=calls.WatchedProvider(models),
        model_settings=ModelSettings(
            retry=ModelRetrySettings(max_retries=config.retries, policy=_may_repeat),
            include_usage=True,  # servers with chat completions tell it only if asked
        ),
        tracing_disabled=not config.tracing,
        trace_include_sensitive_data=False,
        tool_execution=ToolExecutionConfig(max_function_tool_concurrency=config.tool_concurrency),
        tool_not_found_behavior="return_error_to_model",
        **changes,
    )


def _may_repeat(call: RetryPolicyContext) -> RetryDecision:
    """Repeat what surely was a passing trouble, after the wait that the service asks for."""
    error = call.normalized
    wait = error.retry_after
    transient = error.status_code in _TRANSIENT or (
        error.status_code is None and (error.is_network_error or error.is_timeout)
    )
    if not transient or error.error_code == "insufficient_quota":
        return RetryDecision(retry=False)
    if call.response_started or (wait is not None and wait > _LONGEST_WAIT):
        return RetryDecision(retry=False)
    return RetryDecision(retry=True, delay=wait)
