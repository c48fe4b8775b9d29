"""The methods of the Web API that this Slack has, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from peers.slack_fake import account, assistant, chat, conversations, streams, uploads
from peers.slack_fake.errors import Json
from peers.slack_fake.journal import Call
from peers.slack_fake.world import World

Method = Callable[[World, Call], Json]
METHODS: Final[Mapping[str, Method]] = {
    "api.test": account.api_test,
    "apps.connections.open": account.open_connection,
    "assistant.threads.setStatus": assistant.set_status,
    "assistant.threads.setSuggestedPrompts": assistant.set_suggested_prompts,
    "assistant.threads.setTitle": assistant.set_title,
    "auth.test": account.auth_test,
    "bots.info": account.bots_info,
    "chat.appendStream": streams.append,
    "chat.delete": chat.delete,
    "chat.getPermalink": chat.get_permalink,
    "chat.postEphemeral": chat.post_ephemeral,
    "chat.postMessage": chat.post_message,
    "chat.startStream": streams.start,
    "chat.stopStream": streams.stop,
    "chat.update": chat.update,
    "conversations.history": conversations.history,
    "conversations.info": conversations.info,
    "conversations.list": conversations.listing,
    "conversations.members": conversations.members,
    "conversations.open": conversations.open_direct,
    "conversations.replies": conversations.replies,
    "files.completeUploadExternal": uploads.complete_upload,
    "files.getUploadURLExternal": uploads.get_upload_url,
    "files.info": uploads.files_info,
    "reactions.add": account.add_reaction,
    "reactions.remove": account.remove_reaction,
    "team.info": account.team_info,
    "users.info": account.users_info,
    "views.open": assistant.open_view,
    "views.update": assistant.update_view,
}
