"""Errors that the emulator does not know, from a server that answers as told."""

from __future__ import annotations

import socket
import traceback
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import anyio
import attrs
import pytest

from dragoman import (
    AccountMismatch,
    Address,
    Conflict,
    Forbidden,
    Gone,
    Inbound,
    Moved,
    NetworkPolicy,
    NotSent,
    Outbound,
    Place,
    PlatformError,
    RateLimited,
    Refused,
    Unauthorized,
    Unknown,
)
from dragoman_telegram.platform import Telegram
from peers.botapi import TOKEN

pytestmark = pytest.mark.anyio
OpenBot = Callable[..., AbstractAsyncContextManager[Telegram]]
DM = Address("telegram", "700000001")
GROUP = Address("telegram", "-1001500000001", place=Place.GROUP)
TEXT = Outbound("d1", "a text nobody may read in a log")
ME = {"id": 7, "is_bot": True, "username": "dragoman_bot"}


async def failure_of(
    canned: Any, open_bot: OpenBot, *script: bytes, address: Address = GROUP, edit: bool = False
) -> PlatformError:
    async with canned(*script) as server, open_bot(server.url) as bot:
        with pytest.raises(PlatformError) as caught:
            await (bot.edit(address, "5", TEXT) if edit else bot.send(address, TEXT))
        assert len(server.paths) == 1, "a call is never tried twice"
        assert not server.script
    shown = "".join(traceback.format_exception(caught.value))
    assert TOKEN not in shown
    assert TEXT.text not in str(caught.value)
    assert caught.value.__context__ is None
    assert caught.value.__cause__ is None
    return caught.value


# Wording of the errors: facts/platforms.md 4.1, "Errors clients branch on".
@pytest.mark.parametrize(
    ("status", "description", "expected"),
    [
        (400, "Bad Request: message to edit not found", Gone("message")),
        (400, "Bad Request: message can't be edited", Gone("message")),
        (400, "Bad Request: message thread not found", Gone("thread")),
        (400, "Bad Request: chat not found", Gone("channel")),
        (400, "Bad Request: TOPIC_CLOSED", Forbidden("chat")),
        (400, "Bad Request: not enough rights to send text messages", Forbidden("chat")),
        (400, "Bad Request: message is too long", Refused("Bad Request: message is too long")),
        (403, "Forbidden: bot was kicked from the supergroup chat", Forbidden("chat")),
        (409, "Conflict: terminated by other getUpdates request", Conflict()),
        (401, "Unauthorized", Unauthorized()),
        (404, "Not Found", Unauthorized()),
        (404, "Not Found: method not found", Refused("Not Found: method not found")),
        (400, "Bad Request: message to delete not found", Gone("message")),
        (501, "Not Implemented", Refused("Not Implemented")),
        (500, "Internal Server Error", Unknown()),
    ],
)
async def test_each_answer_becomes_the_error_that_says_what_to_do(
    canned: Any, open_bot: OpenBot, error: Any, status: int, description: str, expected: Any
) -> None:
    failure = await failure_of(canned, open_bot, error(status, description))
    assert isinstance(failure, type(expected))
    assert {k: v for k, v in vars(failure).items() if k in vars(expected)} == vars(expected)


async def test_a_person_who_blocked_the_bot_is_told_from_a_chat_that_did(
    canned: Any, open_bot: OpenBot, error: Any
) -> None:
    step = error(403, "Forbidden: bot was blocked by the user")  # facts/platforms.md 4.1
    failure = await failure_of(canned, open_bot, step, address=DM)
    assert isinstance(failure, Forbidden)
    assert failure.who == "person"


@pytest.mark.parametrize(
    ("parameters", "headers", "seconds"),
    [
        ({"retry_after": 37}, {"retry_after": "36"}, 37),
        ({}, {"retry_after": "12"}, 12),
        ({}, {}, 5),
        ({"retry_after": 0}, {}, 1),
    ],
)
async def test_a_rate_limit_names_its_time_and_closes_the_chat_only(
    canned: Any,
    open_bot: OpenBot,
    error: Any,
    parameters: dict[str, int],
    headers: dict[str, str],
    seconds: float,
) -> None:
    # facts/platforms.md 4.1: 429 with parameters.retry_after and a Retry-After header.
    step = error(429, "Too Many Requests: retry after N", headers, **parameters)
    failure = await failure_of(canned, open_bot, step)
    assert isinstance(failure, RateLimited)
    assert (failure.retry_after, failure.scope) == (seconds, "channel")


async def test_a_rate_limit_outside_a_chat_closes_the_instance(
    canned: Any, open_bot: OpenBot, error: Any
) -> None:
    step = error(429, "Too Many Requests: retry after 3", retry_after=3)
    async with canned(step) as server, open_bot(server.url) as bot:
        with pytest.raises(RateLimited) as caught:
            await bot.run(keep([]))
    assert caught.value.scope == "instance"


