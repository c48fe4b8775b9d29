"""What people do on a Discord-compatible server, and what they see there."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote

import attrs
import httpx2

from peers.discord_shim import Shim

Message = dict[str, Any]
_OPTION_TYPES = {bool: 5, int: 4, float: 10, str: 3}


@attrs.define(eq=False)
class Person:
    """One account of a human. Channels, threads and direct conversations are given by their id.

    All methods are synchronous and may be called from any thread.
    """

    name: str
    shim: Shim
    application: str = ""
    """The application whose commands are used, whose buttons pressed, and who is written to."""
    guild: str = ""
    id: str = ""
    user: dict[str, Any] = attrs.field(factory=dict)
    _http: httpx2.Client = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._http = httpx2.Client(base_url=self.shim.api_url, trust_env=False, timeout=10)

    def register(self) -> None:
        """Make the account."""
        account = {
            "username": self.name,
            "email": f"{self.name}@example.com",
            "password": f"Passw0rd_{self.name}",
            "date_of_birth": "1990-01-01",
            "consent": True,
        }
        token = self.ask("POST", "/auth/register", account)["token"]
        self._http.headers["Authorization"] = token
        self.user = self.ask("GET", "/users/@me")
        self.id = self.user["id"]
        public = ("id", "username", "discriminator", "avatar", "global_name")
        user = {name: self.user.get(name) for name in public}
        self.shim.rest.people[self.id] = (token, user)

    def ask(self, method: str, path: str, body: Any = None, **more: Any) -> Any:
        """Make a request as the person; what is refused is an error."""
        answer = self._http.request(method, path, json=body, **more)
        if answer.is_error:
            raise RuntimeError(f"{method} {path}: {answer.status_code} {answer.text}")
        return answer.json() if answer.content else None

    def say(self, channel: str, text: str, **more: Any) -> Message:
        """Write a message."""
        return self.ask("POST", f"/channels/{channel}/messages", {"content": text, **more})

    def reply(self, message: Mapping[str, Any], text: str) -> Message:
        """Answer a message, so that Discord shows which."""
        about = {"message_id": message["id"], "channel_id": message["channel_id"]}
        return self.say(message["channel_id"], text, message_reference=about)

    def edit(self, message: Mapping[str, Any], text: str) -> Message:
        """Change an own message."""
        return self.ask("PATCH", _path(message), {"content": text})

    def delete(self, message: Mapping[str, Any]) -> None:
        """Take a message away."""
        self.ask("DELETE", _path(message))

    def react(self, message: Mapping[str, Any], emoji: str) -> None:
        """Put an emoji under a message."""
        self.ask("PUT", f"{_path(message)}/reactions/{quote(emoji)}/@me")

    def unreact(self, message: Mapping[str, Any], emoji: str) -> None:
        """Take an own emoji away."""
        self.ask("DELETE", f"{_path(message)}/reactions/{quote(emoji)}/@me")

    def upload(
        self, channel: str, name: str, content: bytes, text: str = "", mime: str = "text/plain"
    ) -> Message:
        """Write a message with a file."""
        named = {"content": text, "attachments": [{"id": "0", "filename": name}]}
        files = {"files[0]": (name, content, mime)}
        form = {"payload_json": json.dumps(named)}
        return self.ask("POST", f"/channels/{channel}/messages", data=form, files=files)

    def download(self, attachment: Mapping[str, Any]) -> bytes:
        """Fetch the file behind an attachment."""
        return self._http.get(attachment["url"]).raise_for_status().content

    def type(self, channel: str) -> None:
        """Begin to write."""
        self.ask("POST", f"/channels/{channel}/typing")

    def thread(self, message: Mapping[str, Any], name: str) -> str:
        """Begin a thread at a message; return its channel."""
        body = {"name": name, "auto_archive_duration": 1440}
        return self.ask("POST", f"{_path(message)}/threads", body)["id"]

    def conversation(self) -> str:
        """Return the channel of the direct conversation with the bot."""
        return self.ask("POST", "/users/@me/channels", {"recipients": [self.application]})["id"]

    def command(self, channel: str, name: str, **options: Any) -> None:
        """Use a command of the bot, which it has registered before."""
        query = {"type": 1, "query": name, "limit": 10, "include_applications": "true"}
        search = f"/channels/{channel}/application-commands/search"
        found = self.ask("GET", search, params=query)["application_commands"]
        [command] = [one for one in found if one["name"] == name]
        given = [
            {"type": _OPTION_TYPES[value.__class__], "name": option, "value": value}
            for option, value in options.items()
        ]
        data = {key: command[key] for key in ("id", "name", "type", "version")}
        body = {
            "type": 2,
            "application_id": self.application,
            "channel_id": channel,
            "session_id": "0" * 32,
            "data": {**data, "options": given},
        }
        if channel in self.shim.known.guilds:
            body["guild_id"] = self.guild
        form = {"payload_json": (None, json.dumps(body))}
        self.ask("POST", "/interactions", files=form)

    def press(self, message: Mapping[str, Any], custom_id: str) -> None:
        """Press a button of the bot's message, as it was when the person saw it."""
        [component] = [one for one in _components(message) if one.get("custom_id") == custom_id]
        data = self.shim.interactions.press(message, component, self.application)
        guild = self.shim.known.guilds.get(message["channel_id"])
        _, user = self.shim.rest.people[self.id]
        data["channel"] = {"id": message["channel_id"], "type": 0 if guild else 1}
        if guild is None:
            data["user"] = user
        else:
            data |= {"guild_id": guild, "member": self.shim.known.member(user)}
        self.shim.inject("INTERACTION_CREATE", data)

    def messages(self, channel: str, limit: int = 100) -> list[Message]:
        """Return the messages that a channel shows now, oldest first."""
        found = self.ask("GET", f"/channels/{channel}/messages", params={"limit": limit})
        return sorted(found, key=lambda message: int(message["id"]))

    def texts(self, channel: str) -> list[str]:
        """Return what the messages of a channel say, oldest first; notices of the server left out."""
        return [one["content"] for one in self.messages(channel) if one["type"] in {0, 19, 20}]

    def close(self) -> None:
        """Let go of the connection."""
        self._http.close()


def _path(message: Mapping[str, Any]) -> str:
    return f"/channels/{message['channel_id']}/messages/{message['id']}"


def _components(holder: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Walk over all components of a message, at any depth."""
    for one in holder.get("components", []):
        yield one
        yield from _components(one)
