"""Records what the real program says, for the tests that translate it.

    PYTHONPATH=tests python tests/plugins/claude_runtime/recorder.py [SCENE ...]

Each scene of `scenes.SCENES` becomes ``recorded/SCENE.jsonl``: the messages of the program as the
SDK is given them, in order, without what tells of the machine. To be run again for every new
release of the SDK; a test says when.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
import re
import sys
import tempfile
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import anyio
import attrs
from aiohttp import web
from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient, ClaudeSDKError, ResultMessage
from claude_agent_sdk._internal import message_parser

from peers.loopback import Gone, Loopback
from plugins.claude_runtime.scenes import SCENES, Reply, Scene

RECORDED: Final = Path(__file__).parent / "recorded"
_MODEL: Final = "claude-sonnet-5"
_QUIET: Final = (
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
    "CLAUDE_CODE_DISABLE_AUTO_MEMORY",
    "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS",
    "DISABLE_AUTOUPDATER",
    "DISABLE_TELEMETRY",
    "DISABLE_ERROR_REPORTING",
)
_OF_INIT: Final = (
    "type",
    "subtype",
    "session_id",
    "uuid",
    "model",
    "permissionMode",
    "claude_code_version",
)


@attrs.define(eq=False)
class Model(Loopback):
    """A model service that gives the replies of a scene, one for each request."""

    replies: deque[Reply] = attrs.field(factory=deque)
    numbers: Iterator[int] = attrs.field(factory=lambda: itertools.count(1))

    async def handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        reply = self.replies.popleft() if self.replies else Reply()
        number = next(self.numbers)
        if reply.status:
            error = {"type": reply.error, "message": reply.text}
            return web.json_response({"type": "error", "error": error}, status=reply.status)
        blocks = list(_blocks(reply, number))
        message = {
            "id": f"msg_{number}",
            "type": "message",
            "role": "assistant",
            "model": body["model"],
            "content": blocks,
            "stop_reason": reply.stop or ("tool_use" if reply.calls else "end_turn"),
            "stop_sequence": None,
            "usage": {"input_tokens": 10, "output_tokens": 5} | reply.usage,
        }
        if not body.get("stream"):
            return web.json_response(message)
        stream = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await stream.prepare(request)
        for event in _events(reply, message):
            if event["type"] == "cut":
                await asyncio.sleep(0.05)
                raise Gone
            if event["type"] == "hold":
                await asyncio.sleep(event["seconds"])
                continue
            with suppress(ConnectionError):
                await stream.write(
                    f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()
                )
        return stream


def _blocks(reply: Reply, number: int) -> Iterator[dict[str, Any]]:
    if reply.thinking:
        yield {"type": "thinking", "thinking": reply.thinking, "signature": "c2ln"}
    for text in [reply.text, *reply.more]:
        if text:
            yield {"type": "text", "text": text}
    yield from reply.raw
    for place, (name, arguments) in enumerate(reply.calls, 1):
        yield {
            "type": "tool_use",
            "id": f"toolu_{number}_{place}",
            "name": name,
            "input": arguments,
        }


def _events(reply: Reply, message: dict[str, Any]) -> Iterator[dict[str, Any]]:
    begun = message | {"content": [], "stop_reason": None}
    yield {"type": "message_start", "message": begun}
    for index, block in enumerate(message["content"]):
        empty, deltas = _pieces(block)
        yield {"type": "content_block_start", "index": index, "content_block": empty}
        for delta in deltas:
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        if reply.cut == index:
            if reply.error:
                yield {"type": "error", "error": {"type": reply.error, "message": "scripted"}}
            yield {"type": "cut"}
        if reply.hold:
            yield {"type": "hold", "seconds": reply.hold}
        yield {"type": "content_block_stop", "index": index}
    if reply.cut is not None and reply.cut >= len(message["content"]):
        yield {"type": "cut"}
    yield {
        "type": "message_delta",
        "delta": {"stop_reason": message["stop_reason"], "stop_sequence": None},
        "usage": message["usage"],
    }
    yield {"type": "message_stop"}


def _pieces(block: dict[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    kind = block["type"]
    if kind == "text":
        words = block["text"]
        cuts = [words[at : at + 6] for at in range(0, len(words), 6)]
        return block | {"text": ""}, [{"type": "text_delta", "text": cut} for cut in cuts]
    if kind == "thinking":
        deltas = [
            {"type": "thinking_delta", "thinking": block["thinking"]},
            {"type": "signature_delta", "signature": block["signature"]},
        ]
        return block | {"thinking": "", "signature": ""}, deltas
    if kind in ("tool_use", "server_tool_use"):
        given = json.dumps(block["input"])
        return block | {"input": {}}, [{"type": "input_json_delta", "partial_json": given}]
    return block, []


@attrs.define(eq=False)
class Recording:
    """One scene as it plays: what the program has said so far."""

    scene: Scene
    root: Path
    port: int
    heard: list[dict[str, Any]] = attrs.field(factory=list)
    results: int = 0

    def options(self, further: dict[str, Any]) -> ClaudeAgentOptions:
        for name in ("home", "config", "temp", "work"):
            (self.root / name).mkdir(exist_ok=True)
        scene = self.scene
        given: dict[str, Any] = {
            "cwd": self.root / "work",
            "model": _MODEL,
            "setting_sources": [],
            "strict_mcp_config": True,
            "tools": [],
            "verbatim_prompts": True,
            "include_partial_messages": True,
            "max_buffer_size": 32 << 20,
            "env": {
                **dict.fromkeys(_QUIET, "1"),
                "HOME": str(self.root / "home"),
                "CLAUDE_CONFIG_DIR": str(self.root / "config"),
                "CLAUDE_CODE_TMPDIR": str(self.root / "temp"),
                "ANTHROPIC_API_KEY": "dummy",
                "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{self.port}",
                "CLAUDE_CODE_MAX_RETRIES": str(scene.retries),
            }
            | scene.env,
        }
        return ClaudeAgentOptions(**(given | scene.options | further))

    async def play(self) -> None:
        for further in self.scene.runs:
            try:
                async with ClaudeSDKClient(self.options(further)) as client:
                    for prompt in self.scene.prompts if further == self.scene.runs[0] else ():
                        await self._say(client, prompt)
                    with anyio.move_on_after(self.scene.seconds):
                        await self._listen(client)
            except ClaudeSDKError as error:
                self.heard.append({"type": "raised", "error": type(error).__name__})

    async def _say(self, client: ClaudeSDKClient, prompt: Any) -> None:
        async def one() -> Any:
            yield prompt

        await client.query(one())

    async def _listen(self, client: ClaudeSDKClient) -> None:
        results = 0
        async for message in client.receive_messages():
            if self.scene.during is not None:
                await self.scene.during(client, message)
            if isinstance(message, ResultMessage):
                results += 1
                if results == self.scene.results:
                    break

    def note(self, data: dict[str, Any]) -> None:
        is_init = data.get("type") == "system" and data.get("subtype") == "init"
        self.heard.append({name: data[name] for name in _OF_INIT} if is_init else data)

    def text(self) -> str:
        lines = "".join(json.dumps(one) + "\n" for one in self.heard)
        resolved = str(self.root.resolve())
        for place in (resolved, resolved.replace("/", "-").replace("_", "-")):
            lines = lines.replace(place, "/somewhere")
        lines = re.sub(r"https://[\w.]+", "https://example.com", lines)
        return lines.replace(f":{self.port}", ":0")


def record(name: str) -> None:
    """Play a scene and keep what was said."""
    scene = SCENES[name]
    model = Model(replies=deque(scene.replies))
    model.start()
    parse = message_parser.parse_message
    try:
        with tempfile.TemporaryDirectory(prefix="recorded-") as root:
            recording = Recording(scene, Path(root), model.port if scene.reachable else 9)

            def noted(data: dict[str, Any]) -> Any:
                recording.note(data)
                return parse(data)

            message_parser.parse_message = noted
            anyio.run(recording.play)
            (RECORDED / f"{name}.jsonl").write_text(recording.text())
    finally:
        message_parser.parse_message = parse
        model.stop()


def main(names: Sequence[str]) -> None:
    """Record the scenes named, or all."""
    logging.disable()
    RECORDED.mkdir(exist_ok=True)
    for name in names or SCENES:
        record(name)
        print(name)


if __name__ == "__main__":
    main(sys.argv[1:])
