"""slack_bolt judges what the app is sent, over a socket and over HTTP, unpatched."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web as aiohttp_web
from slack_bolt.adapter.socket_mode.aiohttp import AsyncSocketModeHandler
from slack_bolt.async_app import AsyncApp, AsyncAssistant

from peers.slack_fake import SlackFake

pytestmark = pytest.mark.anyio
ADA = "U0ADA"


class Bot:
    """An app with what its listeners were called for."""

    def __init__(self, app: AsyncApp) -> None:
        self.app = app
        self.got: asyncio.Queue[tuple[str, Any]] = asyncio.Queue()
        app.event("app_mention")(self._mention)
        app.event("message")(self._message)
        app.command("/ask")(self._command)
        app.action("ok")(self._action)
        app.view("form")(self._view)

    async def _mention(self, event, say):
        await say(text="you called", thread_ts=event["ts"])
        self.got.put_nowait(("app_mention", event))

    async def _message(self, event):
        self.got.put_nowait(("message", event))

    async def _command(self, ack, command, respond):
        await ack("at once")
        await respond("a little later", response_type="in_channel")
        self.got.put_nowait(("command", command))

    async def _action(self, ack, body, respond, client):
        await ack()
        await respond("pressed", replace_original=True)
        title = {"type": "plain_text", "text": "Form"}
        view = {"type": "modal", "callback_id": "form", "title": title, "blocks": []}
        await client.views_open(trigger_id=body["trigger_id"], view=view)
        self.got.put_nowait(("action", body))

    async def _view(self, ack, view):
        await ack(response_action="clear")
        self.got.put_nowait(("view", view))

    async def next(self, kind: str) -> Any:
        """Return what the next listener of a kind was called with."""
        while True:
            found, value = await asyncio.wait_for(self.got.get(), 10)
            if found == kind:
                return value


@pytest.fixture
def bot(fake: SlackFake, web) -> Bot:
    return Bot(AsyncApp(client=web, signing_secret=fake.app.signing_secret))


@pytest.fixture
async def on_socket(fake: SlackFake, bot: Bot, web) -> AsyncIterator[Bot]:
    handler = AsyncSocketModeHandler(bot.app, fake.app.app_token, web_client=web)
    await handler.connect_async()
    await fake.reached(lambda: fake.sockets)
    yield bot
    await handler.close_async()


@pytest.fixture
async def url(bot: Bot) -> AsyncIterator[str]:
    """Where bolt's own web application listens."""
    runner = aiohttp_web.AppRunner(bot.app.web_app("/slack/events"))
    await runner.setup()
    await aiohttp_web.TCPSite(runner, "127.0.0.1", 0).start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}/slack/events"
    await runner.cleanup()


async def talk(fake: SlackFake, bot: Bot, room: str, web) -> None:
    """Go through everything that a listener is called for."""
    said = fake.say(room, ADA, f"{fake.mention} hello")
    mention = await bot.next("app_mention")
    assert mention["ts"] == said.ts
    assert fake.said_by_bot(room, said.ts) == ["you called"]
    delivery = fake.slash(room, ADA, "/ask", "a question")
    assert (await bot.next("command"))["text"] == "a question"
    await fake.reached(lambda: delivery.fate == "acked" and fake.ephemerals(room, ADA))
    assert [one.source for one in fake.ephemerals(room, ADA)] == ["at once"]
    assert "a little later" in fake.said_by_bot(room)
    button = {"type": "button", "action_id": "ok", "text": {"type": "plain_text", "text": "OK"}}
    blocks = [{"type": "actions", "elements": [button]}]
    posted = await web.chat_postMessage(channel=room, text="sure?", blocks=blocks)
    fake.press(room, posted["ts"], ADA, "ok")
    assert (await bot.next("action"))["container"]["message_ts"] == posted["ts"]
    assert "pressed" in fake.said_by_bot(room)
    [view] = fake.views()
    sent = fake.submit(view["id"], ADA, {"b": {"a": {"type": "plain_text_input", "value": "x"}}})
    assert (await bot.next("view"))["state"]["values"]["b"]["a"]["value"] == "x"
    await fake.reached(lambda: sent.fate == "acked")
    assert sent.answer == {"response_action": "clear"}


