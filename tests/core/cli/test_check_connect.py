"""``dragoman check --connect``: every component tries its connection; and mounts need a listener."""

from collections.abc import Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import attrs
import pytest

from dragoman import Component, Finding, PluginError, Unauthorized, hookimpl
from dragoman.application import Application
from dragoman.cli.opening import try_opening
from dragoman.manifest.model import ComponentTable, Manifest, Profile
from dragoman.plugins.catalogue import Catalogue
from dragoman.secret import Secret
from dragoman.testing.platform import StubConfig
from stage import ECHO


@attrs.frozen
class Probed:
    """A plugin whose extensions find what their name says."""

    @hookimpl
    def dragoman_extensions(self) -> Iterable[Component[Any, object]]:
        return (Component("found", StubConfig, self.open),)

    @asynccontextmanager
    async def open(self, config, host):
        if host.id == "mounting":
            host.mount("/hook", lambda: None)
        if host.id == "listening":
            host.serve_mounts()
        yield Answers(host.id)


@attrs.frozen
class Answers:
    what: str

    async def probe(self):
        match self.what:
            case "refused":
                raise Unauthorized("the token s3cret is not accepted")
            case "broken":
                raise RuntimeError("s3cret")
            case "bad":
                return [Finding("ok", "reached"), Finding("problem", "s3cret is old", "a new one")]
            case "fine":
                return [Finding("ok", "reached"), Finding("warning", "half")]
        return []


def manifest_of(*ids):
    tables = [
        ComponentTable(kind="extensions", id=id_, plugin="found", config=StubConfig())
        for id_ in ids
    ]
    profiles = {"default": Profile(runtime="echo")}
    return Manifest(store=":memory:", components=(ECHO, *tables), profiles=profiles)


def opened(*ids, connect=True):
    secret = Secret("found.token", "s3cret")
    catalogue = Catalogue(objects={"found": Probed()})
    return try_opening(manifest_of(*ids), catalogue, [secret], connect=connect)


@pytest.mark.parametrize(
    ("what", "found"),
    [
        ("fine", [("ok", "reached"), ("warning", "half")]),
        ("bad", [("ok", "reached"), ("problem", "[secret] is old")]),
        ("refused", [("problem", "the probe failed: the token [secret] is not accepted")]),
        ("broken", [("problem", "the probe failed: RuntimeError")]),
        ("silent", []),
    ],
)
def test_each_component_says_what_it_finds_and_no_secret(what, found):
    """B10, invariant 12."""
    said = opened(what, "fine").findings
    own = [(one.level, one.text) for name, one in said if name == f"extensions.{what}"]
    assert [(level, text.split(" at ")[0]) for level, text in own][: len(found)] == found
    assert ("extensions.fine", Finding("ok", "reached")) in said
    assert "s3cret" not in repr(said)


def test_nothing_is_probed_unless_asked_for():
    assert opened("bad", connect=False).findings == []


@pytest.mark.parametrize("beside", [(), ("fine",)])
def test_what_is_offered_over_http_needs_somebody_who_listens(beside):
    """C1: told when the manifest is checked, and at the start."""
    [problem] = opened("mounting", *beside, connect=False).problems
    assert "extensions.mounting" in problem
    assert "/hook" in problem
    assert "[extensions.http]" in problem
    app = Application(manifest_of("mounting"), Catalogue(objects={"found": Probed()}))
    with pytest.raises(BaseExceptionGroup) as refused:
        anyio.run(app.run)
    assert refused.group_contains(PluginError, match="nothing in the manifest listens", depth=None)


def test_with_a_listener_all_is_well():
    assert opened("mounting", "listening", connect=False).problems == []


def test_the_set_up_of_a_platform_is_printed_by_init(tmp_path, monkeypatch, capsys):
    """E5: what has to be done outside is told where a manifest is made."""
    from dragoman.cli.main import main

    setup = "1. Ask the keeper for a key."
    monkeypatch.chdir(tmp_path)
    component = attrs.evolve(next(iter(_echo())), setup=setup)
    monkeypatch.setattr(Catalogue, "resolve", lambda *_: component)
    assert main(["init", "--platform", "echo"]) == 0
    said = capsys.readouterr().out
    assert setup in said
    assert "dragoman check --connect" in said
    assert Path("dragoman.toml").exists()


def _echo():
    from dragoman import echo

    return echo.dragoman_runtimes()
