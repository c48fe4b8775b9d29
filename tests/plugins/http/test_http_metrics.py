"""The metrics page, as a scraper reads it."""

import pytest

from dragoman import Failed, FailureKind, Finished, TextBlock
from dragoman.testing import ScriptedRuntime, VirtualClock
from stage import eventually, table

pytestmark = pytest.mark.anyio


async def script(request, host):
    text = request.inputs[0].text
    if text == "fail":
        yield Failed(FailureKind.TOOL, "no such tool")
        return
    yield TextBlock("1", text)
    yield Finished()


async def test_turns_are_counted_by_outcome_and_timed(site, site_plugin):
    """B9."""
    plugin = site_plugin()
    plugin.runtimes["scripted"] = ScriptedRuntime(script)
    async with site(plugin) as open_site:
        for text in ("one", "two", "fail"):
            await open_site.stage.platform.say(text)
        await open_site.stage.until_final()
        seen = await open_site.metrics()
        who = ("default", "scripted")
        assert seen["dragoman_turns_started_total", *who] == 3
        assert seen["dragoman_turns_ended_total", *who, "succeeded"] == 2
        assert seen["dragoman_turns_ended_total", *who, "failed"] == 1
        assert seen["dragoman_turn_duration_seconds_count", *who] == 3
        assert seen["dragoman_turn_duration_seconds_bucket", "+Inf", *who] == 3
        await eventually(lambda: rows(open_site), (3, 2, 3))


async def rows(open_site):
    """How many rows are settled; the page may show what was so a second ago."""
    seen = await open_site.metrics()
    return (
        seen.get(("dragoman_events", "answered")),
        seen.get(("dragoman_turns", "succeeded")),
        seen.get(("dragoman_deliveries", "delivered")),
    )


async def test_what_waits_shows_with_its_age(site, site_plugin):
    clock = VirtualClock()
    plugin = site_plugin()

    async def hang(method, address, message):
        await clock.sleep(1000)

    plugin.platform().before = hang
    async with site(plugin, clock=clock) as open_site:
        await open_site.stage.platform.say("one")
        await open_site.stage.platform.say("two")
        await clock.advance(30)
        seen = await open_site.metrics()
        assert seen["dragoman_oldest_age_seconds", "deliveries"] == pytest.approx(30, abs=2)
        assert sum(seen.get(("dragoman_deliveries", one), 0) for one in ("pending", "sending")) >= 1
        assert seen["dragoman_oldest_age_seconds", "events"] == 0
        assert seen["dragoman_loop_lag_seconds",] >= 0
        assert seen["dragoman_ready",] == 1


async def test_a_message_that_waits_for_a_turn_shows_with_its_age(site, site_plugin):
    clock = VirtualClock()
    plugin = site_plugin()

    async def slow(request, host):
        await clock.sleep(100)
        yield Finished()

    plugin.runtimes["scripted"] = ScriptedRuntime(slow)
    async with site(plugin, clock=clock) as open_site:
        await open_site.stage.platform.say("one")
        await clock.advance(10)
        await open_site.stage.platform.say("two")
        await clock.advance(30)
        seen = await open_site.metrics()
        assert seen["dragoman_oldest_age_seconds", "events"] == 30
        assert seen["dragoman_events", "queued"] == 1
        assert seen["dragoman_turns", "running"] == 1


async def test_platforms_show_their_state_and_their_last_completed_work(site, site_plugin):
    clock = VirtualClock()
    plugin = site_plugin()
    both = [table("platforms", "one"), table("platforms", "two")]
    async with site(plugin, both, clock=clock) as open_site:
        plugin.hosts["platforms.one"].alive()
        plugin.hosts["runtimes.scripted"].alive()
        await clock.advance(7)
        seen = await open_site.metrics()
        assert seen["dragoman_platform_worked_seconds", "one"] == 7
        assert ("dragoman_platform_worked_seconds", "two") not in seen
        assert seen["dragoman_platform_state", "two", "running"] == 1
        assert seen["dragoman_platform_state", "two", "stopped"] == 0


async def test_two_applications_in_one_process_share_no_metrics(site):
    async with site() as first, site() as second:
        await first.stage.platform.say("hello")
        await first.stage.until_final()
        who = ("default", "scripted")
        assert (await first.metrics())["dragoman_turns_started_total", *who] == 1
        assert ("dragoman_turns_started_total", *who) not in await second.metrics()


async def test_a_store_that_cannot_be_read_costs_its_own_metrics_only(site, caplog):
    async with site() as open_site:
        await open_site.stage.app.store.connections[0].execute_fetchall(
            "ALTER TABLE agent_runs RENAME TO gone"
        )
        seen = await open_site.metrics()
        assert seen["dragoman_ready",] == 1
        assert not [name for name in seen if name[0] == "dragoman_events"]
        assert "the store was not measured" in caplog.text


async def test_a_scraper_that_knows_openmetrics_gets_it(site):
    async with site() as open_site:
        page = await open_site.web.get(
            "/metrics", headers={"accept": "application/openmetrics-text; version=1.0.0"}
        )
        assert page.headers["content-type"].startswith("application/openmetrics-text")
        assert page.text.endswith("# EOF\n")
