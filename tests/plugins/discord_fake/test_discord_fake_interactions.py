"""Interactions to the letter: their windows, their first answer, and those that are posted."""

from __future__ import annotations

import asyncio
import json

import pytest

from peers.discord_fake import DiscordFake, ManualClock

pytestmark = pytest.mark.anyio
ASK = {"name": "ask", "description": "Ask me"}


@pytest.fixture
async def asked(fake: DiscordFake, channel: int, ada: int, http):
    """A command that somebody has just used."""
    await http.put(f"applications/{fake.bot_id}/commands", json=[ASK])
    return fake.slash(channel, ada, "ask")


async def respond(http, interaction, kind: int, data=None, **params):
    path = f"interactions/{interaction.id}/{interaction.token}/callback"
    body = {"type": kind} if data is None else {"type": kind, "data": data}
    return await http.post(path, json=body, params=params)


def code(answer) -> tuple[int, int]:
    return answer.status_code, answer.json()["code"]


def webhook(fake: DiscordFake, interaction) -> str:
    return f"webhooks/{fake.bot_id}/{interaction.token}"


async def test_the_first_answer_comes_once_and_within_three_seconds(
    fake: DiscordFake, channel: int, ada: int, clock: ManualClock, asked, http
):
    path = webhook(fake, asked)
    assert code(await http.post(path, json={"content": "early"})) == (404, 10015)
    answer = await respond(http, asked, 4, {"content": "yes"}, with_response="true")
    assert answer.json()["resource"]["message"]["content"] == "yes"
    assert code(await respond(http, asked, 4, {"content": "twice"})) == (400, 40060)
    late = fake.slash(channel, ada, "ask")
    clock.advance(3.1)
    assert code(await respond(http, late, 5)) == (404, 10062)
    assert code(await http.patch(f"{webhook(fake, late)}/messages/@original", json={})) == (
        404,
        10015,
    )
    assert fake.said_by_bot(channel) == ["yes"]


async def test_a_token_works_for_fifteen_minutes(
    fake: DiscordFake, channel: int, clock: ManualClock, asked, http
):
    path = webhook(fake, asked)
    assert (await respond(http, asked, 5)).status_code == 204
    assert fake.shown(channel)[0].thinking
    clock.advance(899)
    assert (await http.patch(f"{path}/messages/@original", json={"content": "done"})).is_success
    more = (await http.post(path, json={"content": "more"})).json()
    assert (await http.get(f"{path}/messages/{more['id']}")).json()["content"] == "more"
    assert (await http.delete(f"{path}/messages/{more['id']}")).status_code == 204
    assert fake.said_by_bot(channel) == ["done"]
    clock.advance(2)
    assert code(await http.post(path, json={"content": "late"})) == (401, 50027)


async def test_the_first_follow_up_of_a_deferred_answer_is_the_answer(
    fake: DiscordFake, channel: int, ada: int, asked, connect, http
):
    """It keeps to what was settled then: whether one person sees it.

    The bot is told of such a message as if it were one of a direct conversation.
    """
    async with connect() as socket:
        await socket.identify(fake.token)
        await respond(http, asked, 5, {"flags": 64})
        told = await socket.event("MESSAGE_CREATE")
    assert told["flags"] == 64 | 128
    assert (told["channel_id"], "guild_id" in told) == (str(channel), False)
    assert [one.thinking for one in fake.whispered(channel, ada)] == [True]
    first = (await http.post(webhook(fake, asked), json={"content": "for you"})).json()
    await http.post(webhook(fake, asked), json={"content": "for all"})
    assert [one.text for one in fake.whispered(channel, ada)] == ["for you"]
    assert fake.said_by_bot(channel) == ["for all"]
    path = f"channels/{channel}/messages/{first['id']}"
    assert code(await http.get(path)) == (404, 10008), "channels do not know it"


