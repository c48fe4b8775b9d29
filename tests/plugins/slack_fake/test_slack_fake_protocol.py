"""What only a bare client can ask: encodings, tokens, limits, faults at each stage."""

from __future__ import annotations

import asyncio
import json

import httpx
import pytest

from peers.slack_fake import App, Cut, Limits, SlackFake, Window

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
