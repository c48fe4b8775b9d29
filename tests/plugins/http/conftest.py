"""A gateway with the HTTP extension, and a client that talks to it over loopback."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import attrs
import httpx2
import pytest
from prometheus_client.parser import text_string_to_metric_families

import dragoman_http
from dragoman import Component, Host, hookimpl
from dragoman.manifest.model import ComponentTable
from dragoman.testing import StubPlugin
from dragoman_http.config import HttpConfig
from dragoman_http.listener import Listener
from stage import Stage, gateway, table


@attrs.define(eq=False)
class HttpPlugin(StubPlugin):
    """The stub, which also registers the real HTTP extension and keeps what it opened."""

    listeners: list[Listener] = attrs.field(factory=list)
    offers: dict[str, Sequence[tuple[str, Any]]] = attrs.field(factory=dict)
    """What the stub extension of an id mounts when it is opened."""

    @hookimpl
    def dragoman_extensions(self) -> Iterable[Component[Any, object]]:
        (stub,) = StubPlugin.dragoman_extensions(self)

        @asynccontextmanager
        async def guest(config: Any, host: Host) -> AsyncIterator[object]:
            for path, app in self.offers.get(host.id, ()):
                host.mount(path, app)
            async with stub.open(config, host) as opened:
                yield opened

        yield attrs.evolve(stub, open=guest)
        (real,) = dragoman_http.dragoman_extensions()

        @asynccontextmanager
        async def opened(config: HttpConfig, host: Host) -> AsyncIterator[object]:
            async with real.open(config, host) as listener:
                assert isinstance(listener, Listener)
                self.listeners.append(listener)
                yield listener

        yield attrs.evolve(real, open=opened)


def http(port: int = 0, bind: str = "127.0.0.1") -> ComponentTable:
    """The table of a listener on a free port."""
    config = HttpConfig(port=port, bind=bind)
    return ComponentTable(kind="extensions", id="http", plugin="stub:http", config=config)


@attrs.define(eq=False)
class Site:
    """A running gateway and a client of its listener."""

    stage: Stage
    plugin: HttpPlugin
    web: httpx2.AsyncClient

    async def metrics(self) -> dict[tuple[str, ...], float]:
        """Every sample of the metrics page: its name and label values, sorted by label."""
        page = await self.web.get("/metrics")
        assert page.status_code == 200
        assert page.headers["content-type"].startswith("text/plain")
        return {
            (one.name, *(value for _, value in sorted(one.labels.items()))): one.value
            for family in text_string_to_metric_families(page.text)
            for one in family.samples
        }


@asynccontextmanager
async def serving(
    plugin: HttpPlugin | None = None,
    components: Sequence[ComponentTable] = (),
    *,
    listener: ComponentTable | None = None,
    **rest: Any,
) -> AsyncIterator[Site]:
    """Run a gateway with a listener beside one stub platform, unless told otherwise."""
    plugin = plugin or HttpPlugin()
    components = [*components, listener or http()]
    if not any(one.kind == "platforms" for one in components):
        components.append(table("platforms", "stub"))
    async with (
        gateway(plugin, components=components, **rest) as stage,
        httpx2.AsyncClient(base_url=url(plugin), trust_env=False) as web,
    ):
        yield Site(stage, plugin, web)


def url(plugin: HttpPlugin) -> str:
    """Where the listener is reached from this machine."""
    return plugin.listeners[0].url.replace("0.0.0.0", "127.0.0.1")


@pytest.fixture
def http_table() -> Any:
    return http


@pytest.fixture
def site_plugin() -> Any:
    return HttpPlugin


@pytest.fixture
def site() -> Any:
    """Open one with ``async with site(…) as open_site``."""
    return serving
