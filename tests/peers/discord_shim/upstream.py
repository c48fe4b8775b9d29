"""Carries requests on to YEPCord, in the words that it understands."""

from __future__ import annotations

import json
import re
from typing import Any, Final

import aiohttp
import attrs
import yarl

from peers.discord_shim.known import Known
from peers.discord_shim.requests import Answer, Request, invalid

MESSAGES: Final = re.compile(r"^/channels/(\d+)/messages$")
_SHOWN: Final = re.compile(r"/messages/(\d+)$")
_REPLY: Final = 19


@attrs.define(eq=False)
class Upstream:
    """YEPCord's HTTP interface."""

    http: aiohttp.ClientSession
    root: str
    known: Known

    async def carry(self, request: Request) -> Answer:
        """Carry a request out; what YEPCord does not keep of a message is remembered."""
        payload = request.payload if isinstance(request.payload, dict) else {}
        added = {name: payload[name] for name in ("components",) if payload.get(name) is not None}
        posted, shown = MESSAGES.match(request.path), _SHOWN.search(request.path)
        if posted and payload.get("message_reference") and posted[1] not in self.known.guilds:
            reference = await self._reference(request, posted[1])
            if isinstance(reference, Answer):
                return reference
            request = attrs.evolve(request, payload=_without(payload, "message_reference"))
            added |= reference
        if shown and added and request.method == "PATCH":
            self.known.added.setdefault(shown[1], {}).update(added)
        answer = await self.send(request)
        if added and answer.status == 200 and isinstance(answer.body, dict):
            self.known.added.setdefault(answer.body["id"], {}).update(added)
        return attrs.evolve(answer, body=self.known.complete(answer.body))

    async def send(self, request: Request) -> Answer:
        """Send a request as it is."""
        url = f"{self.root}/api/v9{request.path}" + (f"?{request.query}" if request.query else "")
        headers = {"Authorization": request.authorization} if request.authorization else {}
        body: dict[str, Any] = {}
        if request.form:
            body["data"] = _form(request)
        elif request.payload is not None:
            body["json"] = request.payload
        target = yarl.URL(url, encoded=True)
        async with self.http.request(request.method, target, headers=headers, **body) as response:
            text = await response.text(errors="replace")
            try:
                return Answer(response.status, json.loads(text) if text else None)
            except ValueError:
                return Answer(response.status, html=text)

    async def _reference(self, request: Request, channel: str) -> dict[str, Any] | Answer:
        """Look up what a reply in a direct conversation refers to: YEPCord fails at these."""
        reference = request.payload["message_reference"]
        path = f"/channels/{channel}/messages/{reference['message_id']}"
        found = await self.send(Request("GET", path, request.authorization))
        if found.status == 200:
            about = {"message_id": reference["message_id"], "channel_id": channel}
            return {"message_reference": about, "referenced_message": found.body, "type": _REPLY}
        if reference.get("fail_if_not_exists", True):
            return invalid("message_reference", "REPLIES_UNKNOWN_MESSAGE", "Unknown message")
        return {}


def _without(payload: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in payload.items() if key != name}


def _form(request: Request) -> aiohttp.FormData:
    """Return a form whose attachments are all named, as YEPCord wants them."""
    named = [
        {"id": str(number), "filename": file.name} for number, file in enumerate(request.files)
    ]
    payload = dict(request.payload)
    if named:
        payload["attachments"] = named
    form = aiohttp.FormData(default_to_multipart=True)
    form.add_field("payload_json", json.dumps(payload), content_type="application/json")
    for file in request.files:
        form.add_field(file.field, file.content, filename=file.name, content_type=file.mime)
    return form
