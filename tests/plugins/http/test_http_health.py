"""The health pages: what a load balancer and an operator are told."""

import anyio
import pytest

from dragoman import StoreUnavailable, Unauthorized
from dragoman.testing import StubPlatform, VirtualClock
from stage import can, eventually, table

pytestmark = pytest.mark.anyio

SECRET = "123456:SECRET-TOKEN"


class Broken(StubPlatform):
    """Raises ``error`` whenever it is run, while there is one."""

    error = None

    async def run(self, deliver):
        if self.error is not None:
            raise self.error
        await super().run(deliver)


def broken(plugin, error, id_="broken"):
    platform = plugin.platforms[id_] = Broken(id=id_)
    platform.error = error
    return platform


class FullDisk:
    """Lets the store's file grow no more, as a full disk would."""

    def __init__(self, stage):
        self.db = stage.app.store.connections[0]

    async def fill(self):
        (row,) = await self.db.execute_fetchall("PRAGMA page_count")
        await self.db.execute_fetchall(f"PRAGMA max_page_count = {row[0]}")

    async def free(self):
        await self.db.execute_fetchall("PRAGMA max_page_count = 1000000")


async def test_a_running_gateway_is_alive_and_ready(site):
    """B9."""
    async with site() as open_site:
        alive = await open_site.web.get("/livez")
        assert (alive.status_code, alive.json()["alive"]) == (200, True)
        ready = await open_site.web.get("/readyz")
        assert ready.status_code == 200
        assert ready.headers["cache-control"] == "no-store"
        assert ready.json() == {
            "ready": True,
            "troubles": [],
            "platforms": [{"id": "stub", "state": "running", "reason": "", "worked": None}],
        }
        assert (await open_site.web.head("/readyz")).status_code == 200
        assert (await open_site.web.get("/nothing")).status_code == 404
        assert (await open_site.web.post("/livez")).status_code == 405


@pytest.mark.parametrize("where", ["memory", "file"])
async def test_a_gateway_whose_store_is_full_is_not_ready_until_it_takes_again(
    site, tmp_path, where
):
    """B9, invariant 1: what cannot be kept is not accepted, and that shows."""
    store = ":memory:" if where == "memory" else tmp_path / "store.db"
    async with site(store=store) as open_site:
        stage, disk = open_site.stage, FullDisk(open_site.stage)
        await disk.fill()
        with pytest.raises(StoreUnavailable):
            await stage.platform.say("x" * 200_000, native_id="long")
        page = await open_site.web.get("/readyz")
        assert page.status_code == 503
        assert page.json()["troubles"][0].startswith("the store takes nothing: ")
        assert "xxx" not in page.text
        assert (await open_site.web.get("/livez")).status_code == 200

        await disk.free()
        await stage.platform.say("x" * 2_000, native_id="long")
        assert (await open_site.web.get("/readyz")).status_code == 200
        await stage.until("inbound_events", ["answered"])


async def test_a_refused_account_is_a_trouble_that_names_no_secret(site, site_plugin):
    """Invariants 11 and 12: the other platform goes on, and the page says what stopped."""
    plugin = site_plugin()
    broken(plugin, Unauthorized(f"refused: bot{SECRET}/getMe"))
    both = [table("platforms", "broken"), table("platforms", "stub")]
    async with site(plugin, both, secrets=[SECRET]) as open_site:
        await eventually(lambda: states(open_site), {"broken": "stopped", "stub": "running"})
        page = await open_site.web.get("/readyz")
        assert page.status_code == 503
        assert page.json()["troubles"] == [
            "platform broken stopped: refused: bot[secret]/getMe",
        ]
        assert SECRET not in page.text + (await open_site.web.get("/metrics")).text
        await open_site.stage.platform.say("hello")
        await open_site.stage.platform.until_shown("hello")


async def test_one_lost_platform_is_no_trouble_while_another_is_connected(site, site_plugin):
    plugin = site_plugin()
    broken(plugin, ConnectionError())
    both = [table("platforms", "broken"), table("platforms", "stub")]
    async with site(plugin, both) as open_site:
        await eventually(lambda: states(open_site), {"broken": "waiting", "stub": "running"})
        page = await open_site.web.get("/readyz")
        assert page.status_code == 200
        assert page.json()["platforms"][0]["reason"].startswith("ConnectionError at ")


async def test_a_gateway_without_any_connection_is_not_ready_until_one_holds(site, site_plugin):
    clock = VirtualClock()
    plugin = site_plugin()
    platform = broken(plugin, ConnectionError("to nowhere"))
    platform.capabilities = can(silence=100.0)
    async with site(plugin, [table("platforms", "broken")], clock=clock) as open_site:
        await clock.advance(300)
        page = await open_site.web.get("/readyz")
        assert page.status_code == 503
        assert page.json()["troubles"][0].startswith("platform broken is not connected: Conn")

        platform.error = None
        await clock.advance(30)
        await platform.connected.wait()
        plugin.hosts["platforms.broken"].alive()
        await clock.advance(2)
        page = await open_site.web.get("/readyz")
        assert (page.status_code, page.json()["platforms"]) == (
            200,
            [{"id": "broken", "state": "running", "reason": "", "worked": 2.0}],
        )


async def test_a_gateway_that_stops_says_so_while_its_turns_finish(site):
    """B9: no new work is sent to it, and what runs is not cut."""
    release = anyio.Event()

    async def hold(method, address, message):
        await release.wait()

    async with site() as open_site:
        open_site.stage.platform.before = hold
        await open_site.stage.platform.say("hello")
        await eventually(lambda: calls(open_site), True)
        open_site.stage.app.stop()
        await eventually(lambda: ready(open_site), (503, ["the gateway is stopping"]))
        release.set()
    assert open_site.stage.platform.shown() == ["hello"]


async def states(open_site):
    page = await open_site.web.get("/readyz")
    return {one["id"]: one["state"] for one in page.json()["platforms"]}


async def ready(open_site):
    page = await open_site.web.get("/readyz")
    return page.status_code, page.json()["troubles"]


async def calls(open_site):
    return "send" in open_site.stage.platform.calls
