"""The rooms with a model that follows a script: no key, no network, the same program and tools.

Only the model is made up: this script answers, at the address that `rehearsal.toml` names, as the
model service would, and starts ``dragoman chat`` beside it.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
import tomllib
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

MANIFEST = Path(os.path.relpath(__file__)).with_name("rehearsal.toml")
HELP = "I can say which rooms are free, or book one, as in “book Birch for 2 hours”."
NUMBERS = count(1)


def decide(said: str, returned: list[str], tools: list[str]) -> str | dict[str, Any]:
    """Return what the model says, or the call that it makes, by the newest words of a person."""
    if returned:
        return returned[-1]
    if wanted := re.search(r"\bbook (\w+)(?: for (\d+))?", said, re.IGNORECASE):
        room, hours = wanted.groups()
        return call("book_room", tools, room=room.capitalize(), hours=int(hours or 1))
    if "free" in said.lower():
        people = re.search(r"\d+", said)
        return call("free_rooms", tools, people=int(people[0]) if people else 1)
    if sent := re.search(r"\[\w+ (\d+\.\d+)", said):
        return call("read_file", tools, reference=sent[1])
    return HELP


def call(name: str, tools: list[str], **arguments: Any) -> dict[str, Any]:
    """Return a call of a tool, under an id that no other call has."""
    full = next(tool for tool in tools if tool.endswith(f"__{name}"))
    return {"type": "tool_use", "id": f"toolu_{next(NUMBERS)}", "name": full, "input": arguments}


def heard(messages: list[dict[str, Any]]) -> tuple[str, list[str]]:
    """Return the newest words of a person, and what tools have returned since."""
    said, returned = "", list[str]()
    for message in messages:
        content = message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        for block in blocks if message["role"] == "user" else ():
            if block["type"] == "tool_result":
                returned.append(words_of(block["content"]))
            elif block["type"] == "text" and not block["text"].startswith(
                ("<system-", "Continue ")
            ):
                said, returned = block["text"], []
    return said, returned


def words_of(content: Any) -> str:
    """Return the text of what a tool returned."""
    if isinstance(content, str):
        return content
    return "".join(block.get("text", "") for block in content)


def events(answer: str | dict[str, Any], model: str) -> Iterator[dict[str, Any]]:
    """Yield the events of a streamed message, word by word."""
    is_call = isinstance(answer, dict)
    usage = {"input_tokens": 1, "output_tokens": 1}
    message = {"id": f"msg_{next(NUMBERS)}", "type": "message", "role": "assistant"}
    message |= {"model": model, "content": [], "stop_reason": None, "usage": usage}
    yield {"type": "message_start", "message": message}
    if isinstance(answer, dict):
        block = {**answer, "input": {}}
        deltas = [{"type": "input_json_delta", "partial_json": json.dumps(answer["input"])}]
    else:
        block = {"type": "text", "text": ""}
        words = re.findall(r"\S+\s*", answer)
        deltas = [{"type": "text_delta", "text": word} for word in words]
    yield {"type": "content_block_start", "index": 0, "content_block": block}
    for delta in deltas:
        yield {"type": "content_block_delta", "index": 0, "delta": delta}
    yield {"type": "content_block_stop", "index": 0}
    stop = {"stop_reason": "tool_use" if is_call else "end_turn", "stop_sequence": None}
    yield {"type": "message_delta", "delta": stop, "usage": usage}
    yield {"type": "message_stop"}


class Model(BaseHTTPRequestHandler):
    """Answers as the model service does."""

    def do_POST(self) -> None:
        """Decide what comes next, and stream it."""
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        said, returned = heard(body["messages"])
        answer = decide(said, returned, [tool["name"] for tool in body.get("tools", ())])
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        for event in events(answer, body["model"]):
            self.wfile.write(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())

    def log_message(self, *_: Any) -> None:
        """Say nothing: the chat is in the same terminal."""


def main() -> int:
    """Chat until the input ends; arguments are those of ``dragoman chat``."""
    runtime = tomllib.loads(MANIFEST.read_text())["runtimes"]["rooms"]
    address = urlsplit(runtime["base_url"])
    with ThreadingHTTPServer((address.hostname, address.port), Model) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        command = [Path(sys.executable).with_name("dragoman"), "chat", "--manifest", MANIFEST]
        done = subprocess.run([*command, *sys.argv[1:]], check=False)
        server.shutdown()
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
