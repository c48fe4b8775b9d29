"""The store as a component: SQLite's by its table, and one of a third party."""

from contextlib import asynccontextmanager
from pathlib import Path

import attrs
import pytest

from dragoman import Component, ManifestError, hookimpl
from dragoman.manifest.load import read
from dragoman.manifest.model import ComponentTable
from dragoman.plugins.catalogue import Catalogue
from dragoman.sqlite import SqliteConfig
from dragoman.store.sqlite import open_sqlite
from dragoman.testing import StubPlugin
from stage import gateway, table

pytestmark = pytest.mark.anyio

MANIFEST = """
manifest = 1
[platforms.console]
[runtimes.echo]
[stores.here]
plugin = "sqlite"
file = "kept/here.db"
[profiles.default]
runtime = "echo"
[access]
owners = ["console:local"]
"""


@attrs.frozen
class NoConfig:
    pass


@attrs.define(eq=False)
class Listening:
    """A store around another one, that hears of every operation."""

    inner: object
    heard: list[str]

    @property
    def read(self):
        return self.inner.read

    @property
    def commits(self):
        return self.inner.commits

    @property
    def connections(self):
        return self.inner.connections

    async def apply(self, operation):
        self.heard.append(type(operation).__name__)
        return await self.inner.apply(operation)


@attrs.define(eq=False)
class WithStore(StubPlugin):
    heard: list[str] = attrs.field(factory=list)

    @hookimpl
    def dragoman_stores(self):
        @asynccontextmanager
        async def open_one(config, host):
            with pytest.raises(RuntimeError, match="is the store"):
                host.records  # noqa: B018 - asking is what is tested
            async with open_sqlite(None) as inner:
                yield Listening(inner, self.heard)

        yield Component("listening", NoConfig, open_one)


async def test_a_third_partys_store_keeps_everything():
    """E1: every write of a turn goes through the store that the manifest names."""
    plugin = WithStore()
    store = ComponentTable(kind="stores", id="s", plugin="stub:listening", config=NoConfig())
    async with gateway(plugin, components=[store, table("platforms", "stub")]) as stage:
        await stage.platform.say("hello")
        await stage.platform.until_shown("hello")
        await stage.until_final()
    assert [name for name in plugin.heard if name != "Renew"] == [
        "PutValue",  # a start is counted
        "Recover",
        "Receive",
        "Accept",
        "Finish",
        "EndSend",
        "DeleteValue",  # and an orderly end makes it forgotten
    ]


async def test_sqlites_store_has_a_table_of_its_own(tmp_path):
    """E1, E3: the file is where the table says, from the manifest's folder."""
    (tmp_path / "dragoman.toml").write_text(MANIFEST)
    manifest = read(tmp_path / "dragoman.toml", Catalogue.installed()).manifest
    (found,) = [one for one in manifest.components if one.kind == "stores"]
    assert found.config == SqliteConfig(file=tmp_path / "kept" / "here.db")
    kept = Path(tmp_path / "kept" / "here.db")
    store = ComponentTable(kind="stores", id="here", plugin="sqlite", config=SqliteConfig(kept))
    async with gateway(components=[store, table("platforms", "stub")]) as stage:
        await stage.platform.say("hello")
        await stage.platform.until_shown("hello")
    assert kept.exists()  # noqa: ASYNC240 - nothing else runs any more


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        (
            '[stores.there]\nplugin = "sqlite"\nfile = "x.db"\n',
            "stores.there: a deployment has one",
        ),
        ('store = ":memory:"\n', "store: [stores.here] says already"),
    ],
)
def test_a_deployment_has_one_store(tmp_path, more, problem):
    text = more + MANIFEST if more.startswith("store =") else MANIFEST + more
    (tmp_path / "dragoman.toml").write_text(text)
    with pytest.raises(ManifestError) as raised:
        read(tmp_path / "dragoman.toml", Catalogue.installed())
    assert problem in str(raised.value)
