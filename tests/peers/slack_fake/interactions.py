"""What people do with an app: they press its buttons, give commands, fill in its dialogs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from peers.slack_fake.blocks import buttons
from peers.slack_fake.chat import app_author
from peers.slack_fake.errors import Json
from peers.slack_fake.journal import Delivery
from peers.slack_fake.messages import Message
from peers.slack_fake.people import People


@attrs.frozen
class Opened:
    """A thread with an assistant."""

    channel: str
    thread: str


@attrs.define(eq=False, slots=False, repr=False)
class Interactions(People):
    """The side of people who use the app's own controls. Callable from any thread."""

    def press(
        self,
        channel: str,
        ts: str,
        user: str,
        action_id: str,
        *,
        option: str = "",
        unseen: str = "",
    ) -> Delivery:
        """R20: press a button, or choose an ``option`` of a menu, of a message that shows it.

        ``LookupError`` where it does not; ephemeral messages have buttons too. ``unseen`` presses
        one that is not shown, or not any more, and carries this.
        """
        world = self._world
        with world.changed:
            message = self._pressable(channel, ts)
            found = [one for one in buttons(message.blocks) if one["action_id"] == action_id]
            if unseen:
                found = [{"type": "button", "action_id": action_id, "value": unseen}]
            if not found:
                raise LookupError(f"message {ts} has no action {action_id!r}")
            action = self._action(found[0], option)
            hidden = message.visible_to is not None
            payload = self._common("block_actions", user) | {
                "container": {
                    "type": "message",
                    "message_ts": ts,
                    "channel_id": channel,
                    "is_ephemeral": hidden,
                },
                "channel": {"id": channel, "name": message.channel.name or "directmessage"},
                "response_url": world.hook(channel, user, thread=message.thread, message=ts),
                "state": {"values": {}},
                "actions": [action],
            }
            if message.thread is not None:
                payload["container"]["thread_ts"] = message.thread
            if not hidden:
                payload["message"] = world.wire(message)
            return world.deliver("interactive", payload)

    def submit(
        self, view_id: str, user: str, values: Mapping[str, Mapping[str, Any]] | None = None
    ) -> Delivery:
        """Send a dialog off, with what its inputs hold by block and action."""
        world = self._world
        with world.changed:
            view = {**world.views[view_id], "state": {"values": dict(values or {})}}
            payload = self._common("view_submission", user) | {"view": view, "response_urls": []}
            return world.deliver("interactive", payload)

    def close_view(self, view_id: str, user: str) -> Delivery:
        """Close a dialog without sending it off."""
        with self._world.changed:
            view = self._world.views[view_id]
            payload = self._common("view_closed", user) | {"view": view, "is_cleared": False}
            return self._world.deliver("interactive", payload)

    def slash(self, channel: str, user: str, command: str, text: str = "") -> Delivery:
        """Give a command; what comes with its acknowledgement is shown."""
        world = self._world
        with world.changed:
            found, team = world.channels[channel], world.team
            payload: Json = {
                "token": "fixture-verification-token",
                "team_id": team.id,
                "team_domain": team.domain,
                "channel_id": channel,
                "channel_name": found.name or "directmessage",
                "user_id": user,
                "user_name": world.user(user).name,
                "command": command,
                "text": text,
                "api_app_id": world.app.id,
                "is_enterprise_install": "false",
                "response_url": world.hook(channel, user),
                "trigger_id": world.trigger(user),
            }
            if team.enterprise_id:
                payload |= {"enterprise_id": team.enterprise_id, "enterprise_name": team.name}
            return world.deliver("slash_commands", payload)

    def open_assistant(self, user: str, *, looking_at: str = "") -> Opened:
        """R28: open a new thread with the app as an assistant, beside a channel if one is named."""
        world = self._world
        with world.changed:
            channel = world.direct(user)
            root = Message(
                world.next_ts(),
                channel,
                world.app.user_id,
                app_author(world, {}),
                "New Assistant Thread",
                subtype="assistant_app_thread",
            )
            world.add(root)
            self._assistant("assistant_thread_started", user, channel.id, root.ts, looking_at)
            return Opened(channel.id, root.ts)

    def look_at(self, opened: Opened, user: str, channel: str) -> None:
        """Turn to another channel while a thread with the assistant is open."""
        kind = "assistant_thread_context_changed"
        with self._world.changed:
            self._assistant(kind, user, opened.channel, opened.thread, channel)

    def _assistant(self, kind: str, user: str, channel: str, thread: str, beside: str) -> None:
        team = self._world.team
        context: Json = {}
        if beside:
            context = {
                "channel_id": beside,
                "team_id": team.id,
                "enterprise_id": team.enterprise_id,
            }
        about = {"user_id": user, "channel_id": channel, "thread_ts": thread, "context": context}
        self._emit({"type": kind, "assistant_thread": about}, self._world.channels[channel])

    def _pressable(self, channel: str, ts: str) -> Message:
        world = self._world
        found = world.find(world.channels[channel], ts)
        if found is None:
            shown = (one for one in world.ephemerals if one.ts == ts and not one.deleted)
            found = next(shown, None)
        if found is None:
            raise LookupError(f"there is no message {ts}")
        return found

    def _action(self, element: Json, option: str) -> Json:
        kept = ("type", "action_id", "block_id", "text", "value", "style")
        action = {name: element[name] for name in kept if name in element}
        action["action_ts"] = self._world.next_ts()
        if option:
            chosen = [one for one in element.get("options", []) if one["value"] == option]
            if not chosen:
                raise LookupError(f"{element['action_id']} has no option {option!r}")
            action["selected_option"] = chosen[0]
        return action

    def _common(self, kind: str, user: str) -> Json:
        """Return what all interactions have."""
        world = self._world
        team, who = world.team, world.user(user)
        enterprise = {"id": team.enterprise_id, "name": team.name} if team.enterprise_id else None
        return {
            "type": kind,
            "user": {"id": user, "username": who.name, "name": who.name, "team_id": who.team_id},
            "api_app_id": world.app.id,
            "token": "fixture-verification-token",
            "trigger_id": world.trigger(user),
            "team": {"id": team.id, "domain": team.domain},
            "enterprise": enterprise,
            "is_enterprise_install": False,
        }