async def test_an_upgraded_group_has_a_new_address(
    canned: Any, open_bot: OpenBot, error: Any
) -> None:
    # facts/platforms.md 4.1 and 5.1: the new id is in the error's parameters.
    step = error(
        400,
        "Bad Request: group chat was upgraded to a supergroup chat",
        migrate_to_chat_id=-1009,
    )
    failure = await failure_of(canned, open_bot, step)
    assert isinstance(failure, Moved)
    assert failure.address == attrs.evolve(GROUP, channel="-1009")


async def test_an_edit_that_changes_nothing_is_a_success(
    canned: Any, open_bot: OpenBot, error: Any
) -> None:
    # facts/platforms.md 6: "message is not modified" = done.
    step = error(400, "Bad Request: message is not modified: specified new message content …")
    async with canned(step) as server, open_bot(server.url) as bot:
        receipt = await bot.edit(GROUP, "5", TEXT)
    assert (receipt.native_id, receipt.shown) == ("5", TEXT.text)


async def test_a_refusal_does_not_quote_the_message(
    canned: Any, open_bot: OpenBot, error: Any
) -> None:
    """Invariant 12."""
    step = error(400, f'Bad Request: can\'t parse entities: unsupported start tag "{TEXT.text}"')
    failure = await failure_of(canned, open_bot, step)
    assert isinstance(failure, Refused)
    assert "can't parse entities" in failure.reason


