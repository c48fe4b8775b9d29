"""Which function is which method."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from peers.telegram_fake import account, drafting, editing, rich, sending, topics, webhook
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
    "getMyCommands": account.get_my_commands,
    "deleteMyCommands": account.delete_my_commands,
    "setChatMenuButton": account.set_chat_menu_button,
    "getChatMenuButton": account.get_chat_menu_button,
    "setMyName": account.set_my_name,
    "getMyName": account.get_my_name,
    "createForumTopic": topics.create_forum_topic,
    "editForumTopic": topics.edit_forum_topic,
    "closeForumTopic": topics.close_forum_topic,
    "reopenForumTopic": topics.reopen_forum_topic,
    "deleteForumTopic": topics.delete_forum_topic,
    "sendMessage": sending.send_message,
    "sendPhoto": sending.send_photo,
    "sendDocument": sending.send_document,
    "sendVoice": sending.send_voice,
    "sendAudio": sending.send_audio,
    "sendVideo": sending.send_video,
    "sendAnimation": sending.send_animation,
    "sendVideoNote": sending.send_video_note,
    "sendMediaGroup": sending.send_media_group,
    "sendMessageDraft": drafting.send_message_draft,
    "sendRichMessage": rich.send_rich_message,
    "sendRichMessageDraft": drafting.send_rich_message_draft,
    "sendChatAction": sending.send_chat_action,
    "editMessageText": editing.edit_message_text,
    "editMessageCaption": editing.edit_message_caption,
    "editMessageReplyMarkup": editing.edit_message_reply_markup,
    "deleteMessage": editing.delete_message,
    "deleteMessages": editing.delete_messages,
    "setMessageReaction": editing.set_message_reaction,
    "answerCallbackQuery": editing.answer_callback_query,
}
