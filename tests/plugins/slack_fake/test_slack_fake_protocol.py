"""What only a bare client can ask: encodings, tokens, frames to the letter, faults at each stage."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from peers.slack_fake import App, Cut, Limits, SlackFake, SystemClock, Window

pytestmark = pytest.mark.anyio
ADA = "U0ADA"


async def call(http, method: str, **params):
    return (await http.post(method, json=params)).json()


async def test_parameters_come_in_four_ways(fake: SlackFake, room, http):
    blocks = [{"type": "divider"}]
    params = {"channel": room, "text": "x", "blocks": json.dumps(blocks)}
    for answer in (
        await http.get("chat.postMessage", params=params),
        await http.post("chat.postMessage", data=params),
        await http.post("chat.postMessage", json={**params, "blocks": blocks}),
        await http.post("chat.postMessage", data=params, files={"unused": ("a", b"b")}),
    ):
        assert answer.json()["message"]["blocks"][0]["type"] == "divider", answer.json()
    ways = [one.encoding for one in fake.calls]
    assert ways == ["query", "form", "json", "multipart"]


async def test_some_methods_do_not_see_json(fake: SlackFake, http):
    assert (await call(http, "users.info", user=ADA))["error"] == "user_not_found"
    assert (await http.post("users.info", data={"user": ADA})).json()["ok"]
    blind = await call(http, "files.getUploadURLExternal", filename="a", length=1)
    assert blind["error"] == "invalid_arguments"
    assert "missing required field: filename" in blind["response_metadata"]["messages"][0]


async def test_json_without_charset_is_warned_of(fake: SlackFake, http):
    assert (await call(http, "auth.test"))["warning"] == "missing_charset"
    typed = {"Content-Type": "application/json; charset=utf-8"}
    assert "warning" not in (await http.post("auth.test", content="{}", headers=typed)).json()
    for body, error in (("{", "invalid_json"), ("[]", "json_not_object")):
        answer = await http.post("auth.test", content=body, headers=typed)
        assert (answer.status_code, answer.json()["error"]) == (200, error)
    strange = await http.post("auth.test", content="x", headers={"Content-Type": "image/png"})
    assert strange.json()["error"] == "invalid_post_type"


async def test_tokens_are_looked_at(fake: SlackFake, http):
    async with httpx.AsyncClient(base_url=fake.url, trust_env=False) as bare:
        assert (await bare.post("auth.test")).json()["error"] == "not_authed"
        wrong = await bare.post("auth.test", headers={"Authorization": "Bearer xoxb-no"})
        assert wrong.json()["error"] == "invalid_auth"
        assert wrong.headers["x-slack-failure"] == "invalid_auth"
        in_body = await bare.post("auth.test", data={"token": fake.app.bot_token})
        assert in_body.json()["ok"]
        app_token = {"token": fake.app.app_token}
        for_app = await bare.post("apps.connections.open", data=app_token)
        assert for_app.json()["error"] == "not_authed"
        other = await bare.post("auth.test", data=app_token)
        assert other.json()["error"] == "not_allowed_token_type"
    wrong_kind = await call(http, "apps.connections.open")
    assert wrong_kind["error"] == "not_allowed_token_type"
    assert all(fake.app.bot_token not in str(one.params) for one in fake.calls)
    unknown = await call(http, "chat.sendPigeon")
    assert unknown == {"ok": False, "error": "unknown_method", "req_method": "chat.sendPigeon"}


@pytest.mark.parametrize(
    "fake", [{"app": App(scopes=frozenset({"chat:write", "im:history"}))}], indirect=True
)
async def test_what_was_not_granted_is_refused(fake: SlackFake, room, http):
    answer = await http.post("reactions.add", data={"channel": room})
    assert answer.json() == {
        "ok": False,
        "error": "missing_scope",
        "needed": "reactions:write",
        "provided": "chat:write,im:history",
    }
    assert answer.headers["x-oauth-scopes"] == "chat:write,im:history"
    assert answer.headers["x-accepted-oauth-scopes"] == "reactions:write"
    read = await http.post("conversations.history", data={"channel": room})
    assert read.json()["needed"] == "channels:history"
    direct = {"channel": fake.dm(ADA)}
    assert (await http.post("conversations.history", data=direct)).json()["ok"]


async def test_after_an_uninstall_nothing_is_granted(fake: SlackFake, room, http):
    fake.uninstall()
    assert [one.type for one in fake.deliveries] == ["app_uninstalled", "tokens_revoked"]
    assert (await call(http, "auth.test"))["error"] == "account_inactive"


async def test_limits_count_by_method_and_by_channel(fake: SlackFake, clock, room, http):
    fake.limits = Limits({"auth.test": Window(2, 60.0)}, channel=Window(1, 1.5))
    for _ in range(2):
        assert (await call(http, "auth.test"))["ok"]
    late = await http.post("auth.test")
    assert (late.status_code, late.headers["Retry-After"]) == (429, "60")
    assert late.json() == {"ok": False, "error": "ratelimited"}
    assert (await call(http, "team.info"))["ok"]
    clock.advance(60)
    assert (await call(http, "auth.test"))["ok"]
    other = fake.channel("other", ADA)
    await call(http, "chat.postMessage", channel=room, text="1")
    assert (await call(http, "chat.postMessage", channel=other, text="1"))["ok"]
    full = await http.post("chat.postMessage", json={"channel": room, "text": "2"})
    assert full.headers["Retry-After"] == "2"
    assert fake.said_by_bot(room) == ["1"]
    assert Limits.real_life().methods["chat.update"].count == 50


async def test_calls_fail_in_every_way(fake: SlackFake, room, http):
    say = {"channel": room, "text": "x"}
    fake.rate_limit("chat.postMessage", 7, count=2)
    for _ in range(2):
        answer = await http.post("chat.postMessage", json=say)
        assert (answer.status_code, answer.headers["Retry-After"]) == (429, "7")
    fake.fail("chat.postMessage", 503)
    assert (await http.post("chat.postMessage", json=say)).status_code == 503
    fake.refuse("chat.postMessage", "fatal_error")
    assert (await call(http, "chat.postMessage", **say))["error"] == "fatal_error"
    fake.cut("chat.postMessage")
    with pytest.raises(httpx.TransportError):
        await http.post("chat.postMessage", json=say)
    assert fake.said_by_bot(room) == []
    fake.cut("chat.postMessage", after_apply=True)
    with pytest.raises(httpx.TransportError):
        await http.post("chat.postMessage", json=say)
    assert fake.said_by_bot(room) == ["x"]
    fake.fail("chat.postMessage", 500, apply=True)
    assert (await http.post("chat.postMessage", json=say)).status_code == 500
    assert fake.said_by_bot(room) == ["x", "x"]
    with pytest.raises(LookupError):
        fake.cut("chat.sendPigeon")
    fake.cut("auth.test", count=None)
    fake.heal()
    assert (await call(http, "auth.test"))["ok"]


async def test_a_call_is_held_until_its_gate_opens(fake: SlackFake, room, http):
    gate = fake.hold("chat.postMessage", after_apply=True)
    sending = asyncio.create_task(call(http, "chat.postMessage", channel=room, text="x"))
    await fake.reached(lambda: [c.fate for c in fake.calls] == ["held"])
    assert fake.said_by_bot(room) == ["x"]
    assert (await call(http, "auth.test"))["ok"], "others go on"
    assert not sending.done()
    gate.open()
    assert (await sending)["ok"]


async def test_a_callback_decides_at_every_stage(fake: SlackFake, room, http):
    stages = []

    def decide(call):
        stages.append((call.method, call.stage))
        return Cut() if call.params.get("text") == "cut" and call.stage == "applied" else None

    fake.on_call(decide)
    await call(http, "chat.postMessage", channel=room, text="x")
    with pytest.raises(httpx.TransportError):
        await call(http, "chat.postMessage", channel=room, text="cut")
    fake.on_call(None)
    assert fake.said_by_bot(room) == ["x", "cut"]
    assert [stage for _, stage in stages] == [
        "arrived",
        "applied",
        "answered",
        "arrived",
        "applied",
    ]


async def test_uploads_are_what_was_announced(fake: SlackFake, room, http):
    form = {"filename": "a b.txt", "length": 3}
    made = (await http.post("files.getUploadURLExternal", data=form)).json()
    done = {"files": json.dumps([{"id": made["file_id"]}]), "channel_id": room}
    early = await http.post("files.completeUploadExternal", data=done)
    assert early.json()["error"] == "file_not_found"
    assert (await http.post(made["upload_url"], content=b"four")).status_code == 400
    taken = await http.post(made["upload_url"], files={"file": ("a", b"abc")})
    assert (taken.text, taken.headers["content-type"]) == ("OK - 3", "text/plain")
    answer = (await http.post("files.completeUploadExternal", data=done)).json()
    assert answer["files"][0]["url_private"].endswith("/a%20b.txt")
    assert (await http.get(answer["files"][0]["url_private"])).content == b"abc"
    fake.cut("download")
    with pytest.raises(httpx.TransportError):
        await http.get(answer["files"][0]["url_private"])


async def test_a_response_url_is_good_for_five_answers(fake: SlackFake, clock, room, http):
    url = fake.slash(room, ADA, "/ask").payload["response_url"]
    for n in range(5):
        assert (await http.post(url, json={"text": str(n)})).json() == {"ok": True}
    spent = await http.post(url, json={"text": "6"})
    assert (spent.status_code, spent.json()["error"]) == (404, "used_url")
    assert [one.source for one in fake.ephemerals(room, ADA)] == ["0", "1", "2", "3", "4"]
    late = fake.slash(room, ADA, "/ask").payload["response_url"]
    clock.advance(1801)
    assert (await http.post(late, json={"text": "x"})).json()["error"] == "expired_url"
    assert (await http.post(late + "0", json={"text": "x"})).status_code == 404


async def test_an_answer_takes_the_place_of_the_buttons(fake: SlackFake, room, http):
    button = {"type": "button", "action_id": "ok", "text": {"type": "plain_text", "text": "OK"}}
    blocks = [{"type": "actions", "elements": [button]}]
    sent = await call(http, "chat.postMessage", channel=room, text="sure?", blocks=blocks)
    hidden = await call(
        http, "chat.postEphemeral", channel=room, user=ADA, text="psst", blocks=blocks
    )
    for ts in (sent["ts"], hidden["message_ts"]):
        pressed = fake.press(room, ts, ADA, "ok")
        answer = {"text": "done", "replace_original": True}
        await http.post(pressed.payload["response_url"], json=answer)
    assert [(one.source, one.actions) for one in fake.shown(room)] == [("done", ())]
    assert [one.source for one in fake.ephemerals(room)] == ["done"]
    pressed = fake.press
    with pytest.raises(LookupError):
        pressed(room, sent["ts"], ADA, "ok")


async def test_a_trigger_opens_one_dialog_and_soon(fake: SlackFake, clock, room, http):
    title = {"type": "plain_text", "text": "Form"}
    view = {"type": "modal", "title": title, "blocks": [], "external_id": "mine"}
    first = fake.slash(room, ADA, "/form").payload["trigger_id"]
    opened = await call(http, "views.open", trigger_id=first, view=view)
    assert opened["view"]["team_id"] == fake.team.id
    again = await call(http, "views.open", trigger_id=first, view=view)
    assert again["error"] == "exchanged_trigger_id"
    late = fake.slash(room, ADA, "/form").payload["trigger_id"]
    clock.advance(4)
    expired = await call(http, "views.open", trigger_id=late, view=view)
    assert expired["error"] == "expired_trigger_id"
    wrong = await call(http, "views.open", trigger_id="x", view=view)
    assert wrong["error"] == "invalid_trigger_id"
    stale = await call(http, "views.update", external_id="mine", view=view, hash="x")
    assert stale["error"] == "hash_conflict"
    updated = await call(http, "views.update", external_id="mine", view=view)
    assert updated["view"]["id"] == opened["view"]["id"]
    assert fake.close_view(opened["view"]["id"], ADA).payload["type"] == "view_closed"


class Listener:
    """An HTTP application that answers as it is told, and keeps what it was sent."""

    def __init__(self) -> None:
        self.got: list[dict[str, Any]] = []
        self.answers: list[Any] = []
        self.arrived = asyncio.Semaphore(0)
        self.hold = asyncio.Event()

    async def take(self, request):
        from aiohttp import web

        self.got.append({**request.headers, "body": json.loads(await request.read())})
        self.arrived.release()
        answer = self.answers.pop(0) if self.answers else web.Response()
        if answer is None:
            await self.hold.wait()
            return web.Response()
        return answer


@pytest.fixture
async def listener(fake: SlackFake) -> AsyncIterator[Listener]:
    from aiohttp import web

    found, app = Listener(), web.Application()
    app.router.add_post("/events", found.take)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    fake.deliver_to(f"http://127.0.0.1:{runner.addresses[0][1]}/events")
    yield found
    found.hold.set()
    await runner.cleanup()


async def test_http_is_tried_again_with_the_reason(fake: SlackFake, clock, room, listener):
    from aiohttp import web

    listener.answers = [web.Response(status=500), None, None]
    [delivery] = fake.say(room, ADA, "hello").deliveries
    await listener.arrived.acquire()
    for pause in (60, 300):
        await asyncio.wait_for(listener.arrived.acquire(), 10)
        clock.advance(3)
        clock.advance(pause)
    await fake.reached(lambda: delivery.fate == "acked")
    retries = [(g.get("X-Slack-Retry-Num"), g.get("X-Slack-Retry-Reason")) for g in listener.got]
    assert retries == [
        (None, None),
        ("1", "http_error"),
        ("2", "http_timeout"),
        ("3", "http_timeout"),
    ]
    assert len({one["body"]["event_id"] for one in listener.got}) == 1


async def test_an_app_may_want_no_retry(fake: SlackFake, room, listener):
    from aiohttp import web

    listener.answers = [web.Response(status=503, headers={"X-Slack-No-Retry": "1"})]
    [delivery] = fake.say(room, ADA, "hello").deliveries
    await fake.reached(lambda: delivery.fate == "lost")
    assert len(listener.got) == 1


async def test_nobody_listens(fake: SlackFake, room):
    fake.deliver_to("http://127.0.0.1:9/events")
    [delivery] = fake.say(room, ADA, "hello").deliveries
    failed = ["connection_failed"] * 2
    await fake.reached(lambda: [one.outcome for one in delivery.attempts] == failed)
    assert not await fake.verify_url("http://127.0.0.1:9/events")


async def test_events_of_a_type_are_held_back(fake: SlackFake, room, listener):
    release = fake.hold_events("app_mention")
    said = fake.say(room, ADA, fake.mention)
    await fake.reached(lambda: said.deliveries[0].fate == "acked")
    assert said.deliveries[1].attempts == []
    release()
    await fake.reached(lambda: said.deliveries[1].fate == "acked")


async def connect(fake: SlackFake, session: Any, more: str = "") -> Any:
    bearer = {"Authorization": f"Bearer {fake.app.app_token}"}
    async with session.post(fake.url + "apps.connections.open", headers=bearer) as answer:
        url = (await answer.json())["url"]
    return await session.ws_connect(url + more, autoping=False)


async def test_frames_to_the_letter(fake: SlackFake, clock, room):
    import aiohttp

    async with aiohttp.ClientSession(trust_env=False) as session:
        socket = await connect(fake, session, "&debug_reconnects=true")
        hello = await socket.receive_json()
        assert hello["debug_info"]["approximate_connection_time"] == 360
        assert hello["connection_info"] == {"app_id": fake.app.id}
        await socket.ping(b"mine")
        pong = await socket.receive()
        assert (pong.type, pong.data) == (aiohttp.WSMsgType.PONG, b"mine")
        fake.say(room, ADA, "hello")
        frame = await socket.receive_json()
        assert sorted(frame) == [
            "accepts_response_payload",
            "envelope_id",
            "payload",
            "retry_attempt",
            "retry_reason",
            "type",
        ]
        await socket.send_str("no JSON at all")
        await socket.send_json({"envelope_id": frame["envelope_id"]})
        await fake.reached(lambda: fake.deliveries[0].fate == "acked")
        clock.advance(350)
        frames = [await socket.receive() for _ in range(2)]
        [warning] = [json.loads(f.data) for f in frames if f.type is aiohttp.WSMsgType.TEXT]
        assert warning["reason"] == "warning"
        assert aiohttp.WSMsgType.PING in {frame.type for frame in frames}
        fake.stop_pings()
        clock.advance(10)
        asked = await socket.receive_json()
        assert (asked["type"], asked["reason"]) == ("disconnect", "refresh_requested")
        assert (await socket.receive()).type is aiohttp.WSMsgType.CLOSE
        await socket.close()


async def test_a_ticket_is_good_for_one_connection(fake: SlackFake):
    import aiohttp

    async with aiohttp.ClientSession(trust_env=False) as session:
        socket = await connect(fake, session)
        url = str(socket._response.url)
        with pytest.raises(aiohttp.WSServerHandshakeError):
            await session.ws_connect(url)
        await socket.close()


async def test_a_clock_that_runs_faster():
    """A minute passes in some milliseconds; retries need no clock that is moved by hand."""
    clock = SystemClock(speed=10_000)
    with SlackFake(clock=clock) as fake:
        room = fake.channel("general", ADA)
        [delivery] = fake.say(room, ADA, "hello").deliveries
        await fake.reached(lambda: delivery.fate == "lost")
        assert [one.reason for one in delivery.attempts] == ["", *["no_connection"] * 3]