async def test_listeners_are_called_over_a_socket(fake: SlackFake, on_socket, room, web):
    await talk(fake, on_socket, room, web)
    assert {one.fate for one in fake.deliveries} <= {"acked", ""}


async def test_listeners_are_called_over_http(fake: SlackFake, bot, url, room, web):
    assert await fake.verify_url(url)
    fake.deliver_to(url)
    await talk(fake, bot, room, web)
    await fake.reached(lambda: {one.fate for one in fake.deliveries} == {"acked"})


async def test_a_mention_comes_twice_with_one_ts(fake: SlackFake, on_socket, room):
    said = fake.say(room, ADA, f"{fake.mention} hello")
    assert (await on_socket.next("message"))["ts"] == said.ts
    first, second = said.deliveries
    assert [first.type, second.type] == ["message", "app_mention"]
    assert first.event_id != second.event_id
    fake.settings.mention_first = True
    assert fake.say(room, ADA, fake.mention).deliveries[0].type == "app_mention"


async def test_an_assistant_is_greeted(fake: SlackFake, web, bot):
    assistant, context = AsyncAssistant(), asyncio.Queue()

    @assistant.thread_started
    async def started(say, set_suggested_prompts, get_thread_context):
        await say("How can I help?")
        await set_suggested_prompts(prompts=[{"title": "Hi", "message": "Say hi"}])
        context.put_nowait((await get_thread_context()).channel_id)

    @assistant.user_message
    async def message(payload, say, set_status, set_title):
        await set_status("thinks")
        await set_title(payload["text"])
        await say("an answer")

    bot.app.use(assistant)
    room = fake.channel("looked-at", ADA)
    handler = AsyncSocketModeHandler(bot.app, fake.app.app_token, web_client=web)
    await handler.connect_async()
    try:
        opened = fake.open_assistant(ADA, looking_at=room)
        await fake.reached(lambda: fake.prompts(opened.channel, opened.thread))
        assert await asyncio.wait_for(context.get(), 10) == room
        fake.say(opened.channel, ADA, "a question", thread=opened.thread)
        await fake.reached(lambda: "an answer" in fake.said_by_bot(opened.channel, opened.thread))
        assert fake.statuses(opened.channel, opened.thread) == ["thinks"]
        assert fake.title(opened.channel, opened.thread) == "a question"
    finally:
        await handler.close_async()


@pytest.mark.parametrize("forgery", ["signature", "stale", "unsigned"])
async def test_forged_requests_are_noticed(fake: SlackFake, bot, url, room, forgery):
    assert not await fake.verify_url(url, forgery=forgery)
    fake.deliver_to(url, forgery=forgery)
    [delivery] = fake.say(room, ADA, "hello").deliveries
    await fake.reached(lambda: [one.outcome for one in delivery.attempts] == ["http_error"] * 2)
    assert bot.got.empty()


async def test_apps_own_words_come_back_and_are_known_as_such(fake: SlackFake, on_socket, room):
    fake.say(room, ADA, f"{fake.mention} hello")
    await on_socket.next("app_mention")
    await fake.reached(lambda: len(fake.deliveries_of("message")) == 2)
    echo = fake.deliveries_of("message")[1]
    assert (echo.event["user"], echo.event["bot_id"]) == ("U0BOT", "B0FIXTURE")
    await fake.reached(lambda: echo.fate == "acked")
    heard = [value["user"] for kind, value in on_socket.got._queue if kind == "message"]
    assert "U0BOT" not in heard, "bolt leaves out what the app itself said"
