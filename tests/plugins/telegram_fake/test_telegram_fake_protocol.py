"""What only a bare client can ask: encodings, polls to the letter, faults at each stage."""

from __future__ import annotations

import json
import os
import signal
import socket
import struct
import subprocess
import sys
import time

import anyio
import pytest

from peers.telegram_fake import (
    Cut,
    Delay,
    Hold,
    Limits,
    ManualClock,
    Reply,
    TelegramFake,
    Window,
)

pytestmark = pytest.mark.anyio
PERSON, GROUP, FORUM = 700000001, -1500000001, -1001500000002


async def call(http, method: str, **params):
    return (await http.post(method, json=params)).json()


async def result(http, method: str, **params):
    answer = await call(http, method, **params)
    assert answer["ok"], answer
    return answer["result"]


async def refused(http, method: str, **params) -> str:
    answer = await call(http, method, **params)
    assert not answer["ok"], answer
    return answer["description"]


async def test_parameters_come_in_four_ways_and_methods_in_any_case(fake: TelegramFake, http):
    fake.say(PERSON, PERSON, "?")
    markup = {"inline_keyboard": [[{"text": "Go", "callback_data": "go"}]]}
    params = {"chat_id": str(PERSON), "text": "x", "reply_markup": json.dumps(markup)}
    for answer in (
        await http.get("SENDMESSAGE", params=params),
        await http.post("sendmessage", data=params),
        await http.post("sendMessage", json={**params, "reply_markup": markup}),
        await http.post("sendMessage", data=params, files={"unused": ("a", b"b")}),
    ):
        assert answer.json()["result"]["reply_markup"] == markup
    assert {call.method for call in fake.calls} == {"sendMessage"}
    assert all(
        c.params == {**params, "chat_id": PERSON, "reply_markup": markup} for c in fake.calls
    )


async def test_what_the_reference_does_not_know_is_refused(fake: TelegramFake, http):
    fake.say(PERSON, PERSON, "?")
    send = {"chat_id": PERSON, "text": "x"}
    assert (await http.get("sendPigeon")).status_code == 404
    assert await refused(http, "sendPigeon") == "Not Found: method not found"
    assert 'unknown parameter "colour"' in await refused(http, "sendMessage", **send, colour=1)
    preview = {"is_disabled": True, "colour": 1}
    assert "unknown field" in await refused(
        http, "sendMessage", **send, link_preview_options=preview
    )
    assert "must be an integer" in await refused(http, "getUpdates", offset="soon")
    assert "parse entities" in await refused(http, "sendMessage", **send, entities="[")
    assert fake.said_by_bot(PERSON) == []
    wrong = str(http.base_url)[:-2] + "y"
    assert (await http.get(f"{wrong}/getMe")).status_code == 401
    assert (await http.get(fake.url + "/bot/getMe")).json()["description"] == "Not Found"


async def test_a_lenient_server_passes_over_what_it_does_not_know():
    import httpx

    with TelegramFake(strict=False) as fake:
        fake.say(PERSON, PERSON, "?")
        async with httpx.AsyncClient(trust_env=False) as http:
            url = f"{fake.url}/bot{fake.token}/sendMessage"
            answer = await http.post(url, json={"chat_id": PERSON, "text": "x", "colour": 1})
    assert answer.status_code == 200


async def test_a_poll_confirms_by_its_offset_and_only_by_it(fake: TelegramFake, http):
    numbers = [fake.say(PERSON, PERSON, f"m{n}").update_id for n in range(4)]

    async def poll(**params) -> list[int]:
        return [one["update_id"] for one in await result(http, "getUpdates", **params)]

    assert await poll() == numbers
    assert await poll(offset=numbers[1], limit=2) == numbers[1:3]
    assert await poll(offset=0) == numbers[1:]
    assert await poll(offset=-2) == numbers[2:]
    assert await poll(offset=numbers[-1] + 4000) == numbers[2:], "too far ahead is a mistake"
    assert await poll(offset=numbers[2] + (1 << 32)) == numbers[2:], "32 bits wrap around"
    assert await poll(limit=0) == numbers[2:3]
    assert await poll(offset=numbers[-1] + 1, timeout=0) == []
    assert fake.pending() == ()
    fake.skip_updates(1000)
    assert fake.say(PERSON, PERSON, "later").update_id == numbers[-1] + 1001


