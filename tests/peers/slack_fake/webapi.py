"""A call of the Web API: carried out, or refused."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Self

import attrs

from peers.slack_fake import checks
from peers.slack_fake.errors import Json, SlackError
from peers.slack_fake.journal import Call
from peers.slack_fake.methods import METHODS
from peers.slack_fake.requests import Raw
from peers.slack_fake.world import World


@attrs.frozen
class Answer:
    """What is sent back; ``body`` is the server's own JSON, if it is that."""

    status: int
    content: bytes
    headers: Mapping[str, str] = attrs.field(factory=dict)
    body: Json = attrs.field(factory=dict)

    @classmethod
    def json(cls, body: Any, headers: Mapping[str, str], status: int = 200) -> Self:
        typed = {"Content-Type": "application/json; charset=utf-8", **headers}
        content = json.dumps(body).encode()
        return cls(status, content, typed, body if isinstance(body, dict) else {})


def carry_out(world: World, call: Call, raw: Raw) -> Answer:
    """R1 to R4: do what a call asks for, if it may ask for that."""
    granted = world.app.scopes if raw.token != world.app.app_token else {"connections:write"}
    headers = {
        "x-oauth-scopes": ",".join(sorted(granted)),
        "x-accepted-oauth-scopes": checks.SCOPES.get(call.method, ""),
        "x-slack-req-id": f"{call.number:032x}",
    }
    try:
        body: Json = {"ok": True, **_result(world, call, raw)}
    except SlackError as error:
        return Answer.json(error.body, headers | error.headers, error.status)
    if raw.warning:
        warned = {"warnings": [raw.warning]} | body.get("response_metadata", {})
        body |= {"warning": raw.warning, "response_metadata": warned}
    return Answer.json(body, headers)


def _result(world: World, call: Call, raw: Raw) -> Json:
    if raw.error:
        raise SlackError(raw.error)
    if call.method not in METHODS:
        raise SlackError("unknown_method", req_method=call.method)
    if call.method != "api.test":
        checks.authorize(world, call.method, raw.token, in_header=raw.in_header)
    checks.need_scope(world, call.method, call.params)
    world.gate.call(call.method, str(call.params.get("channel", "")))
    return METHODS[call.method](world, call)