@pytest.mark.parametrize(("kind", "answer"), [("command", 6), ("command", 7), ("command", 8)])
async def test_an_answer_must_suit_what_was_done(asked, http, kind: str, answer: int):
    assert code(await respond(http, asked, answer, {"content": "x"})) == (400, 50035)
    assert asked.answer is None


async def test_presses_menus_and_completion(
    fake: DiscordFake, channel: int, ada: int, connect, http
):
    option = {"name": "q", "description": "q", "type": 3, "autocomplete": True}
    await http.put(f"applications/{fake.bot_id}/commands", json=[{**ASK, "options": [option]}])
    row = {"type": 1, "components": [{"type": 2, "style": 1, "label": "Go", "custom_id": "go"}]}
    choice = {"label": "Tea", "value": "tea"}
    menu = {"type": 1, "components": [{"type": 3, "custom_id": "menu", "options": [choice]}]}
    body = {"content": "?", "components": [row, menu]}
    sent = (await http.post(f"channels/{channel}/messages", json=body)).json()
    async with connect() as socket:
        await socket.identify(fake.token)
        pressed = fake.press(int(sent["id"]), ada, "Go")
        told = await socket.event("INTERACTION_CREATE")
        assert told["data"]["custom_id"] == "go"
        assert told["message"]["id"] == sent["id"]
        assert told["member"]["user"]["id"] == str(ada)
        assert (await respond(http, pressed, 6)).status_code == 204
        fake.choose(int(sent["id"]), ada, "menu", ["tea"])
        assert (await socket.event("INTERACTION_CREATE"))["data"]["values"] == ["tea"]
        completed = fake.complete(channel, ada, "ask", "q", "te")
        told = await socket.event("INTERACTION_CREATE")
        assert told["data"]["options"] == [{"name": "q", "type": 3, "value": "te", "focused": True}]
        await respond(http, completed, 8, {"choices": [{"name": "Tea", "value": "tea"}]})
        assert completed.choices == [{"name": "Tea", "value": "tea"}]
    with pytest.raises(LookupError):
        fake.press(int(sent["id"]), ada, "Stop")


async def test_a_modal_is_opened_and_sent(fake: DiscordFake, channel: int, asked, http):
    field = {"type": 4, "custom_id": "name", "label": "Name", "style": 1}
    modal = {"custom_id": "m", "title": "Who?", "components": [{"type": 1, "components": [field]}]}
    assert (await respond(http, asked, 9, modal)).status_code == 204
    with pytest.raises(LookupError):
        fake.submit(asked, {"age": "3"})
    sent = fake.submit(asked, {"name": "Ada"})
    assert sent.data["components"][0]["components"][0]["value"] == "Ada"
    assert code(await respond(http, sent, 9, modal)) == (400, 50035)
    assert (await respond(http, sent, 4, {"content": "Hi Ada"})).status_code == 204
    assert fake.said_by_bot(channel) == ["Hi Ada"]


async def test_commands_are_replaced_as_a_whole_and_keep_their_ids(
    fake: DiscordFake, guild: int, http
):
    path = f"applications/{fake.bot_id}/commands"
    first = (await http.put(path, json=[ASK])).json()
    second = (await http.put(path, json=[ASK, {**ASK, "name": "tell"}])).json()
    assert first[0]["id"] == second[0]["id"]
    assert fake.commands() == ["ask", "tell"]
    for wrong in ([{**ASK, "name": "Ask"}], [ASK, ASK], [{**ASK, "description": ""}]):
        assert code(await http.put(path, json=wrong)) == (400, 50035)
    within = f"applications/{fake.bot_id}/guilds/{guild}/commands"
    assert (await http.put(within, json=[ASK])).json()[0]["guild_id"] == str(guild)
    assert fake.commands(guild) == ["ask"]


