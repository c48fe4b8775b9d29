"""What only a bare client can ask: mistakes in Discord's words, limits, faults at each stage."""

from __future__ import annotations

import re

import anyio
import pytest

from peers.discord_fake import Cut, DiscordFake, Limits, ManualClock, Window
from plugins.discord_fake.asking import refused, send

pytestmark = pytest.mark.anyio


async def test_who_calls_says_so_and_calls_what_there_is(fake: DiscordFake, channel: int, http):
    assert (await http.get("users/@me")).json()["id"] == str(fake.bot_id)
    assert (await http.get("gateway")).json() == {"url": fake.gateway_url}
    for headers, expected in (
        ({"Authorization": f"Bot {fake.token}x"}, (401, 0)),
        ({"Authorization": fake.token}, (401, 0)),
        ({"User-Agent": "curl/8"}, (403, 40333)),
    ):
        assert refused(await http.get("users/@me", headers=headers)) == expected
    assert refused(await http.get("users/@nobody/x")) == (404, 0)
    assert refused(await http.put("users/@me")) == (405, 0)
    assert fake.invalid_calls == 3
    assert all(fake.token not in str(call.headers) for call in fake.calls)


async def test_what_is_not_there_or_not_allowed_has_its_code(
    fake: DiscordFake, guild: int, channel: int, ada: int, http
):
    theirs = fake.say(channel, ada, "theirs")
    hidden, silent = (fake.add_channel(guild, name) for name in ("hidden", "silent"))
    forum = fake.add_channel(guild, "forum", "forum")
    fake.forbid(hidden, "VIEW_CHANNEL")
    fake.forbid(silent, "SEND_MESSAGES")
    closed = fake.dm(fake.person("closed", open_to_bots=False))
    assert refused(await send(http, 12345, content="x")) == (404, 10003)
    assert refused(await send(http, hidden, content="x")) == (403, 50001)
    assert refused(await send(http, silent, content="x")) == (403, 50013)
    assert refused(await send(http, closed, content="x")) == (403, 50007)
    assert refused(await send(http, forum, content="x")) == (400, 50008)
    message = f"channels/{channel}/messages/{theirs}"
    assert refused(await http.patch(message, json={"content": "x"})) == (403, 50005)
    assert refused(await http.delete(message)) == (403, 50013)
    assert refused(await http.put(f"{message}/reactions/x/@me")) == (400, 10014)
    gone = f"channels/{channel}/messages/{theirs + 1}"
    for verb in (http.get, http.delete):
        assert refused(await verb(gone)) == (404, 10008)
    assert refused(await http.get(f"channels/{silent}/messages/{theirs}")) == (404, 10008)
    fake.permit(channel, "MANAGE_MESSAGES")
    assert (await http.delete(message)).status_code == 204
    assert refused(await http.get("guilds/1")) == (404, 10004)
    fake.expel(guild)
    assert refused(await send(http, channel, content="x")) == (403, 50001)


async def test_limits_are_told_kept_and_each_channel_s_own(
    fake: DiscordFake, guild: int, channel: int, clock: ManualClock, http
):
    fake.limits = Limits({"create_message": Window(2, 5.0)}, Window(4, 1.0))
    other = fake.add_channel(guild, "other")
    left = []
    for _ in range(2):
        answer = await send(http, channel, content="x")
        left.append(answer.headers["x-ratelimit-remaining"])
    assert left == ["1", "0"]
    assert answer.headers["x-ratelimit-reset-after"] == "5.000"
    over = await send(http, channel, content="x")
    assert over.status_code == 429
    assert over.json() == {
        "message": "You are being rate limited.",
        "retry_after": 5.0,
        "global": False,
    }
    assert (over.headers["retry-after"], over.headers["x-ratelimit-scope"]) == ("5", "user")
    assert over.headers["via"]
    assert (await send(http, other, content="x")).status_code == 200
    whole = await http.get("users/@me")
    assert (whole.status_code, whole.json()["global"]) == (429, True)
    assert whole.headers["x-ratelimit-global"] == "true"
    clock.advance(5)
    assert (await send(http, channel, content="x")).status_code == 200
    fake.limit("create_message", 3.5, scope="shared")
    shared = await send(http, channel, content="x")
    assert shared.headers["x-ratelimit-scope"] == "shared"
    assert fake.invalid_calls == 2, "what is shared counts for nobody"


async def test_what_goes_wrong_on_the_way(fake: DiscordFake, channel: int, http):
    import httpx

    fake.cut("create_message", after_apply=True)
    with pytest.raises(httpx.TransportError):
        await send(http, channel, content="said, and not told")
    fake.cut("create_message")
    with pytest.raises(httpx.TransportError):
        await send(http, channel, content="not said")
    fake.fail("create_message", 500)
    assert (await send(http, channel, content="not said")).status_code == 500
    fake.garble("create_message", 502)
    page = await send(http, channel, content="not said")
    assert (page.status_code, page.headers["content-type"]) == (502, "text/html")
    fake.ban("create_message")
    banned = await send(http, channel, content="not said")
    assert (banned.status_code, "via" in banned.headers) == (429, False)
    fake.answer("create_message", 200, b"[")
    assert (await send(http, channel, content="not said")).content == b"["
    assert fake.said_by_bot(channel) == ["said, and not told"]
    assert [one.fate for one in fake.calls] == ["cut"] * 2 + ["replaced"] * 4


async def test_a_call_can_be_held_and_a_callback_decides(fake: DiscordFake, channel: int, http):
    import httpx

    gate = fake.hold("create_message", after_apply=True)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(lambda: send(http, channel, content="held"))
        await fake.reached(lambda: fake.calls and fake.calls[0].fate == "held")
        assert fake.said_by_bot(channel) == ["held"]
        assert fake.calls[0].status == 0
        gate.open()
    fake.on_call(lambda call: Cut(apply=True) if call.stage == "arrived" else None)
    with pytest.raises(httpx.TransportError):
        await send(http, channel, content="cut")
    assert fake.said_by_bot(channel) == ["held", "cut"]


async def test_a_lenient_server_passes_over_what_it_does_not_know():
    import httpx

    with DiscordFake(strict=False) as fake:
        channel = fake.add_channel(fake.add_guild())
        async with httpx.AsyncClient(trust_env=False, base_url=fake.api) as http:
            headers = {"Authorization": f"Bot {fake.token}"}
            answer = await http.post(
                f"channels/{channel}/messages", json={"content": "x", "colour": 1}, headers=headers
            )
    assert answer.status_code == 200


def test_every_rule_has_its_place_in_the_code():
    from pathlib import Path

    import peers.discord_fake

    home = Path(peers.discord_fake.__file__).parent
    rules = set(re.findall(r"^\| ([A-Z]\d+) \|", (home / "RULES.md").read_text(), re.MULTILINE))
    code = "\n".join(path.read_text() for path in home.glob("*.py"))
    assert set(re.findall(r"\b[AEGILMNPRTW]\d{1,2}\b", code)) == rules
