"""A gateway in a process of its own, for tests that kill it.

Its platform shows messages in a file, which outlives the process, and tells on standard output how
far things have come. ``python killable.py FOLDER LIFE FAULT IDEMPOTENT`` reads JSON lines
``{"id", "channel", "text"}``; in life 1 it behaves as FAULT says, in life 2 it ends when every row
is final.
"""

import json
import sys
from datetime import UTC, datetime
from pathlib import Path

import anyio
import attrs

from dragoman import (
    Capabilities,
    Finished,
    Receipt,
    TextBlock,
    TextDelta,
    Transport,
    hookimpl,
)
from dragoman.application import Application
from dragoman.manifest.model import Access, ComponentTable, Manifest, Profile
from dragoman.plugins.catalogue import Catalogue
from dragoman.testing import ScriptedRuntime, StubPlatform, StubPlugin
from dragoman.testing.platform import StubConfig

FOLDER, LIFE, FAULT, IDEMPOTENT = Path(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4] == "1"
FIRST = LIFE == "1"


def tell(what):
    print(what, flush=True)


@attrs.define(eq=False)
class Screen(StubPlatform):
    """Keeps what is shown in a file."""

    def read(self):
        file = FOLDER / "screen.json"
        return json.loads(file.read_text()) if file.exists() else []

    def write(self, rows):
        part = FOLDER / "screen.part"
        part.write_text(json.dumps(rows))
        part.replace(FOLDER / "screen.json")

    async def send(self, address, message):
        rows = self.read()
        if FIRST and (FAULT == "unsent" or (FAULT == "second part" and rows)):
            tell("sending")
            await anyio.sleep_forever()
        known = [row for row in rows if IDEMPOTENT and row["delivery"] == message.delivery_id]
        if not known:
            rows.append(
                {"delivery": message.delivery_id, "channel": address.channel, "text": message.text}
            )
            self.write(rows)
        number = rows.index(known[0]) if known else len(rows) - 1
        if FIRST and FAULT == "landed":
            tell("landed")
            await anyio.sleep_forever()
        return Receipt(str(number), message.text)

    async def edit(self, address, native_id, message):
        rows = self.read()
        rows[int(native_id)]["text"] = message.text
        self.write(rows)
        return Receipt(native_id, message.text)


class Gate:
    @hookimpl
    async def dragoman_admit(self, event):
        if FIRST and FAULT == "undecided":
            await anyio.sleep_forever()


async def script(request, host):
    text = request.inputs[0].text
    if text == "stream":
        yield TextDelta("1", "this is what was shown so far " * 4)
    if text == "parts":
        yield TextBlock("1", "\n\n".join(f"part{n} ".ljust(60, "x") for n in range(3)))
    elif text in ("stream", "silent"):
        tell("running")
        await anyio.sleep_forever()
    else:
        yield TextBlock("1", text)
    yield Finished()


async def main():
    plugin = StubPlugin()
    plugin.platforms["stub"] = platform = Screen(
        capabilities=Capabilities(
            max_text=112,
            transport=Transport.ACK_GATED,
            edit=True,
            idempotent_send=IDEMPOTENT,
            edit_interval=0.05,
        )
        if FAULT in ("second part", "none")
        else Capabilities(
            max_text=4096,
            transport=Transport.ACK_GATED,
            edit=True,
            idempotent_send=IDEMPOTENT,
            edit_interval=0.05,
        )
    )
    plugin.runtimes["scripted"] = ScriptedRuntime(script)
    plugin.extensions["gate"] = Gate()
    app = Application(
        Manifest(
            data_dir=FOLDER,
            components=tuple(
                ComponentTable(kind=kind, id=id_, plugin="stub", config=StubConfig())
                for kind, id_ in (
                    ("runtimes", "scripted"),
                    ("extensions", "gate"),
                    ("platforms", "stub"),
                )
            ),
            profiles={"default": Profile(runtime="scripted")},
            access=Access(channels=("stub:1", "stub:2")),
        ),
        Catalogue(objects={"stub": plugin}),
    )
    async with anyio.create_task_group() as tasks:
        await tasks.start(lambda *, task_status: app.run(task_status=task_status))
        if FIRST:
            async for line in anyio.wrap_file(sys.stdin):
                data = json.loads(line)
                await platform.say(
                    data["text"],
                    channel=data["channel"],
                    native_id=data["id"],
                    sent_at=datetime.now(UTC),
                )
                tell(f"received {data['id']}")
        else:
            await until_final(app)
            app.stop()


async def until_final(app):
    open_ = {
        "inbound_events": ("received", "held", "queued", "adopted"),
        "agent_runs": ("running", "waiting"),
        "deliveries": ("pending", "sending", "uncertain"),
    }
    while True:
        states = await app.store.read.states()
        if not any(set(states[name]) & set(unfinished) for name, unfinished in open_.items()):
            tell(json.dumps({name: dict(counts) for name, counts in states.items()}))
            return
        await anyio.sleep(0.01)


anyio.run(main)