class Endpoint:
    """A bot's own web server, which checks signatures as Discord asks for."""

    def __init__(self, verify_key: str, clock: ManualClock) -> None:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

        self.key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(verify_key))
        self.clock = clock
        self.answer = {"type": 4, "data": {"content": "posted"}}
        self.late = asyncio.Event()

    def trusted(self, headers, body: bytes) -> bool:
        from cryptography.exceptions import InvalidSignature

        at = headers.get("X-Signature-Timestamp", "0")
        try:
            signature = bytes.fromhex(headers.get("X-Signature-Ed25519", ""))
            self.key.verify(signature, at.encode() + body)
        except (ValueError, InvalidSignature):
            return False
        return abs(self.clock.time() - int(at)) < 300

    async def serve(self, request):
        from aiohttp import web

        body = await request.read()
        if not self.trusted(request.headers, body):
            return web.Response(status=401)
        if json.loads(body)["type"] == 1:
            return web.json_response({"type": 1})
        if not self.answer:
            await self.late.wait()
        return web.json_response(self.answer)


@pytest.fixture
async def endpoint(fake: DiscordFake, clock: ManualClock):
    """The web server and its URL."""
    from aiohttp.test_utils import TestServer
    from aiohttp.web import Application

    served = Endpoint(fake.verify_key, clock)
    app = Application()
    app.router.add_post("/", served.serve)
    async with TestServer(app) as server:
        yield served, str(server.make_url("/"))


async def test_an_endpoint_is_asked_with_good_and_with_bad_signatures(fake, endpoint):
    _, url = endpoint
    statuses = {}
    for how in ("good", "bad", "missing", "other body", "other time", "stale"):
        delivery = fake.ping(url, how)
        await fake.reached(lambda found=delivery: found.done)
        statuses[how] = delivery.status
        if how == "good":
            assert delivery.answer == {"type": 1}
    assert statuses.pop("good") == 200
    assert set(statuses.values()) == {401}


@pytest.mark.parametrize("fake", [{"callback_patience": 0.1}], indirect=True)
async def test_posted_interactions_are_answered_in_place(
    fake: DiscordFake, channel: int, ada: int, connect, endpoint, http
):
    served, url = endpoint
    await http.put(f"applications/{fake.bot_id}/commands", json=[ASK])
    fake.endpoint = url
    async with connect() as socket:
        await socket.identify(fake.token)
        await socket.event("GUILD_CREATE")
        used = fake.slash(channel, ada, "ask")
        await fake.reached(lambda: used.posted == 200)
        assert (await socket.frame())["t"] == "MESSAGE_CREATE", "the gateway is told of no command"
    assert fake.said_by_bot(channel) == ["posted"]
    served.answer = None
    missed = fake.slash(channel, ada, "ask")
    await fake.reached(lambda: missed.posted == 0)
    assert missed.answer is None
    served.late.set()


async def test_commands_of_menus_and_subcommands(
    fake: DiscordFake, channel: int, ada: int, connect, http
):
    text = {"type": 3, "name": "text", "description": "text", "required": True}
    nested = {"type": 1, "name": "add", "description": "add", "options": [text]}
    commands = [
        {"name": "Explain", "type": 3},
        {"name": "note", "description": "Notes", "options": [nested]},
    ]
    await http.put(f"applications/{fake.bot_id}/commands", json=commands)
    message = fake.say(channel, ada, "what?")
    async with connect() as socket:
        await socket.identify(fake.token, 0)
        fake.use_on(message, ada, "Explain")
        told = (await socket.event("INTERACTION_CREATE"))["data"]
        assert told["target_id"] == str(message)
        assert told["resolved"]["messages"][str(message)]["content"] == "what?"
        fake.slash(channel, ada, "note add", {"text": "tea"})
        [given] = (await socket.event("INTERACTION_CREATE"))["data"]["options"]
        assert (given["name"], given["options"][0]["value"]) == ("add", "tea")
        fake.slash(fake.dm(ada), ada, "note add", {"text": "tea"})
        private = await socket.event("INTERACTION_CREATE")
        assert (private["user"]["id"], private["context"]) == (str(ada), 1)
    with pytest.raises(LookupError):
        fake.slash(channel, ada, "note add", {})
    with pytest.raises(LookupError):
        fake.slash(channel, ada, "nothing")
