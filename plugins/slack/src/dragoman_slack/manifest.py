"""The app's own manifest at Slack, as operators paste it: one source for set-up, probe and README."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

SCOPES: Final[Mapping[str, str]] = {
    "app_mentions:read": "mentions in channels do not arrive",
    "chat:write": "it cannot write",
    "commands": "its slash command does not exist",
    "channels:history": "messages in public channels do not arrive",
    "groups:history": "messages in private channels do not arrive",
    "im:history": "direct messages do not arrive",
    "mpim:history": "messages among several people do not arrive",
    "reactions:read": "reactions do not arrive",
    "reactions:write": "it cannot react",
    "files:read": "files that people send cannot be had",
    "files:write": "it cannot show files",
    "users:read": "people are named by their ids",
    "assistant:write": "the assistant offers nothing to ask",
}
"""What the bot token needs, each with what is missing without it."""

EVENTS: Final = (
    "app_mention",
    "app_uninstalled",
    "assistant_thread_started",
    "channel_archive",
    "channel_deleted",
    "channel_id_changed",
    "group_archive",
    "group_deleted",
    "member_left_channel",
    "message.channels",
    "message.groups",
    "message.im",
    "message.mpim",
    "reaction_added",
    "reaction_removed",
    "tokens_revoked",
)
"""What the app has to be told of."""


def _listed(words: Mapping[str, str] | tuple[str, ...], depth: int) -> str:
    return "\n".join(f"{' ' * depth}- {word}" for word in words)


APP_MANIFEST: Final = f"""\
display_information:
  name: dragoman
features:
  app_home:
    home_tab_enabled: false
    messages_tab_enabled: true
    messages_tab_read_only_enabled: false
  bot_user:
    display_name: dragoman
    always_online: true
  assistant_view:
    assistant_description: Answers with the help of an agent.
  slash_commands:
    - command: /dragoman
      description: Ask the agent, or stop it
      usage_hint: "[question | stop | new | status | help]"
      should_escape: true
oauth_config:
  scopes:
    bot:
{_listed(SCOPES, 6)}
settings:
  event_subscriptions:
    bot_events:
{_listed(EVENTS, 6)}
  interactivity:
    is_enabled: true
  org_deploy_enabled: false
  socket_mode_enabled: true
  token_rotation_enabled: false
"""

SETUP: Final = f"""\
1. Open https://api.slack.com/apps, "Create New App", "From a manifest", choose the workspace, and
   paste this (YAML):

{APP_MANIFEST}
2. "Install to Workspace". Copy the Bot User OAuth Token (xoxb-…) from OAuth & Permissions: it is
   bot_token.
3. Basic Information, App-Level Tokens, "Generate Token and Scopes" with connections:write. Copy it
   (xapp-…): it is app_token.
4. In Slack, open your profile, "Copy member ID". With the workspace's id (T…, in the address of
   Slack in a browser) it goes into [access]: owners = ["slack:T0123ABCD:U0123ABCD"].
5. Write to the app, or invite it into a channel (/invite @dragoman) and mention it there.

Instead of a socket (mode = "http"): leave out step 3, set socket_mode_enabled: false, give the
public address of the gateway with /slack/events as request_url of event_subscriptions and
interactivity and as url of the slash command, and copy the Signing Secret from Basic Information.
"""
