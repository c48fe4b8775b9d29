"""Every rule about flags, failures and lives bites: an adapter that breaks it fails there alone."""

import itertools

import anyio
import anyio.lowlevel
import attrs
import pytest

from dragoman import (
    Forbidden,
    Gone,
    NotSent,
    Outbound,
    PlatformError,
    RateLimited,
    Receipt,
    Refused,
    Unknown,
)
from peers.memory_platform import CAN, MemoryPlatform
from peers.memory_service import TOKEN, ServiceError
from platform_mutants import FAILURE, FLAG, failures_of
from suite_mutants import Mutants, names_of

pytestmark = pytest.mark.anyio
MUTANTS = Mutants()


def without(flag, value=False):
    """A platform that does what it does not say."""
    return type(
        f"Hides_{flag}", (MemoryPlatform,), {"capabilities": attrs.evolve(CAN, **{flag: value})}
    )


async def nothing(*_, **__):
    return None


def idle(flag, method):
    """A platform that says what it does not do."""
    return type(f"Feigns_{flag}", (MemoryPlatform,), {method: nothing})


for flag, value in {
    "answers": False,
    "buttons": 0,
    "delete": False,
    "edit": False,
    "fetch": None,
    "files": None,
    "idempotent_send": False,
    "look_up": False,
    "reactions": False,
    "typing": False,
}.items():
    MUTANTS.fails(f"{FLAG}[{flag}]")(without(flag, value))


@MUTANTS.fails(f"{FLAG}[answers]")
class AnswersNothing(MemoryPlatform):
    answer = nothing


@MUTANTS.fails(f"{FLAG}[answers]")
class AnswersBeforeEverybody(MemoryPlatform):
    async def answer(self, press, text):
        await super().answer(press, text)
        if text:
            await self.send(press.address, Outbound("out loud", text))


@MUTANTS.fails(f"{FLAG}[look_up]")
class FindsNothing(MemoryPlatform):
    look_up = nothing


@MUTANTS.fails(f"{FLAG}[look_up]")
class FindsAnything(MemoryPlatform):
    async def look_up(self, address, message):
        return await super().look_up(address, message) or Receipt("1")


@MUTANTS.fails(f"{FLAG}[typing]", "test_a_thread_is_part_of_every_call")
class TypesNothing(MemoryPlatform):
    typing = nothing


@MUTANTS.fails(f"{FLAG}[fetch]")
class CutsFiles(MemoryPlatform):
    def fetch(self, attachment):
        self.service.messages[attachment.id].file = ("notes.txt", b"")
        return super().fetch(attachment)


@MUTANTS.fails(f"{FLAG}[files]")
class NamesFilesAnew(MemoryPlatform):
    async def post(self, address, message, **more):
        file = more.pop("file")
        return await super().post(address, message, file=file and ("file", file[1]), **more)


@MUTANTS.fails(f"{FLAG}[idempotent_send]")
class RepeatsItself(MemoryPlatform):
    numbers = itertools.count()

    async def post(self, address, message, **more):
        if message.text == "once":
            message = attrs.evolve(message, delivery_id=str(next(self.numbers)))
        return await super().post(address, message, **more)


def mistaking(code, error):
    """A platform that takes one failure for another."""

    def failure(self, found):
        return error if found.code == code else MemoryPlatform.failure(self, found)

    return type(f"Mistakes_{code.replace(' ', '_')}", (MemoryPlatform,), {"failure": failure})


for code, error in {
    "lost": NotSent("?"),
    "limited": RateLimited(1.0),
    "blocked": Forbidden("chat"),
    "unauthorized": Refused("?"),
    "refused": Unknown("?"),
    "garbled": NotSent("?"),
    "no channel": Gone("thread"),
    "no thread": Gone("channel"),
}.items():
    MUTANTS.fails(f"{FAILURE}[{code}]")(mistaking(code, error))
MUTANTS.fails("test_what_never_left_is_not_sent")(mistaking("unreachable", Unknown("?")))
MUTANTS.fails(f"{FAILURE}[refused]")(mistaking("refused", ServiceError("the vendor's own")))
MUTANTS.fails(f"{FAILURE}[refused]")(mistaking("refused", Refused(f"no: {TOKEN}")))


@MUTANTS.fails(f"{FAILURE}[limited]", f"{FAILURE}[garbled]", f"{FAILURE}[lost]")
class TriesAgain(MemoryPlatform):
    async def send(self, address, message):
        try:
            return await super().send(address, message)
        except (RateLimited, Unknown):
            self.service.fault = None
            return await super().send(address, message)


@MUTANTS.fails("test_a_lost_connection_is_taken_up_by_the_same_object")
class RunsOnce(MemoryPlatform):
    lost = False

    async def run(self, deliver):
        while self.lost:
            await self.host.clock.sleep(1)
        try:
            await super().run(deliver)
        except Unknown:
            self.lost = True
            raise


@MUTANTS.fails("test_a_cancelled_send_leaves_nothing_behind")
class KeepsItsLock(MemoryPlatform):
    async def send(self, address, message):
        taken = self.__dict__.setdefault("taken", [])
        while taken:
            await anyio.lowlevel.checkpoint()
        taken.append(message)
        try:
            receipt = await super().send(address, message)
        except PlatformError:
            taken.clear()
            raise
        taken.clear()
        return receipt


@MUTANTS.fails("test_a_cancelled_edit_leaves_nothing_behind")
class LeavesAnEditGoing(MemoryPlatform):
    async def edit(self, address, native_id, message):
        try:
            return await super().edit(address, native_id, message)
        except anyio.get_cancelled_exc_class():
            self.host.task_group.start_soon(anyio.sleep_forever)
            raise


@MUTANTS.fails("test_a_cancelled_run_leaves_nothing_behind")
class LeavesItsListener(MemoryPlatform):
    async def run(self, deliver):
        try:
            await super().run(deliver)
        finally:
            self.host.task_group.start_soon(anyio.sleep_forever)


@MUTANTS.fails("test_a_probe_changes_nothing")
class SaysHello(MemoryPlatform):
    async def probe(self):
        await self.service.post("room", "hello")
        return await super().probe()


@MUTANTS.fails("test_a_probe_changes_nothing")
class LogsItsToken(MemoryPlatform):
    async def probe(self):
        self.host.log.debug("trying %s", TOKEN)
        return await super().probe()


@MUTANTS.fails("test_a_probe_changes_nothing")
class ShowsItsToken(MemoryPlatform):
    async def probe(self):
        self.config = TOKEN
        return await super().probe()


@pytest.mark.parametrize(("mutant", "expected"), MUTANTS.known, ids=names_of(MUTANTS))
async def test_a_wrong_adapter_fails_at_its_rule(mutant, expected, monkeypatch):
    assert await failures_of(mutant, monkeypatch) == expected
