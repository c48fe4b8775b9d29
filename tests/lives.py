"""Further lives of a gateway: what a process that was killed leaves behind, in the same process.

`wreck` copies the store as it is at this moment, and what people see: exactly what a kill would
leave of both. The gateway that goes on over the original does not matter any more.
"""

from __future__ import annotations

import itertools
import sqlite3
from contextlib import closing
from pathlib import Path

import attrs

from dragoman.testing import ScriptedRuntime, StubPlatform, StubPlugin
from dragoman.testing.platform import Message


@attrs.define(eq=False)
class Wreck:
    """A store without a process, and a screen that shows what was shown."""

    store: Path
    plugin: StubPlugin

    @property
    def platform(self) -> StubPlatform:
        return self.plugin.platform()

    def run(self, sql, *parameters):
        """Change the store, or ask it."""
        with closing(sqlite3.connect(self.store)) as db, db:
            return db.execute(sql, parameters).fetchall()


def wreck(store: Path, plugin: StubPlugin, script=None) -> Wreck:
    """Return what a kill leaves now; the next life runs ``script``, else the same runtime's."""
    copy = store.with_name(f"{store.stem}+.db")
    with closing(sqlite3.connect(store)) as db, closing(sqlite3.connect(copy)) as target:
        db.backup(target)
    before = plugin.platform()
    runtime = plugin.runtimes["scripted"]
    assert isinstance(runtime, ScriptedRuntime)
    platform = type(before)(
        capabilities=before.capabilities,
        messages=[
            Message(one.native_id, one.address, list(one.texts), one.delivery_id)
            for one in before.messages
        ],
        numbers=itertools.count(1000 * (len(copy.stem) - len(copy.stem.rstrip("+")))),
    )
    scripted = ScriptedRuntime(script or runtime.script, namespace=runtime.namespace)
    scripted.capabilities = runtime.capabilities
    return Wreck(copy, StubPlugin(platforms={"stub": platform}, runtimes={"scripted": scripted}))