@pytest.mark.parametrize("fake", [{"repeat_wait": 20.0}], indirect=True)
async def test_the_same_offset_again_is_slowed_down(fake: TelegramFake, http):
    """R5a: one update at a time within half a second, and a wait although none was asked for."""
    numbers = [fake.say(PERSON, PERSON, f"m{n}").update_id for n in range(2)]
    polls = [await result(http, "getUpdates", offset=numbers[0]) for _ in range(2)]
    assert [len(one) for one in polls] == [2, 1]
    await result(http, "getUpdates", offset=numbers[1])
    fake.say(PERSON, PERSON, "third")
    empty = numbers[1] + 2
    assert await result(http, "getUpdates", offset=empty) == []
    async with anyio.create_task_group() as tasks:

        async def again() -> None:
            [update] = await result(http, "getUpdates", offset=empty)
            assert update["message"]["text"] == "fourth"

        tasks.start_soon(again)
        await fake.reached(lambda: len(fake.calls) == 5)
        assert "answered" not in fake.calls[-1].stages
        fake.say(PERSON, PERSON, "fourth")


async def test_kinds_are_chosen_once_for_all_later_updates(fake: TelegramFake, http):
    said = fake.say(PERSON, PERSON, "one")
    assert fake.react(PERSON, said.message_id, PERSON, "👍") is None, "not without being asked for"
    await result(http, "getUpdates", allowed_updates=["message_reaction", "no such kind"])
    assert fake.say(PERSON, PERSON, "two").update_id is None
    assert fake.react(PERSON, said.message_id, PERSON, "❤") == said.update_id + 1
    await result(http, "getUpdates")
    assert fake.say(PERSON, PERSON, "three").update_id is None, "the choice stays"
    await result(http, "getUpdates", allowed_updates=[])
    assert fake.say(PERSON, PERSON, "four").update_id == said.update_id + 2


async def test_updates_live_a_day_and_presses_less(fake: TelegramFake, http, clock: ManualClock):
    fake.say(PERSON, PERSON, "?")
    sent = await result(
        http,
        "sendMessage",
        chat_id=PERSON,
        text="Go?",
        reply_markup={"inline_keyboard": [[{"text": "Go", "callback_data": "go"}]]},
    )
    pressed = fake.press(PERSON, sent["message_id"], PERSON, "go")
    assert len(fake.pending()) == 2
    clock.advance(151)
    assert len(fake.pending()) == 1
    late = await refused(http, "answerCallbackQuery", callback_query_id=pressed.query_id)
    assert "query is too old" in late
    clock.advance(86_400)
    assert await result(http, "getUpdates") == []


async def test_an_answer_stays_below_four_megabytes(fake: TelegramFake, http):
    for _ in range(5):
        fake.enqueue({"message": {"filler": "x" * (1 << 20)}})
    assert len(await result(http, "getUpdates")) == 3
    assert len(fake.pending()) == 5


@pytest.mark.parametrize("fake", [{"conflict_pause": 0.6}], indirect=True)
async def test_conflicts_that_follow_each_other_are_told_late(fake: TelegramFake, http):
    done = []

    async def poll(name: str) -> None:
        answer = await call(http, "getUpdates", timeout=20)
        done.append((name, answer.get("error_code")))

    async with anyio.create_task_group() as tasks:
        for count, name in enumerate(("first", "second", "third"), start=1):
            tasks.start_soon(poll, name)
            await fake.reached(lambda count=count: len(fake.calls) == count)
        await fake.reached(lambda: "answered" in fake.calls[1].stages)
        fake.say(PERSON, PERSON, "hi")
    assert done == [("first", 409), ("second", 409), ("third", None)]
    await fake.reached(lambda: all("answered" in one.stages for one in fake.calls))
    told = [one.stages["answered"] for one in fake.calls]
    assert told[1] - told[0] > 0.5


