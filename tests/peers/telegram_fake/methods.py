"""Which function is which method."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from peers.telegram_fake import account, drafting, editing, rich, sending, webhook
from peers.telegram_fake.journal import Call
from peers.telegram_fake.world import World

Method = Callable[[World, Call], Any]
METHODS: Final[Mapping[str, Method]] = {
    "getMe": account.get_me,
    "getChat": account.get_chat,
    "getFile": account.get_file,
    "setWebhook": webhook.set_webhook,
    "deleteWebhook": webhook.delete_webhook,
    "getWebhookInfo": webhook.get_webhook_info,
    "setMyCommands": account.set_my_commands,
    "createForumTopic": account.create_forum_topic,
    "closeForumTopic": account.close_forum_topic,
    "reopenForumTopic": account.reopen_forum_topic,
    "deleteForumTopic": account.delete_forum_topic,
    "sendMessage": sending.send_message,
    "sendPhoto": sending.send_photo,
    "sendDocument": sending.send_document,
    "sendVoice": sending.send_voice,
    "sendAudio": sending.send_audio,
    "sendVideo": sending.send_video,
    "sendMediaGroup": sending.send_media_group,
    "sendMessageDraft": drafting.send_message_draft,
    "sendRichMessage": rich.send_rich_message,
    "sendRichMessageDraft": drafting.send_rich_message_draft,
    "sendChatAction": sending.send_chat_action,
    "editMessageText": editing.edit_message_text,
    "editMessageCaption": editing.edit_message_caption,
    "editMessageReplyMarkup": editing.edit_message_reply_markup,
    "deleteMessage": editing.delete_message,
    "setMessageReaction": editing.set_message_reaction,
    "answerCallbackQuery": editing.answer_callback_query,
}
