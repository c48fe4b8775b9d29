"""How a platform begins, ends and goes on, as tests: a part of `dragoman.testing.platform_suite`."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, ClassVar

import anyio
import pytest

from dragoman.protocols import Finding
from dragoman.testing.cancelling import cancelled_at
from dragoman.testing.leftovers import task_ids
from dragoman.testing.platform_harness import PlatformHarness
from dragoman.testing.platform_stage import LIMIT, Stage, staged


@pytest.mark.anyio
class LivingSuite:
    """Connections are lost and calls are cancelled, and nothing is left of either."""

    cancelled_waits: ClassVar[int] = 30
    """At how many awaits of a call it is cancelled."""

    async def test_a_lost_connection_is_taken_up_by_the_same_object(
        self, harness: PlatformHarness
    ) -> None:
        """By itself, or as ``run`` is called again; what is said after that is heard."""
        async with staged(harness) as stage:
            stage.need("drop")
            async with stage.live():
                await harness.say(harness.dm, "before")
                await stage.inbox.heard("before")
                with anyio.fail_after(LIMIT):
                    await harness.connected()
                    await harness.drop()
                    await harness.connected()
                await harness.say(harness.dm, "after")
                await stage.inbox.heard("after")

    async def test_opening_touches_no_network(self, harness: PlatformHarness) -> None:
        """A service that is down is no reason not to start."""
        async with staged(harness) as stage:
            stage.need("unreachable")
            async with stage.opened(reachable=False) as platform:
                assert platform.capabilities.max_text >= 64

    async def test_a_cancelled_send_leaves_nothing_behind(self, harness: PlatformHarness) -> None:
        """At every await: no task stays, and the next call works."""
        async with staged(harness) as stage, stage.opened() as platform:
            await self._cancel(
                stage, platform, lambda n: platform.send(harness.dm, stage.out(f"{n}"))
            )

    async def test_a_cancelled_edit_leaves_nothing_behind(self, harness: PlatformHarness) -> None:
        """The same for edits."""
        async with staged(harness) as stage, stage.opened() as platform:
            stage.need_flag(platform, "edit")
            receipt = await platform.send(harness.dm, stage.out("first"))
            await self._cancel(
                stage,
                platform,
                lambda n: platform.edit(harness.dm, receipt.native_id, stage.out(f"{n}")),
            )

    async def test_a_cancelled_run_leaves_nothing_behind(self, harness: PlatformHarness) -> None:
        """At every await on the way to a connection: the next ``run`` of the same object hears."""
        async with staged(harness) as stage, stage.opened() as platform:
            before = task_ids()
            for wait in range(1, self.cancelled_waits + 1):
                with anyio.move_on_after(LIMIT / 20) as quiet:
                    await cancelled_at(platform.run(stage.inbox.deliver), wait)
                assert task_ids() <= before, f"a task is left when it is cancelled at await {wait}"
                if quiet.cancelled_caught:  # it listens, and waits for events
                    break
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(platform.run, stage.inbox.deliver)
                with anyio.fail_after(LIMIT):
                    await harness.connected()
                await harness.say(harness.dm, "now")
                await stage.inbox.heard("now")
                tasks.cancel_scope.cancel()

    async def test_a_probe_changes_nothing(self, harness: PlatformHarness) -> None:
        """It says how things are, takes no event and shows nothing."""
        async with staged(harness) as stage, stage.opened() as platform:
            if not hasattr(platform, "probe"):
                pytest.skip("the platform has no probe")
            before = dict(stage.host.records.values)
            findings = await platform.probe()
            assert findings
            assert all(isinstance(one, Finding) for one in findings)
            assert not [one for one in findings if one.level == "problem"]
            assert stage.host.records.values == before
            assert [*await stage.texts(harness.dm), *await stage.texts(harness.room)] == []

    async def _cancel(
        self, stage: Stage, platform: Any, call: Callable[[int], Coroutine[Any, Any, Any]]
    ) -> None:
        before = task_ids()
        for wait in range(1, self.cancelled_waits + 1):
            if not await cancelled_at(call(wait), wait):
                break
            assert task_ids() <= before, f"a task is left when it is cancelled at await {wait}"
        where = stage.harness.room
        with anyio.fail_after(LIMIT):
            await platform.send(where, stage.out("after all"))
        assert await stage.texts(where) == ["after all"]