async def test_fc_net_03_a_stalled_poll_is_never_answered_and_others_are(fake: TelegramFake, http):
    """The half-open connection: accepted, never answered, nothing confirmed."""
    first = fake.say(PERSON, PERSON, "one").update_id
    fake.stall_polls(count=1)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(lambda: call(http, "getUpdates", offset=first + 1))
        await fake.reached(lambda: fake.calls and fake.calls[0].fate == "held")
        assert await result(http, "getMe")
        tasks.cancel_scope.cancel()
    assert [one["update_id"] for one in await result(http, "getUpdates")] == [first]
    assert "answered" not in fake.calls[0].stages
    fake.stall_polls()
    with anyio.move_on_after(0.1):
        await call(http, "getUpdates")
    fake.resume_polls()
    assert len(await result(http, "getUpdates")) == 1


async def test_each_stage_can_be_held_cut_delayed_and_replaced(fake: TelegramFake, http):
    import httpx

    fake.say(PERSON, PERSON, "?")
    plan = {
        "one": ("arrived", Cut()),
        "two": ("arrived", Cut(apply=True)),
        "three": ("applied", Cut()),
        "four": ("answered", None),
        "five": ("arrived", Reply(502, b"<html>bad gateway</html>")),
        "six": ("applied", Reply(500, {"ok": False, "error_code": 500, "description": "x"})),
        "seven": ("arrived", Delay(0.01)),
    }
    seen = []

    def decide(one):
        seen.append((one.params["text"], one.stage))
        stage, action = plan[one.params["text"]]
        return action if stage == one.stage else None

    fake.on_call(decide)
    ended = {}
    for text in plan:
        try:
            answer = await http.post("sendMessage", json={"chat_id": PERSON, "text": text})
            ended[text] = answer.status_code
        except httpx.NetworkError:
            ended[text] = "cut"
        except httpx.RemoteProtocolError:
            ended[text] = "cut"
    await fake.reached(lambda: fake.calls[-1].stages.get("answered"))
    assert ended == {
        "one": "cut",
        "two": "cut",
        "three": "cut",
        "four": 200,
        "five": 502,
        "six": 500,
        "seven": 200,
    }
    assert fake.said_by_bot(PERSON) == ["two", "three", "four", "six", "seven"]
    assert [stage for text, stage in seen if text == "four"] == ["arrived", "applied", "answered"]
    assert [one.fate for one in fake.calls] == ["cut", "cut", "cut", "", "replaced", "replaced", ""]


async def test_a_coroutine_may_decide_and_a_gate_lets_go(fake: TelegramFake, http):
    fake.say(PERSON, PERSON, "?")
    gate = fake.hold("sendMessage", after_apply=True)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(lambda: result(http, "sendMessage", chat_id=PERSON, text="x"))
        await fake.reached(lambda: fake.calls and fake.calls[0].fate == "held")
        assert fake.said_by_bot(PERSON) == ["x"]
        gate.open()
    assert fake.calls[0].ok

    async def decide(one):
        return Hold() if one.stage == "applied" else None

    fake.on_call(decide)
    with anyio.move_on_after(0.2) as patience:
        await call(http, "getMe")
    assert patience.cancelled_caught
    fake.on_call(None)
    assert await result(http, "getMe")


