"""Back ends whose servers cannot be installed here, against stand-ins that prove little."""

import json

import anyio
import pytest

from dragoman import FailureKind
from dragoman_openai.session_table import SessionTable
from peers.needs import need

pytestmark = pytest.mark.anyio
HELLO = ["say hello", "Hello from the model. Nice to meet you."]


async def test_d3_conversations_are_begun_once_and_told_each_item_once(desk, service, opened):
    """D3, unproven: the name is stored before its first use, and a retry adds nothing twice."""
    session = SessionTable(backend="conversations")
    async with opened(session=session) as runtime:
        await desk.again(runtime, "say hello", 0)
        await desk.again(runtime, "and again", 1)
        await desk.again(runtime, "and again", 1, attempt=2)
    names = [
        json.loads(item)["name"] for item in desk.host.records("openai.outside").generations[-1]
    ]
    assert list(service.conversations) == names
    assert [len(items) for items in service.conversations.values()] == [4, 4]


async def test_d3_dapr_keeps_a_history(desk):
    """D3, unproven: writes ask for strong consistency, and name what they have read."""
    need("dapr")
    from peers.dapr_sidecar import DaprSidecar

    with DaprSidecar() as sidecar, pytest.MonkeyPatch.context() as patch:
        from dapr.conf import settings

        patch.setattr(settings, "DAPR_HTTP_PORT", sidecar.health.port)
        session = SessionTable(
            backend="dapr", url=f"127.0.0.1:{sidecar.port}", store="statestore", ttl=3600
        )
        desk.watch_tasks = False
        async with desk.open(session=session) as runtime:
            await desk.again(runtime, "say hello", 0)
            await desk.again(runtime, "and again", 1)
        assert len(sidecar.state) == 2
        assert {option.consistency for option in sidecar.options} == {2}
    assert len(desk.model.inputs()[-1]) == 4


async def test_d3_mongodb_keeps_a_history(desk):
    """D3, unproven: one client for all turns, closed with the runtime."""
    need("pymongo")
    from peers.mongo_standin import MongoStandIn

    desk.watch_tasks = False
    with MongoStandIn() as server:
        session = SessionTable(backend="mongodb", url=server.url)
        async with desk.open(session=session) as runtime:
            await desk.again(runtime, "say hello", 0)
            await desk.again(runtime, "and again", 1)
            await desk.again(runtime, "and again", 1, attempt=2)
            assert 1 <= server.connections <= 4
        with anyio.fail_after(10):
            while server.connections:  # noqa: ASYNC110 - it rings no bell
                await anyio.sleep(0.01)
    said = [m["content"] for m in desk.model.inputs()[-1] if m["role"] != "system"]
    assert said == [*HELLO, "and again"]


async def test_d3_a_sidecar_that_is_not_there_holds_nobody_up(desk, monkeypatch):
    """D3: its library would wait for a minute, and hold the loop for it."""
    need("dapr")
    from dapr.conf import settings

    from dragoman_openai.backends import servers

    monkeypatch.setattr(settings, "DAPR_HTTP_PORT", 9)
    monkeypatch.setattr(servers, "CALL", 0.2)
    session = SessionTable(backend="dapr", url="127.0.0.1:9", store="x")
    async with desk.open(session=session) as runtime:
        with anyio.fail_after(20):
            end = (await desk.again(runtime, "say hello", 0))[-1]
    assert end.kind is FailureKind.TRANSPORT
