"""Who writes a row rings a bell; who hears none looks now and then."""

import logging

import anyio
import pytest

from dragoman import StoreUnavailable
from dragoman.bell import LOOK_SECONDS, NAME, answer, ring
from dragoman.clock import SystemClock
from dragoman.manifest.model import DeliveryRules
from dragoman.testing import VirtualClock
from stage import eventually, gateway

pytestmark = pytest.mark.anyio

LOG = logging.getLogger("dragoman.test")


async def hung(path):
    """Wait until a bell hangs there."""
    await eventually(_exists(path / NAME), True)


def _exists(path):
    async def ask():
        return await anyio.Path(path).exists()

    return ask


async def test_a_ring_is_answered_at_once_and_every_time(tmp_path):
    looks = []

    async def look():
        looks.append(True)
        if len(looks) == 2:
            raise StoreUnavailable("disk full")  # the next ring is answered all the same

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_answer, tmp_path, look, SystemClock())
        await hung(tmp_path)
        for count in (1, 2, 3):
            ring(tmp_path)
            await eventually(_length(looks), count, limit=20)
        assert (tmp_path / NAME).stat().st_mode & 0o777 == 0o600
        tasks.cancel_scope.cancel()
    assert not (tmp_path / NAME).exists()


def _length(found):
    async def ask():
        return len(found)

    return ask


async def _answer(folder, look, clock):
    await answer(folder, look, clock=clock, log=LOG)


async def test_what_is_rung_while_it_looks_is_looked_for_again(tmp_path):
    looks = []

    async def look():
        looks.append(True)
        if len(looks) == 1:
            ring(tmp_path)
            await anyio.sleep(0.05)  # the bell is heard before the look ends

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_answer, tmp_path, look, SystemClock())
        await hung(tmp_path)
        ring(tmp_path)
        await eventually(_length(looks), 2, limit=20)
        tasks.cancel_scope.cancel()


async def test_a_bell_that_nobody_hears_costs_at_most_one_slow_look(tmp_path):
    """A folder whose name is too long for a socket, or a socket that somebody took away."""
    folder = tmp_path / ("long" * 40)
    folder.mkdir()
    clock, looks = VirtualClock(), []

    async def look():
        looks.append(clock.boot())

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_answer, folder, look, clock)
        await clock.advance(3 * LOOK_SECONDS + 1)
        assert looks == [LOOK_SECONDS, 2 * LOOK_SECONDS, 3 * LOOK_SECONDS]
        tasks.cancel_scope.cancel()


def test_a_ring_without_a_gateway_is_no_error(tmp_path):
    ring(tmp_path)
    ring(tmp_path / "nowhere")


async def test_a_decision_of_the_operator_is_carried_out_without_a_restart(tmp_path):
    """B7, invariant 5: a row that says "send it again" is found when the bell rings."""
    from dragoman import Unknown

    rules = DeliveryRules(uncertain="ask")
    async with gateway(store=tmp_path / "a.db", delivery=rules) as stage:
        stage.platform.faults.append(Unknown("timeout"))
        await stage.platform.say("hello")
        await stage.until("deliveries", ["uncertain"])
        db = stage.app.store.connections[0]
        await db.execute_fetchall("UPDATE deliveries SET state = 'pending'")
        await hung(stage.app.manifest.data_dir)
        ring(stage.app.manifest.data_dir)
        await stage.until_final()
        assert stage.platform.shown() == ["hello"]