CLIENT = """
import json, sys, urllib.request
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
body = json.dumps({"chat_id": int(sys.argv[2]), "text": "x"}).encode()
request = urllib.request.Request(sys.argv[1], body, {"content-type": "application/json"})
opener.open(request).read()
print("read", flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize(
    ("stage", "shown"), [("arrived", ["x"]), ("applied", ["x"]), ("answered", ["x"])]
)
async def test_a_client_can_be_killed_exactly_at_a_stage(fake: TelegramFake, stage, shown):
    """The call stands still while its client dies, then goes on without it."""
    fake.say(PERSON, PERSON, "?")
    url = f"{fake.url}/bot{fake.token}/sendMessage"
    before = []
    client = subprocess.Popen(  # noqa: ASYNC220 - starting a program holds nobody up here
        [sys.executable, "-c", CLIENT, url, str(PERSON)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )

    def kill(one) -> None:
        if one.stage == stage:
            before.append((fake.said_by_bot(PERSON), client.poll()))
            os.kill(client.pid, signal.SIGKILL)
            client.wait(60)

    fake.on_call(kill)
    await fake.reached(lambda: fake.calls and fake.calls[0].status == 200)
    client.communicate(timeout=60)
    assert before == [([] if stage == "arrived" else ["x"], None)]
    assert client.returncode == -signal.SIGKILL
    assert fake.said_by_bot(PERSON) == shown


async def test_flood_limits_let_a_burst_through_and_say_how_long_to_wait(
    fake: TelegramFake, http, clock: ManualClock
):
    fake.say(PERSON, PERSON, "?")
    fake.say(GROUP, PERSON, "?")
    fake.limits = Limits.real_life()
    sends = [
        await http.post("sendMessage", json={"chat_id": PERSON, "text": str(n)}) for n in range(6)
    ]
    assert [one.status_code for one in sends] == [200] * 5 + [429]
    assert sends[-1].json()["parameters"] == {"retry_after": 5}
    assert sends[-1].headers["retry-after"] == "5"
    assert sends[-1].json()["description"] == "Too Many Requests: retry after 5"
    clock.advance(5)
    await result(http, "sendMessage", chat_id=PERSON, text="again")
    fake.limits = Limits(group=Window(20, 60.0), edits=Window(1, 3.0))
    for _ in range(20):
        sent = await result(http, "sendMessage", chat_id=GROUP, text="x")
    assert (
        await refused(http, "sendMessage", chat_id=GROUP, text="x")
        == "Too Many Requests: retry after 60"
    )
    edit = {"chat_id": GROUP, "message_id": sent["message_id"]}
    await result(http, "editMessageText", **edit, text="y")
    assert "retry after 3" in await refused(http, "editMessageText", **edit, text="z")


async def test_topics_can_be_closed_and_the_general_one_is_not_named(fake: TelegramFake, http):
    fake.add_chat(FORUM, "forum", bot_is_admin=False)
    thread = fake.topic(FORUM, "Plans", PERSON)
    inside = {"chat_id": FORUM, "message_thread_id": thread, "text": "x"}
    sent = await result(http, "sendMessage", **inside)
    assert sent["reply_to_message"]["forum_topic_created"]["name"] == "Plans"
    fake.close_topic(FORUM, thread)
    assert await refused(http, "sendMessage", **inside) == "Bad Request: TOPIC_CLOSED"
    general = {"chat_id": FORUM, "message_thread_id": 1}
    assert "thread not found" in await refused(http, "sendMessage", **general, text="x")
    assert await result(http, "sendChatAction", **general, action="typing")
    assert await refused(http, "sendChatAction", **general, action="dancing")
    assert "not enough rights" in await refused(http, "createForumTopic", chat_id=FORUM, name="n")


async def test_a_wait_that_fails_says_what_was_called(fake: TelegramFake, http):
    await call(http, "getMe")
    began = time.monotonic()
    with pytest.raises(TimeoutError, match="getMe answered 200"):
        await fake.reached(lambda: False, 0.05)
    assert time.monotonic() - began < 5


@pytest.mark.parametrize("reset", [True, False])
async def test_a_client_that_dies_while_it_asks_has_made_no_call(http, clock, reset):
    with TelegramFake(clock=clock) as fake:
        with socket.create_connection(("127.0.0.1", fake._server.port)) as client:
            client.sendall(
                f"POST /bot{fake.token}/sendMessage HTTP/1.1\r\nHost: localhost\r\n"
                'Content-Type: application/json\r\nContent-Length: 999\r\n\r\n{"chat_'.encode()
            )
            with anyio.fail_after(60):
                while not fake._server._open:  # noqa: ASYNC110 - the server rings no bell
                    await anyio.sleep(0.005)
            if reset:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        with anyio.fail_after(5):
            while fake._server._open:  # noqa: ASYNC110 - the server rings no bell
                await anyio.sleep(0.005)
        assert fake.calls == []
