"""A gateway that is told to end, and the next one of the same bot: never two polls at once."""

import time

import pytest

from crash.ledger import read
from peers.gateway import Gateway
from peers.telegram_fake import TelegramFake

ANNA = 700000001
LONG = " ".join(f"word{number}" for number in range(300))
MANIFEST = """
manifest = 1

[platforms.telegram]
token = {{ env = "TELEGRAM_TOKEN" }}
api_url = "{url}"
poll_timeout = 50

[runtimes.echo]
word_delay = 0.2

[profiles.default]
runtime = "echo"

[access]
users = ["telegram:700000001"]
"""


@pytest.fixture
def fake():
    with TelegramFake() as server:
        yield server


@pytest.fixture
def begin(fake, tmp_path):
    """Makes gateways of the bot, each in a folder by its name."""

    def make(name="deployment"):
        manifest = MANIFEST.format(url=fake.url)
        return Gateway(tmp_path / name, manifest, {"TELEGRAM_TOKEN": fake.token})

    return make


def polls(fake):
    return fake.calls_of("getUpdates")


def until_it_polls(fake, known=0):
    """Wait until a poll that is not yet known waits for updates."""
    fake.until(lambda: len(polls(fake)) > known and polls(fake)[-1].stage == "arrived")


def unfinished(gateway):
    """Rows of the store that have not come to an end."""
    return read(gateway.folder / ".dragoman" / "dragoman.db").unfinished


def conflicts(calls):
    return [call.number for call in calls if call.status == 409]


def end(fake, gateway):
    """End a gateway; return the polls that it made. None of them is made after the signal."""
    known, before = len(polls(fake)), time.monotonic()
    assert gateway.stop() == 0
    assert time.monotonic() - before < 25
    assert len(polls(fake)) == known
    return known


def test_fc_rst_08_after_an_end_while_idle_the_next_instance_meets_no_other_poll(fake, begin):
    """B9: it is told to end in the middle of a poll of 50 seconds."""
    with begin() as gateway:
        until_it_polls(fake)
        known = end(fake, gateway)
        gateway.start()
        until_it_polls(fake, known)
        fake.say(ANNA, ANNA, "hello")
        fake.until(lambda: fake.said_by_bot(ANNA) == ["hello"])
        until_it_polls(fake, known + 1)
        assert conflicts(polls(fake)[known:]) == []
        end(fake, gateway)
    assert "another program polls" not in gateway.log
    assert unfinished(gateway) == ()


@pytest.mark.proof
def test_fc_rst_08_after_an_end_during_a_run_the_next_instance_meets_no_other_poll(fake, begin):
    """B7, B9: the answer that is cut says so, and the chat goes on."""
    with begin() as gateway:
        until_it_polls(fake)
        fake.say(ANNA, ANNA, LONG)
        fake.until(lambda: "word5" in "".join(fake.said_by_bot(ANNA)))
        known = end(fake, gateway)
        assert unfinished(gateway) == ()
        assert fake.said_by_bot(ANNA)[0].endswith("(interrupted by a restart)")
        gateway.start()
        until_it_polls(fake, known)
        fake.say(ANNA, ANNA, "hello")
        fake.until(lambda: fake.said_by_bot(ANNA)[1:] == ["hello"])
        until_it_polls(fake, known + 1)
        assert conflicts(polls(fake)[known:]) == []
        end(fake, gateway)
    assert "another program polls" not in gateway.log


@pytest.mark.proof
def test_fc_rst_08_two_instances_at_once_would_be_seen(fake, begin):
    """The same bot polled by a second gateway, with a store of its own: the fake tells, and both."""
    with begin() as first:
        until_it_polls(fake)
        with begin("another") as second:
            fake.until(lambda: conflicts(polls(fake)))
            first.until_logged("another program polls with this bot's token")
            assert second.stop() == 0
