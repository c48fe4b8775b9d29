"""A stand-in for MongoDB: its wire protocol, and the few commands that sessions send.

Written from the protocol's documentation. It proves nothing about the real server: it has no
indexes, no limits on documents, and one client after another.
"""

from __future__ import annotations

import itertools
import socketserver
import struct
import threading
from collections.abc import Iterator
from typing import Any, Self

_MESSAGE, _QUERY, _REPLY = 2013, 2004, 1


class MongoStandIn:
    """The stand-in for the length of a ``with`` block; ``documents`` is all that it holds."""

    def __init__(self) -> None:
        self.documents: dict[str, list[dict[str, Any]]] = {}
        self.connections = 0
        self._ids = itertools.count(1)
        self._lock = threading.Lock()

    @property
    def url(self) -> str:
        """Its address."""
        return f"mongodb://127.0.0.1:{self._server.server_address[1]}/?directConnection=true"

    def __enter__(self) -> Self:
        peer = self

        class Connection(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                peer.connections += 1
                try:
                    while header := self.rfile.read(16):
                        self._answer(*struct.unpack("<iiii", header))
                except OSError:
                    pass
                finally:
                    peer.connections -= 1

            def _answer(self, size: int, number: int, _: int, code: int) -> None:
                import bson

                body = self.rfile.read(size - 16)
                command = _command(body) if code == _MESSAGE else {"hello": 1}
                with peer._lock:
                    document = bson.encode({"ok": 1.0, **peer._run(command)})
                if code == _QUERY:
                    kind, said = _REPLY, struct.pack("<iqii", 8, 0, 0, 1) + document
                else:
                    kind, said = _MESSAGE, b"\0\0\0\0\0" + document
                head = struct.pack("<iiii", 16 + len(said), next(peer._ids), number, kind)
                self.wfile.write(head + said)

        self._server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Connection)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def _run(self, command: dict[str, Any]) -> dict[str, Any]:
        name = next(iter(command))
        match name:
            case "hello" | "ismaster" | "isMaster":
                return {"isWritablePrimary": True, "helloOk": True, "maxWireVersion": 21} | _SIZES
            case "ping" | "endSessions" | "createIndexes":
                return {}
        found = self.documents.setdefault(str(command[name]), [])
        match name:
            case "insert":
                found += command["documents"]
                return {"n": len(command["documents"])}
            case "find":
                chosen = [each for each in found if _fits(each, command["filter"])]
                for key, order in reversed(list(command.get("sort", {}).items())):
                    chosen.sort(key=lambda each: each[key], reverse=order < 0)
                chosen = chosen[: command.get("limit") or None]
                return {"cursor": {"id": 0, "ns": "x.y", "firstBatch": chosen}}
            case "findAndModify":
                return {"value": self._changed(found, command)}
            case "delete":
                [one] = command["deletes"]
                kept = [each for each in found if not _fits(each, one["q"])]
                removed, found[:] = len(found) - len(kept), kept
                return {"n": removed}
        return {"ok": 0.0, "errmsg": f"no such command: {name}", "code": 59}

    def _changed(self, found: list[dict[str, Any]], command: dict[str, Any]) -> Any:
        change = command["update"]
        one = next((each for each in found if _fits(each, command["query"])), None)
        if one is None:
            one = {"_id": next(self._ids), **change.get("$setOnInsert", {})}
            found.append(one)
        one.update(change.get("$set", {}))
        for key, more in change.get("$inc", {}).items():
            one[key] = one.get(key, 0) + more
        return one


_SIZES = {"maxBsonObjectSize": 1 << 24, "maxMessageSizeBytes": 48000000, "maxWriteBatchSize": 1000}


def _command(body: bytes) -> dict[str, Any]:
    """Return a message's command, with the lists that came beside it."""
    command: dict[str, Any] = {}
    for kind, name, documents in _sections(body):
        command |= {name: documents} if kind else documents[0]
    return command


def _sections(body: bytes) -> Iterator[tuple[int, str, list[Any]]]:
    import bson

    at = 4
    while at < len(body):
        kind, (size,) = body[at], struct.unpack_from("<i", body, at + 1)
        part, at = body[at + 1 : at + 1 + size], at + 1 + size
        if kind == 0:
            yield 0, "", bson.decode_all(part)
        else:
            name, documents = part[4:].split(b"\0", 1)
            yield 1, name.decode(), bson.decode_all(documents)


def _fits(document: dict[str, Any], query: dict[str, Any]) -> bool:
    for key, wanted in query.items():
        if key == "$or":
            if not any(_fits(document, each) for each in wanted):
                return False
        elif isinstance(wanted, dict):
            if not all(_holds(document.get(key), *each) for each in wanted.items()):
                return False
        elif document.get(key) != wanted:
            return False
    return True


def _holds(value: Any, operator: str, operand: Any) -> bool:
    match operator:
        case "$in":
            return value in operand
        case "$lt":
            return value is not None and value < operand
        case "$exists":
            return (value is not None) is operand
    raise NotImplementedError(operator)
