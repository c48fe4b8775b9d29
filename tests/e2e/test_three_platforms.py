"""One gateway on three platforms at once, and killed in the middle of everything that it does."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import attrs
import pytest

from crash.pieces import installed
from e2e.test_first_conversation import until_finished
from peers.gateway import Gateway
from peers.rooms import FILE, DiscordRoom, Room, Shows, SlackRoom, TelegramRoom

pytestmark = pytest.mark.proof

WORDS = " ".join(f"word{number}" for number in range(40))
MIDDLE, LAST = "word15", "word39"
NOTES = bytes(range(256))

MANIFEST = """
manifest = 1
{platforms}
[runtimes.clerk]
plugin = "crash:clerk"
words = "{words}"
word_delay = {pace}
hold = "{hold}"

[profiles.default]
runtime = "clerk"
recovery = "retry"

[access]
users = [{users}]
"""


@attrs.define
class Stage:
    """The gateway, the rooms that it is in, and what each of them shows in the end."""

    gateway: Gateway
    rooms: Sequence[Room]
    hold: Path
    expected: list[Shows] = attrs.field(factory=list)

    def until(self, holds: Callable[[Room], object], limit: float = 60.0) -> None:
        """Wait until something holds in every room."""
        deadline = time.monotonic() + limit
        while missing := [room for room in self.rooms if not holds(room)]:
            if time.monotonic() > deadline:
                seen = [(room.user, room.shown()) for room in missing]
                raise TimeoutError(f"not within {limit} s: {seen}")
            time.sleep(0.02)

    def each(self, act: Callable[[Room], None], *answers: Shows) -> None:
        """Let something be done in every room, and wait until its answers are the last shown."""
        self.expected += answers
        for room in self.rooms:
            act(room)
        self.until(lambda room: room.shown() == self.expected)

    def each_cut(self, act: Callable[[Room], None], *answers: Shows) -> None:
        """The same, with a kill once half of the answer is seen, and words said while it is down."""
        self.hold.touch()
        for room in self.rooms:
            act(room)
        self.until(half_seen)
        self.gateway.kill()
        self.hold.unlink()
        for room in self.rooms:
            room.say("you there?")
        self.gateway.start()
        self.expected += [*answers, heard("you there?")]
        self.until(lambda room: said(room.shown()) == said(self.expected))


def half_seen(room: Room) -> bool:
    """Whether the newest answer has grown to its middle, and is not whole."""
    *_, newest = ["", *room.previews()]
    return MIDDLE in newest and LAST not in newest


def said(shown: Sequence[Shows]) -> list[Shows]:
    """What stays. A kill may leave buttons behind that were pressed, and do nothing any more."""
    return [attrs.evolve(one, buttons=()) for one in shown]


def heard(text: str, *labels: str) -> Shows:
    return Shows(f"heard {text} {WORDS}", labels)


@pytest.fixture
def pace() -> float:
    """Seconds from word to word."""
    return 0.02


@pytest.fixture
def stage(tmp_path: Path, pace: float) -> Iterator[Stage]:
    """The gateway is not started yet."""
    rooms: list[Room] = [TelegramRoom(), DiscordRoom(), SlackRoom()]
    hold = tmp_path / "hold"
    with ExitStack() as stack:
        for room in rooms:
            stack.enter_context(room.fake)
        manifest = MANIFEST.format(
            platforms="\n".join(room.tables for room in rooms),
            words=WORDS,
            hold=hold,
            pace=pace,
            users=", ".join(f'"{room.user}"' for room in rooms),
        )
        environment = {"PYTHONPATH": installed(tmp_path / "pieces")}
        for room in rooms:
            environment |= room.environment
        yield Stage(Gateway(tmp_path / "deployment", manifest, environment), rooms, hold)


@pytest.mark.parametrize("pace", [0.08])
def test_three_platforms_speak_with_one_gateway(stage: Stage) -> None:
    """Streamed, chosen from, a file there and back; at the same time on all three."""
    with stage.gateway:
        stage.until(lambda room: room.connected())
        stage.each(lambda room: room.say("offer"), heard("offer", "Go on", "Enough"))
        for room in stage.rooms:
            grown = {text for text in room.previews() if LAST not in text}
            assert len(grown) >= 2, room.user
        stage.expected[0] = heard("offer")
        stage.each(lambda room: room.press("Go on"), heard("Go on"))
        stage.each(lambda room: room.upload(NOTES), *copied())
        until_finished(stage.gateway.folder)
        assert stage.gateway.stop() == 0
    assert all(room.shown() == stage.expected for room in stage.rooms)


def copied() -> tuple[Shows, Shows]:
    text = f"copied {len(NOTES)} bytes {WORDS}"
    return Shows(text), Shows("", files=((f"copy-of-{FILE}", NOTES),))


SCENES: dict[str, tuple[Callable[[Room], None], Sequence[Shows]]] = {
    "answer": (lambda room: room.say("hello"), [heard("hello")]),
    "press": (lambda room: room.press("Go on"), [heard("Go on")]),
    "file": (lambda room: room.upload(NOTES), copied()),
}


@pytest.mark.parametrize("scene", SCENES)
def test_a_kill_in_the_middle_of_each_loses_and_doubles_nothing(stage: Stage, scene: str) -> None:
    """B7, invariants 1, 2, 3 and 5: run again whole, and what was said meanwhile is answered."""
    act, answers = SCENES[scene]
    with stage.gateway:
        stage.until(lambda room: room.connected())
        if scene == "press":
            stage.each(lambda room: room.say("offer"), heard("offer", "Go on", "Enough"))
        stage.each_cut(act, *answers)
        until_finished(stage.gateway.folder)
        assert stage.gateway.stop() == 0
    assert all(said(room.shown()) == said(stage.expected) for room in stage.rooms)
