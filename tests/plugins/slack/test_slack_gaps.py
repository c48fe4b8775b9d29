"""What was said while nobody listened."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from dragoman_slack.gaps import PLACES, Gaps, Place
from peers.slack_fake import SlackFake

pytestmark = pytest.mark.anyio
ADA, BO = "U0ADA", "U0BO"


def age(host: Any, seconds: float) -> None:
    """Make the last sign of life so old."""
    host.records.values["heard"] = f"{host.clock.now().timestamp() - seconds:.3f}"


async def test_what_was_said_during_an_outage_is_read_from_the_history_once(
    fake: SlackFake, room: str, running: Any, inbox: Any, host: Any
) -> None:
    """B1, invariant 3: in channels, threads and direct messages, in order in each."""
    dm = fake.dm(ADA)
    async with running():
        root = fake.say(room, ADA, "before").ts
        fake.say(dm, ADA, "in private")
        await inbox.until(2)
        await fake.reached(lambda: len(fake.acks) == 2)
    fake.settings.retries = ()
    fake.say(room, BO, "one")
    fake.say(room, BO, "in the thread", thread=root)
    fake.say(room, BO, "two")
    fake.say(dm, ADA, "still in private", files=[("a.txt", b"abc")])
    fake.join(room, "U0NEW")
    age(host, 600)
    async with running():
        await inbox.until(6)
        fake.say(room, BO, "after")
        await inbox.until(7)
    said = [event.text for event in inbox.events if event.address.channel == room]
    assert [text for text in said if text != "in the thread"] == ["before", "one", "two", "after"]
    [inside] = [event for event in inbox.events if event.text == "in the thread"]
    assert (inside.address.thread, inside.follows) == (root, True)
    assert len(inbox.events) == 7


async def test_after_a_short_silence_slack_sends_again_and_no_history_is_read(
    fake: SlackFake, room: str, running: Any, inbox: Any, host: Any
) -> None:
    async with running():
        fake.say(room, ADA, "before")
        await inbox.until(1)
    age(host, 30)
    async with running():
        pass
    assert not fake.calls_of("conversations.history", "conversations.replies")


async def test_what_slack_does_not_hand_out_is_told_with_its_span(
    fake: SlackFake, room: str, running: Any, inbox: Any, host: Any, caplog: Any
) -> None:
    async with running():
        fake.say(room, ADA, "before")
        await inbox.until(1)
    age(host, 600)
    fake.rate_limit("conversations.replies", 60)
    fake.rate_limit("conversations.history", 60)
    with caplog.at_level(logging.WARNING, "test.slack"):
        async with running():
            fake.say(room, ADA, "after")
            await inbox.until(2)
    [line] = [one for one in caplog.messages if "may be missing" in one]
    assert "2 places from 20" in line


async def test_only_so_many_places_are_remembered(host: Any) -> None:
    """Invariant 10, FC-LEK-02."""
    gaps = Gaps(host, None)  # type: ignore[arg-type]
    for number in range(PLACES + 20):
        place = Place(f"C{number}", "1.1" if number % 2 else "")
        gaps._last[place] = "1.0"
        gaps._unwritten.add(place)
    await gaps.write()
    kept = [key for key in host.records.values if key.startswith("last:")]
    assert len(kept) == PLACES
    assert all(Place.of(key).key == key for key in kept)
