"""What the gateway sees of the plugin before and around its runs."""

import json
import ssl
import subprocess
import sys

import anyio
import pytest

from dragoman import Component, EncodedInput, NetworkPolicy, RuntimeCapabilities, Sender, TurnInput

SCRIPT = """
import json, sys
import dragoman_openai
[component] = dragoman_openai.dragoman_runtimes()
vendors = {"agents", "openai", "httpx2", "pydantic", "mcp"}
print(json.dumps([component.name, component.backends, sorted(vendors & set(sys.modules))]))
"""


def test_registering_imports_no_vendor_and_names_its_backend():
    """Rules 3 and 4, invariant 13."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True, timeout=110
    )
    assert json.loads(done.stdout) == ["openai", ["asyncio"], []]


@pytest.mark.anyio
async def test_the_component_opens_and_closes_its_runtime(desk, host):
    """Rule 1: as the gateway does it; the client is closed with the component."""
    import dragoman_openai

    [component] = dragoman_openai.dragoman_runtimes()
    assert isinstance(component, Component)
    async with anyio.create_task_group() as tasks:
        host.task_group = tasks
        async with component.open(desk.config(), host) as runtime:
            assert runtime.capabilities == RuntimeCapabilities(
                stream=True,
                journal=True,
                approve=True,
                resume=True,
                steer=True,
                models=True,
                history=("openai", "openai.agent", "openai.continuation"),
            )
            client = runtime._models.main
            assert client.max_retries == 0
            assert not client.is_closed()
    assert client.is_closed()


@pytest.mark.anyio
async def test_a_message_becomes_the_item_of_a_person(desk):
    """C2: pure, and whatever was typed can be stored and sent; FC-CON-01: a late part says so."""
    from datetime import UTC, datetime

    def said(text, **more):
        return TurnInput(1, text, Sender("7", "Ann"), datetime(2026, 1, 1, tzinfo=UTC), **more)

    async with desk.open() as runtime:
        plain = runtime.encode_input(said('héllo "you"\n'))
        assert isinstance(plain, EncodedInput)
        assert plain.namespace == "openai"
        assert json.loads(plain.item) == {"role": "user", "content": 'héllo "you"\n'}
        torn = runtime.encode_input(said("\ud83d\ude00 \ud83d"))
        assert json.loads(torn.item)["content"] == "😀 \ufffd"
        torn.item.encode()
        mark, text = json.loads(runtime.encode_input(said("rest", late=True)).item)[
            "content"
        ].splitlines()
        assert mark.startswith("[This came too late")
        assert text == "rest"


def test_the_client_follows_the_network_policy(desk, tmp_path):
    """One policy for every transport: time-outs, proxy, further authorities."""
    from dragoman_openai.client import make_client

    config = desk.config(request_timeout=33.0)
    client = make_client(config, NetworkPolicy(connect_timeout=3.0, proxy="http://127.0.0.1:9"))
    assert (client.timeout.connect, client.timeout.read) == (3.0, 33.0)
    assert client.timeout.pool is not None
    missing = NetworkPolicy(ca_file=tmp_path / "missing.pem")
    with pytest.raises((FileNotFoundError, ssl.SSLError)):
        make_client(config, missing)


def test_tracing_is_off_unless_asked_for(desk):
    """Rule 2, invariant 12: and never carries text."""
    from dragoman_openai.client import run_config
    from dragoman_openai.models import make_models

    models = make_models(desk.config(), NetworkPolicy())
    assert run_config(desk.config(), models).tracing_disabled
    asked = run_config(desk.config(tracing=True), models)
    assert not asked.tracing_disabled
    assert not asked.trace_include_sensitive_data


@pytest.mark.parametrize(
    ("status", "wait", "code", "started", "repeats"),
    [
        (503, None, None, False, True),
        (429, 5.0, "rate_limit_exceeded", False, True),
        (429, 60.0, "rate_limit_exceeded", False, False),
        (429, None, "insufficient_quota", False, False),
        (400, None, None, False, False),
        (401, None, None, False, False),
        (503, None, None, True, False),
    ],
)
def test_only_passing_trouble_is_repeated_and_not_for_long(status, wait, code, started, repeats):
    """D13: nobody waits a minute in silence."""
    from types import SimpleNamespace

    from dragoman_openai.client import _may_repeat

    error = SimpleNamespace(
        status_code=status,
        retry_after=wait,
        error_code=code,
        is_network_error=False,
        is_timeout=False,
    )
    decision = _may_repeat(SimpleNamespace(normalized=error, response_started=started))
    assert decision.retry is repeats
    assert not repeats or decision.delay == wait