# facts/platforms.md 4.2 (HTML from a gateway in between) and 6 (sent, reply lost): each of these
# may have been carried out.
@pytest.mark.parametrize("step", ["cut", "502", "half", "nonsense", "no-id", "redirect"])
async def test_a_send_whose_answer_is_lost_is_unknown(
    canned: Any, open_bot: OpenBot, answer: Any, ok: Any, step: str
) -> None:
    steps = {
        "cut": b"cut",
        "502": answer(502, "<html>Bad Gateway</html>"),
        "half": b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\nconnection: close\r\n\r\n{",
        "nonsense": answer(200, "<html>Welcome</html>"),
        "no-id": ok({}),
        "redirect": answer(302, "", location="https://example.org/"),
    }
    script = steps[step]
    if step == "half":  # the rest never comes: the connection ends instead
        script = script.replace(b"100", b"1").replace(b"{", b"x")
    failure = await failure_of(canned, open_bot, script)
    assert type(failure) is Unknown


async def test_a_server_that_does_not_listen_was_sent_nothing(open_bot: OpenBot) -> None:
    with socket.socket() as taken:  # bound and not listening: connecting is refused
        taken.bind(("127.0.0.1", 0))
        async with open_bot(f"http://127.0.0.1:{taken.getsockname()[1]}") as bot:
            with pytest.raises(NotSent) as caught:
                await bot.send(DM, TEXT)
    assert caught.value.__context__ is None


async def test_an_answer_that_does_not_come_in_time_is_unknown(canned: Any, host: Any) -> None:
    from dragoman import Secret
    from dragoman_telegram.api import Connector

    async with canned(b"hang") as server:
        secret = Secret("env TOKEN", TOKEN)
        connector = await Connector.prepare(secret, server.url, host.network)
        async with connector.open(answer_timeout=0.05) as api:
            with pytest.raises(Unknown, match="ReadTimeout"):
                await api.call("sendMessage", chat_id=1, text="x")
        assert len(server.paths) == 1
        assert TOKEN not in repr((connector, api))


def keep(events: list[Inbound]) -> Callable[[Inbound], Any]:
    async def deliver(event: Inbound) -> None:
        events.append(event)

    return deliver


def update(number: int, **fields: Any) -> dict[str, Any]:
    chat = {"id": -5, "type": "group"}
    return {
        "update_id": number,
        "message": {"message_id": 1, "date": 1, "chat": chat, "from": {"id": 5}, "text": "x"}
        | fields,
    }


async def test_fc_dup_04_broken_and_unknown_updates_are_skipped_and_confirmed(
    canned: Any, open_bot: OpenBot, ok: Any, no_token_in_logs: list[str]
) -> None:
    batch = [
        update(10),
        "nonsense",
        {"update_id": 11, "brand_new": {}},
        update(12, date="soon"),
        update(13, chat={"id": -5, "type": "galaxy"}),
    ]
    events: list[Inbound] = []
    async with canned(ok(ME), ok(batch), b"cut") as server, open_bot(server.url) as bot:
        with pytest.raises(Unknown):
            await bot.run(keep(events))
        assert [body["offset"] for body in server.bodies[1:]] == [0, 14]
        assert server.bodies[1]["allowed_updates"] == [
            "message",
            "edited_message",
            "channel_post",
            "edited_channel_post",
            "callback_query",
            "message_reaction",
            "my_chat_member",
        ]
    assert [event.native_id for event in events] == ["10", "13"]
    assert any("update 12: " in line and "skipped" in line for line in no_token_in_logs)
    assert any("galaxy" in line for line in no_token_in_logs)


async def test_update_ids_may_start_lower_after_a_silence(
    canned: Any, open_bot: OpenBot, ok: Any
) -> None:
    # facts/platforms.md 5.1: after a week without updates the next id is random.
    events: list[Inbound] = []
    script = (ok(ME), ok([update(900)]), ok([]), ok([update(5)]), b"cut")
    async with canned(*script) as server, open_bot(server.url) as bot:
        with pytest.raises(Unknown):
            await bot.run(keep(events))
        assert [body["offset"] for body in server.bodies[1:]] == [0, 901, 0, 6]
    assert [event.native_id for event in events] == ["900", "5"]


@pytest.mark.parametrize("batch", [{}, [{"message": {}}]], ids=["no-list", "no-ids"])
async def test_a_poll_answered_with_nonsense_counts_as_a_lost_connection(
    canned: Any, open_bot: OpenBot, ok: Any, batch: Any
) -> None:
    async with canned(ok(ME), ok(batch)) as server, open_bot(server.url) as bot:
        with pytest.raises(Unknown):
            await bot.run(keep([]))


async def test_a_large_batch_is_read_whole(canned: Any, open_bot: OpenBot, ok: Any) -> None:
    """Invariant 13: this one is parsed in a worker thread."""
    events: list[Inbound] = []
    batch = [update(n, text="é" * 4000) for n in range(1, 101)]
    async with canned(ok(ME), ok(batch), b"cut") as server, open_bot(server.url) as bot:
        with pytest.raises(Unknown):
            await bot.run(keep(events))
    assert len(events) == 100


async def test_another_account_stops_the_run_before_the_first_poll(
    canned: Any, open_bot: OpenBot, ok: Any, host: Any
) -> None:
    host.refusal = AccountMismatch("telegram", "6", "7")
    async with canned(ok(ME)) as server, open_bot(server.url) as bot:
        with pytest.raises(AccountMismatch):
            await bot.run(keep([]))
        assert len(server.paths) == 1
    assert host.bound == ["7"]


async def test_fc_cfg_05_privacy_mode_is_told_once_and_blank_messages_are_nothing(
    canned: Any, open_bot: OpenBot, ok: Any, no_token_in_logs: list[str]
) -> None:
    # facts/platforms.md 5.1: privacy mode hides ordinary group messages, without any error.
    events: list[Inbound] = []
    private = {**ME, "can_read_all_group_messages": False}
    group = {"id": -1001500000001, "type": "supergroup"}
    batch = [update(number, text="", chat=group) for number in range(1, 6)]
    script = (ok(private), ok(batch), b"cut", ok(private), b"cut")
    async with canned(*script) as server, open_bot(server.url) as bot:
        for _ in range(2):
            with pytest.raises(Unknown):
                await bot.run(keep(events))
    assert events == []
    assert sum("/setprivacy" in line for line in no_token_in_logs) == 1


async def test_the_proxy_of_the_network_policy_is_used(
    canned: Any, open_bot: OpenBot, ok: Any, host: Any
) -> None:
    async with canned(ok({"message_id": 1, "text": "x"})) as proxy:
        host.network = NetworkPolicy(proxy=proxy.url)
        async with open_bot("http://telegram.invalid/base") as bot:
            await bot.send(DM, TEXT)
        assert proxy.lines == [f"POST http://telegram.invalid/base/bot{TOKEN}/sendMessage HTTP/1.1"]


async def test_a_proxy_that_is_down_was_sent_nothing(open_bot: OpenBot, host: Any) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        host.network = NetworkPolicy(proxy=f"http://127.0.0.1:{taken.getsockname()[1]}")
        async with open_bot("https://telegram.invalid") as bot:
            with pytest.raises(NotSent):
                await bot.send(DM, TEXT)


async def test_calls_do_not_wait_behind_a_poll(canned: Any, open_bot: OpenBot, ok: Any) -> None:
    """Invariant 11: the poll has a pool of its own, so a send has its own connection."""
    script = (ok(ME), b"hang", ok({"message_id": 1, "text": "x"}))
    async with (
        canned(*script) as server,
        open_bot(server.url) as bot,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(bot.run, keep([]))
        with anyio.fail_after(60):
            while len(server.paths) < 2:
                await anyio.lowlevel.checkpoint()
            await bot.send(DM, TEXT)
        tasks.cancel_scope.cancel()


@pytest.mark.parametrize("native_id", ["", "abc", "-5"])
async def test_an_edit_of_what_can_be_no_message_asks_nobody(
    open_bot: OpenBot, native_id: str
) -> None:
    async with open_bot("http://127.0.0.1:1") as bot:
        with pytest.raises(Gone) as caught:
            await bot.edit(DM, native_id, TEXT)
    assert caught.value.what == "message"
