"""What other components mount: served below its path, and nobody else's trouble."""

import logging
from contextlib import asynccontextmanager

import anyio
import httpx2
import pytest
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from dragoman import Mount, PluginError
from dragoman.testing import VirtualClock
from dragoman_http.mounted import MountedApp
from stage import table

pytestmark = pytest.mark.anyio


def mounting(plugin, *mounts):
    """Let the stub ``extensions.guest`` mount these when it is opened."""
    plugin.extensions["guest"] = object()
    plugin.offers["guest"] = mounts
    return [table("extensions", "guest")]


async def echo(scope, receive, send):
    """An application without a lifespan."""
    assert scope["type"] == "http"
    body = f"{scope['root_path']} {scope['path']}".encode()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": body})


async def test_an_application_is_served_below_its_path(site, site_plugin):
    plugin = site_plugin()
    tables = mounting(plugin, ("/a", echo), ("/a/b/", PlainTextResponse("longest wins")))
    async with site(plugin, tables) as open_site:
        assert (await open_site.web.get("/a/x")).text == "/a /a/x"
        bare = await open_site.web.post("/a")
        assert (bare.status_code, bare.text) == (200, "/a /a")
        assert (await open_site.web.get("/a/b/x")).text == "longest wins"
        assert (await open_site.web.get("/c")).status_code == 404


async def test_an_application_that_raises_gives_500_and_hurts_nobody(site, site_plugin, caplog):
    """Invariants 11 and 12."""

    async def raises(scope, receive, send):
        if scope["path"].endswith("late"):
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b"half", "more_body": True})
        raise ValueError("somebody's text")

    plugin = site_plugin()
    async with site(plugin, mounting(plugin, ("/bad", raises))) as open_site:
        page = await open_site.web.get("/bad/")
        assert (page.status_code, page.text) == (500, "Internal Server Error")
        with pytest.raises(httpx2.RemoteProtocolError):
            await open_site.web.get("/bad/late")
        assert (await open_site.web.get("/readyz")).status_code == 200
        assert "/bad of extensions.guest failed to answer: ValueError" in caplog.text
        assert "somebody's text" not in caplog.text


async def test_a_lifespan_is_kept_and_its_state_is_the_requests(site, site_plugin):
    seen = []

    async def lifespan(app):
        seen.append("up")
        yield {"word": "kept"}
        seen.append("down")

    async def word(request):
        return PlainTextResponse(request.state.word)

    app = Starlette(routes=[Route("/word", word)], lifespan=asynccontextmanager(lifespan))
    plugin = site_plugin()
    async with site(plugin, mounting(plugin, ("/app", app))) as open_site:
        assert (await open_site.web.get("/app/word")).text == "kept"
        assert seen == ["up"]
    assert seen == ["up", "down"]


async def test_an_application_that_cannot_start_is_unavailable_alone(site, site_plugin, caplog):
    async def failing(app):
        raise RuntimeError
        yield

    app = Starlette(lifespan=asynccontextmanager(failing))
    plugin = site_plugin()
    async with site(plugin, mounting(plugin, ("/sick", app), ("/well", echo))) as open_site:
        assert (await open_site.web.get("/sick/")).status_code == 503
        assert (await open_site.web.get("/well/")).status_code == 200
        assert (await open_site.web.get("/readyz")).status_code == 200
        assert "lifespan.startup.failed" in caplog.text


async def test_an_application_that_does_not_end_holds_up_a_stop_for_seconds_only(
    site, site_plugin, caplog
):
    """B9."""
    asked = anyio.Event()

    async def endless(scope, receive, send):
        if scope["type"] == "lifespan":
            await receive()
            await send({"type": "lifespan.startup.complete"})
        asked.set()
        await anyio.sleep_forever()

    plugin = site_plugin()
    with anyio.fail_after(20):
        async with (
            site(plugin, mounting(plugin, ("/endless", endless))) as open_site,
            anyio.create_task_group() as tasks,
        ):
            asked = anyio.Event()

            async def ask():
                page = await open_site.web.get("/endless/", timeout=30)
                assert page.status_code == 503

            tasks.start_soon(ask)
            await asked.wait()
            open_site.stage.app.stop()
    assert "takes too long" not in caplog.text
    assert "Traceback" not in caplog.text


@pytest.mark.parametrize(
    ("mounts", "reason"),
    [
        ([("/a", echo), ("/a/", echo)], "/a is taken by extensions.guest"),
        ([("a", echo)], "a path to mount begins with a slash, not as 'a' does"),
    ],
)
async def test_a_path_is_one_components_and_begins_with_a_slash(site, site_plugin, mounts, reason):
    plugin = site_plugin()
    with pytest.raises(BaseExceptionGroup) as raised:
        async with site(plugin, mounting(plugin, *mounts)):
            pass
    (error,) = leaves(raised.value)
    assert isinstance(error, PluginError)
    assert reason in str(error)


async def test_nobody_takes_the_listeners_own_pages(site, site_plugin, caplog):
    plugin = site_plugin()
    async with site(plugin, mounting(plugin, ("/readyz", echo))) as open_site:
        assert (await open_site.web.get("/readyz")).json()["ready"] is True
        assert "/readyz of extensions.guest is not served" in caplog.text


def leaves(error):
    if isinstance(error, BaseExceptionGroup):
        return [leaf for inner in error.exceptions for leaf in leaves(inner)]
    return [error]


async def test_a_socket_whose_application_raises_is_closed():
    async def raises(scope, receive, send):
        if scope["type"] == "websocket":
            raise ValueError

    sent = []

    async def send(message):
        sent.append(message)

    mount = Mount(path="/ws", app=raises, owner="extensions.guest")
    app = MountedApp(mount, VirtualClock(), logging.getLogger("test"))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(app.live)
        await app({"type": "websocket", "path": "/ws"}, None, send)
        app.end()
    assert sent == [{"type": "websocket.close", "code": 1011}]
