"""R22: previews of a message that is still being written."""

from __future__ import annotations

from typing import Any

from peers.telegram_fake.chats import Chat
from peers.telegram_fake.checks import open_chat, open_thread, parse
from peers.telegram_fake.entities import units
from peers.telegram_fake.errors import bad
from peers.telegram_fake.journal import Call
from peers.telegram_fake.rich import check_known, read_rich, rich_body
from peers.telegram_fake.text import MAX_TEXT, finish
from peers.telegram_fake.world import Draft, World


def send_message_draft(world: World, call: Call) -> bool:
    """Show a text; an empty one says that the bot thinks."""
    formatted = parse(call.params, "text")
    chat = _private(world, call)
    text = finish(formatted, may_be_empty=True).text
    if units(text) > MAX_TEXT:
        raise bad("message is too long")
    return _show(world, call, chat, text=text)


def send_rich_message_draft(world: World, call: Call) -> bool:
    check_known(world)
    content = read_rich(world, call, draft=True)
    chat = _private(world, call)
    return _show(world, call, chat, text=rich_body(content).text, rich=content)


def _private(world: World, call: Call) -> Chat:
    chat = open_chat(world, call.params)
    if chat.kind != "private":
        raise bad("TEXTDRAFT_PEER_INVALID")
    return chat


def _show(world: World, call: Call, chat: Chat, **content: Any) -> bool:
    params = call.params
    thread = open_thread(chat, params)
    if not params.get("draft_id"):
        raise bad("RANDOM_ID_INVALID")
    draft = Draft(
        world.clock.time(),
        chat.id,
        params["draft_id"],
        thread=thread,
        can_stop=params.get("can_stop", False),
        keep_on_stop=params.get("keep_on_stop", False),
        **content,
    )
    world.drafts.append(draft)
    if (chat.id, draft.draft_id) not in world.stopped:
        world.previews[chat.id, thread] = draft
    world.changed.notify_all()
    return True
