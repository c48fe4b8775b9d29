"""A day of bad weather on each platform, in minutes: always back, nothing lost, nothing left over."""

import pytest

import dragoman_discord
import dragoman_slack
import dragoman_telegram
from dragoman import Secret
from dragoman.testing import VirtualClock
from dragoman_discord.config import DiscordConfig
from dragoman_slack.config import SlackConfig
from dragoman_telegram.config import TelegramConfig
from simulation.day import LONGEST, live_through
from simulation.discord_day import DiscordDay
from simulation.slack_day import SlackDay
from simulation.telegram_day import TelegramDay

pytestmark = [pytest.mark.anyio, pytest.mark.proof, pytest.mark.timeout(900)]


def secret(text):
    return Secret("env TOKEN", text)


async def test_proof_that_discord_is_back_after_each_fault_of_a_day(monkeypatch):
    """C3, B1: drops, op 7 and 9, half-open sockets, 429s, no network, lost sessions."""
    # The last word of a connection waits for real seconds, which do not pass here.
    monkeypatch.setattr("dragoman_discord.socket.LAST_WORD", 0.0)
    service = DiscordDay(VirtualClock())
    token = secret("MTAwMDAwMDAwMDAwMDAwMDAx.abcdef.abcdefghijklmnopqrstuvwxyz0")
    config = DiscordConfig(token=token, api_url="http://discord.test/api/v10")
    report = await live_through(service, dragoman_discord, config, ("discord:7",), monkeypatch)
    assert report.faults > 100
    assert report.slowest <= LONGEST
    assert service.resumed > 20
    assert service.identified < 60
    assert service.lines == []


async def test_proof_that_slack_is_back_after_each_fault_of_a_day(monkeypatch):
    """C4, B1: drops, refreshes, half-open sockets, 429s, too_many_websockets, no network."""
    service = SlackDay(VirtualClock())
    config = SlackConfig(
        bot_token=secret("xoxb-1-1-abcdefghijklmnop"),
        app_token=secret("xapp-1-A1-1-abcdefghijklmnop"),
        api_url="http://slack.test/api",
    )
    report = await live_through(service, dragoman_slack, config, ("slack:T1:UADA",), monkeypatch)
    assert report.faults > 100
    assert report.slowest <= LONGEST
    assert service.lines == []


async def test_proof_that_telegram_is_back_after_each_fault_of_a_day(monkeypatch):
    """C2, B1: cut polls, 502s, conflicts, 429s, half-open connections, no network."""
    service = TelegramDay(VirtualClock())
    token = secret("700700:AAFixtureTokenOfABotThatIsNoWhere0x")
    config = TelegramConfig(token=token, api_url="http://telegram.test")
    report = await live_through(
        service, dragoman_telegram, config, ("telegram:700000001",), monkeypatch
    )
    assert report.faults > 100
    assert report.slowest <= LONGEST
    assert service.polls > 1000
