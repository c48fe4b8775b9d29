"""The Bot API on loopback: `lo-bot-api-emulator` in a process of its own, behind a tap.

The emulator judges each request; nobody of this project wrote it. The tap stands before it, in
this process, and does what the emulator cannot:

* it keeps each request with its values (the emulator's own journal has names only);
* it holds back the parameters that the emulator does not know and Telegram does;
* it gives the bot the username that the emulator's ``getMe`` leaves out;
* it can lose an answer after the request was carried out, and refuse in Telegram's own words.

A client that goes away ends its request at the emulator too, as it does at Telegram.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from email import message_from_bytes
from email.policy import HTTP
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import anyio
import anyio.abc
import attrs
import httpx2
from anyio.from_thread import BlockingPortal, start_blocking_portal
from anyio.streams.buffered import BufferedByteReceiveStream

from peers.process import free_port

TOKEN = "700700:AAFixtureTokenOfABotThatIsNoWhere0x"
USERNAME = "dragoman_bot"
UNKNOWN_TO_THE_EMULATOR = ("link_preview_options", "message_thread_id")
SHOWING = ("sendMessage", "editMessageText")
GONE = (anyio.EndOfStream, anyio.IncompleteRead, anyio.BrokenResourceError)


def peers_directory() -> Path:
    """Return the peers' environment: ``DRAGOMAN_PEERS``, else the repository's own."""
    root = Path(__file__).resolve().parents[2]
    return Path(os.environ.get("DRAGOMAN_PEERS", root / ".venv-peers"))


@attrs.frozen
class File:
    """A parameter that came as a file."""

    name: str
    mime: str
    content: bytes = attrs.field(repr=False)


def _parts(body: bytes, content_type: str) -> dict[str, Any]:
    """Return the parameters of a request in parts: numbers as numbers, files as `File`."""
    head = f"Content-Type: {content_type}\r\n\r\n".encode()
    found: dict[str, Any] = {}
    for part in message_from_bytes(head + body, policy=HTTP).iter_parts():
        name, filename = part.get_param("name", header="content-disposition"), part.get_filename()
        content = part.get_payload(decode=True)
        if filename is not None:
            found[name] = File(filename, part.get_content_type(), content)
        else:
            text = content.decode()
            found[name] = int(text) if text.lstrip("-").isdecimal() else text
    return found


@attrs.define(eq=False)
class Call:
    """One request as it came, and its answer once there is one (``status`` is 0 until then)."""

    method: str
    params: dict[str, Any]
    status: int = 0
    answer: dict[str, Any] = attrs.field(factory=dict)

    @property
    def ok(self) -> bool:
        return self.answer.get("ok") is True


@attrs.define(eq=False)
class Fault:
    """What happens to the next call of a method; without an answer the connection is cut."""

    method: str
    status: int = 0
    answer: Mapping[str, Any] | None = None
    headers: Mapping[str, str] = attrs.field(factory=dict)


@attrs.define(eq=False)
class BotApi:
    """A Bot API server for one test; a context manager.

    All methods are synchronous and may be called from any thread.
    """

    token: str = TOKEN
    url: str = ""
    _upstream: str = ""
    _calls: list[Call] = attrs.field(factory=list)
    _faults: list[Fault] = attrs.field(factory=list)
    _changed: threading.Condition = attrs.field(factory=threading.Condition)
    _stack: ExitStack = attrs.field(factory=ExitStack)

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self._upstream = stack.enter_context(_Emulator()).url
            portal = stack.enter_context(start_blocking_portal())
            self.url = stack.enter_context(_Tap(portal, self._handle)).url
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()

    def say(
        self,
        chat_id: int,
        text: str,
        *,
        message_id: int,
        user_id: int | None = None,
        chat_type: str = "private",
        thread: int | None = None,
    ) -> int:
        """Let a person say something, and return the update's id."""
        user = chat_id if user_id is None else user_id
        message: dict[str, Any] = {
            "message_id": message_id,
            "date": int(time.time()),
            "chat": {"id": chat_id, "type": chat_type},
            "from": {"id": user, "is_bot": False, "first_name": f"Person {user}"},
            "text": text,
        }
        if thread is not None:
            message |= {"message_thread_id": thread, "is_topic_message": True}
            message["chat"]["is_forum"] = True
        return self.inject({"message": message})

    def inject(self, update: Mapping[str, Any]) -> int:
        """Put an update into the bot's queue, and return its id."""
        body = json.dumps({"token": self.token, "update": update}).encode()
        request = urllib.request.Request(
            f"{self._upstream}/__fixture/updates", body, {"content-type": "application/json"}
        )
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(request, timeout=60) as response:
            return int(json.load(response)["result"]["update_id"])

    def lose_answer(self, method: str) -> None:
        """Carry out the next call of ``method``, then cut its connection."""
        self._faults.append(Fault(method))

    def refuse(
        self,
        method: str,
        status: int,
        description: str,
        *,
        headers: Mapping[str, str] = {},
        **more: Any,
    ) -> None:
        """Answer the next call of ``method`` with an error; it does not reach the emulator."""
        answer = {"ok": False, "error_code": status, "description": description, **more}
        self._faults.append(Fault(method, status, answer, headers))

    def calls(self, method: str | None = None) -> list[dict[str, Any]]:
        """Return the requests so far in order: ``method``, ``params``, ``status``, ``answer``."""
        with self._changed:
            found = [call for call in self._calls if method in (None, call.method)]
            return [attrs.asdict(call, recurse=False) for call in found]

    def messages(self, chat_id: int) -> dict[int, str]:
        """Return what the bot's messages in a chat show now, by message id."""
        shown: dict[int, str] = {}
        with self._changed:
            for call in self._calls:
                if call.ok and call.method in SHOWING and call.params.get("chat_id") == chat_id:
                    result = call.answer["result"]
                    shown[result["message_id"]] = result["text"]
        return shown

    def wait_for(self, condition: Callable[[], bool], limit: float = 60.0) -> None:
        """Wait until ``condition`` holds, looked at after each request and answer."""
        with self._changed:
            if not self._changed.wait_for(condition, limit):
                seen = [f"{call.method} {call.status}" for call in self._calls[-20:]]
                raise TimeoutError(f"not within {limit} s; the last calls were {seen}")

    def wait_calls(self, method: str, count: int, limit: float = 60.0) -> list[dict[str, Any]]:
        """Wait until ``count`` calls of ``method`` have come, and return all of them."""
        self.wait_for(lambda: len(self.calls(method)) >= count, limit)
        return self.calls(method)

    async def _handle(
        self, path: str, body: bytes, content_type: str
    ) -> tuple[int, bytes, Mapping[str, str]] | None:
        """Answer one request; ``None`` cuts the connection."""
        method = path.rpartition("/")[2]
        if content_type.startswith("multipart/"):
            params = _parts(body, content_type)
        else:
            params = json.loads(body) if body else {}
        call = Call(method, dict(params))
        fault = next((f for f in self._faults if f.method == method), None)
        with self._changed:
            self._calls.append(call)
            if fault is not None:
                self._faults.remove(fault)
            self._changed.notify_all()
        if fault is not None and fault.answer is not None:
            status, answer, headers = fault.status, dict(fault.answer), fault.headers
        else:
            status, answer = await self._forward(path, params)
            headers = {}
        if method == "getMe" and answer.get("ok"):
            answer["result"]["username"] = USERNAME
        with self._changed:
            call.status, call.answer = status, answer
            self._changed.notify_all()
        if fault is not None and fault.answer is None:
            return None
        return status, json.dumps(answer).encode(), headers

    async def _forward(self, path: str, params: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        known = {k: v for k, v in params.items() if k not in UNKNOWN_TO_THE_EMULATOR}
        if "reply_markup" in known:
            known["reply_markup"] = _without_styles(known["reply_markup"])
        async with httpx2.AsyncClient(trust_env=False, verify=False, timeout=90) as client:
            # As in the adapter: no URL that a log could show has the token.
            target = {"target": path.encode("ascii")}
            files = {k: (v.name, v.content) for k, v in known.items() if isinstance(v, File)}
            form = {k: str(v) for k, v in known.items() if k not in files}
            body: dict[str, Any] = {"data": form, "files": files} if files else {"json": known}
            response = await client.post(self._upstream, **body, extensions=target)
            return response.status_code, response.json()


def _without_styles(markup: dict[str, Any]) -> dict[str, Any]:
    """Return a keyboard as the emulator knows it: it refuses keys that have a colour."""
    rows = [
        [{name: value for name, value in key.items() if name != "style"} for key in row]
        for row in markup["inline_keyboard"]
    ]
    return {"inline_keyboard": rows}


class _Emulator:
    """The emulator's process."""

    def __enter__(self) -> Self:
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        self._output = tempfile.TemporaryFile()
        program = peers_directory() / "bin" / "lo-bot-api-emulator"
        self._process = subprocess.Popen(
            [program, "--host", "127.0.0.1", "--port", str(port), "--enable-control"],
            stdin=subprocess.DEVNULL,
            stdout=self._output,
            stderr=subprocess.STDOUT,
        )
        try:
            self._await_port(port)
        except BaseException:
            self.__exit__()
            raise
        return self

    def _await_port(self, port: int, limit: float = 30.0) -> None:
        deadline = time.monotonic() + limit
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
            except OSError:
                if self._process.poll() is not None or time.monotonic() > deadline:
                    self._output.seek(0)
                    output = self._output.read().decode(errors="replace")[-2000:]
                    raise RuntimeError(f"the emulator did not start:\n{output}") from None
                time.sleep(0.02)
            else:
                return

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        try:
            self._process.wait(60)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._output.close()


class _Tap:
    """An HTTP/1.1 server on the portal's loop that hands each request to ``handle``."""

    def __init__(self, portal: BlockingPortal, handle: Callable[..., Any]) -> None:
        self._portal = portal
        self._handle = handle

    def __enter__(self) -> Self:
        self._future, port = self._portal.start_task(self._serve)
        self.url = f"http://127.0.0.1:{port}"
        return self

    def __exit__(self, *_: object) -> None:
        self._future.cancel()

    async def _serve(self, *, task_status: anyio.abc.TaskStatus[int]) -> None:
        async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener:
            task_status.started(listener.extra(anyio.abc.SocketAttribute.local_port))
            await listener.serve(self._connection)

    async def _connection(self, stream: anyio.abc.SocketStream) -> None:
        async with stream:
            reader = BufferedByteReceiveStream(stream)
            try:
                while await self._exchange(stream, reader):
                    pass
            except GONE:
                return

    async def _exchange(
        self, stream: anyio.abc.SocketStream, reader: BufferedByteReceiveStream
    ) -> bool:
        head = (await reader.receive_until(b"\r\n\r\n", 65536)).decode("latin-1")
        request, *lines = head.split("\r\n")
        headers = {
            name.lower(): value.strip() for name, _, value in (x.partition(":") for x in lines)
        }
        body = await reader.receive_exactly(int(headers.get("content-length", "0")))
        answered = None
        async with anyio.create_task_group() as tasks:

            async def watch() -> None:
                with suppress(*GONE):  # a client that waits sends nothing: it has gone
                    await stream.receive()
                tasks.cancel_scope.cancel()

            tasks.start_soon(watch)
            kind = headers.get("content-type", "")
            answered = await self._handle(request.split()[1], body, kind)
            tasks.cancel_scope.cancel()
        if answered is None:
            return False
        status, content, extra = answered
        more = "".join(f"{name}: {value}\r\n" for name, value in extra.items())
        await stream.send(
            f"HTTP/1.1 {status} Status\r\ncontent-type: application/json\r\n{more}"
            f"content-length: {len(content)}\r\n\r\n".encode()
            + content
        )
        return True
