"""The HTTP interface behind the shim, spoken to without a library."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest

from peers.yepcord import Yepcord

pytestmark = pytest.mark.anyio


@pytest.fixture
async def http(yepcord: Yepcord) -> AsyncIterator[httpx2.AsyncClient]:
    """A client with the bot's token."""
    async with httpx2.AsyncClient(
        base_url=yepcord.api_url,
        headers={"Authorization": f"Bot {yepcord.bot.token}"},
        trust_env=False,
        timeout=10,
    ) as client:
        yield client


async def test_where_the_gateway_is_and_how_often_it_may_be_entered(yepcord, http):
    answer = await http.get("/gateway/bot")
    assert answer.json()["url"] == yepcord.gateway_url
    assert answer.json()["session_start_limit"]["max_concurrency"] == 1
    assert answer.headers["content-type"] == "application/json"
    stranger = await http.get("/gateway/bot", headers={"Authorization": "Bot nobody"})
    assert stranger.status_code == 401


async def test_a_lost_answer_is_asked_for_again_and_shown_once(yepcord, room, http):
    path, body = f"/channels/{room}/messages", {"content": "once", "nonce": "a-part"}
    yepcord.shim.lose_answer("POST", "/messages")
    with pytest.raises(httpx2.TransportError):
        await http.post(path, json=body | {"enforce_nonce": True})
    assert yepcord.anna.texts(room) == ["once"], "it was carried out"
    again = await http.post(path, json=body | {"enforce_nonce": True})
    [shown] = yepcord.anna.messages(room)
    assert (shown["content"], shown["id"]) == ("once", again.json()["id"])
    twice = [await http.post(path, json=body) for _ in range(2)]
    assert len({again.json()["id"], *(answer.json()["id"] for answer in twice)}) == 3


async def test_a_request_that_was_cut_has_done_nothing(yepcord, room, http):
    yepcord.shim.cut("POST", "/messages")
    with pytest.raises(httpx2.TransportError):
        await http.post(f"/channels/{room}/messages", json={"content": "never"})
    assert yepcord.anna.texts(room) == []
    yepcord.shim.refuse("POST", "/messages", 502, "<html>Bad Gateway</html>", Retry_After="1")
    answer = await http.post(f"/channels/{room}/messages", json={"content": "never"})
    assert (answer.status_code, answer.headers["retry-after"]) == (502, "1")
    assert answer.headers["content-type"] == "text/html"
    assert [call.status for call in yepcord.shim.journal.calls] == [0, 502]


async def test_each_channel_has_a_limit_and_says_so(yepcord, room, http):
    async def send(channel: str, number: int) -> Any:
        path = f"/channels/{channel}/messages"
        return await http.post(path, json={"content": f"part {number}"})

    yepcord.shim.limits.window = 30.0
    try:
        answers = [await send(room, number) for number in range(6)]
        other = await send(yepcord.channel(), 0)
        yepcord.shim.limits.silent = True
        silent = await send(yepcord.channel(), 0)
    finally:
        yepcord.shim.limits.silent = False
        yepcord.shim.limits.window = 1.0
    left = [answer.headers["x-ratelimit-remaining"] for answer in answers]
    assert left == ["4", "3", "2", "1", "0", "0"]
    refused = answers[-1]
    assert refused.status_code == 429
    assert 0 < refused.json()["retry_after"] <= 30
    assert refused.json()["global"] is False
    assert refused.headers["x-ratelimit-scope"] == "user"
    assert "via" in refused.headers
    assert int(refused.headers["retry-after"]) >= refused.json()["retry_after"]
    assert other.status_code == 200
    assert "x-ratelimit-limit" not in silent.headers
    assert len(yepcord.anna.texts(room)) == 5


@pytest.mark.parametrize(
    ("body", "code"),
    [({"content": "x" * 2001}, 50035), ({"content": ""}, 50006), ({"nonce": "n" * 26}, 50035)],
)
async def test_a_message_that_does_not_fit_is_refused(yepcord, room, http, body, code):
    answer = await http.post(f"/channels/{room}/messages", json={"content": "x", **body})
    assert (answer.status_code, answer.json()["code"]) == (400, code)


async def test_a_press_is_answered_once_and_in_time(yepcord, room, http):
    buttons = [{"type": 1, "components": [{"type": 2, "style": 1, "custom_id": "go"}]}]
    asked = {"content": "go?", "components": buttons}
    await http.post(f"/channels/{room}/messages", json=asked)
    [shown] = yepcord.anna.messages(room)
    sessions = yepcord.shim.gateway.sessions
    assert not sessions, "an interaction is answered over HTTP, whoever heard of it"
    presses = []
    for _ in range(2):
        [button] = shown["components"][0]["components"]
        presses.append(yepcord.shim.interactions.press(shown, button, yepcord.bot.id))
    path = "/interactions/{id}/{token}/callback".format_map(presses[0])
    body = {"type": 7, "data": {"content": "gone", "components": []}}
    assert (await http.post(path, json=body)).status_code == 204
    again = await http.post(path, json=body)
    assert (again.status_code, again.json()["code"]) == (400, 40060)
    yepcord.shim.interactions.prompt = 0.0
    try:
        late = await http.post(
            "/interactions/{id}/{token}/callback".format_map(presses[1]), json={"type": 6}
        )
    finally:
        yepcord.shim.interactions.prompt = 3.0
    assert (late.status_code, late.json()["code"]) == (404, 10062)
    [shown] = yepcord.ben.messages(room)
    assert (shown["content"], shown["components"]) == ("gone", [])
