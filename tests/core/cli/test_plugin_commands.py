"""Commands of plugins: there where a manifest names the plugin, and only there."""

import sys
from types import ModuleType

import pytest

from dragoman import CliCommand, hookimpl
from dragoman.cli import main as program
from dragoman.plugins.catalogue import Catalogue

MANIFEST = 'manifest = 1\n[sinks.x]\nplugin = "acme:book"\n[sinks.y]\nplugin = 3\n'


@pytest.fixture
def acme(monkeypatch, tmp_path):
    """A plugin with a command, in a folder with a manifest that names it."""

    def configure(parser):
        parser.add_argument("-m", "--manifest")
        parser.add_argument("word")

    def run(args):
        print(f"greeting {args.word}")
        return 7

    plugin = ModuleType("acme")

    @hookimpl
    def dragoman_cli():
        return [CliCommand("greet", "greets", configure, run)]

    plugin.dragoman_cli = dragoman_cli
    monkeypatch.setattr(Catalogue, "installed", lambda: Catalogue(objects={"acme": plugin}))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "other.toml").write_text(MANIFEST)
    return tmp_path


def test_a_named_plugins_command_runs(acme, capsys):
    """E1, E5: with the default manifest, or the one that is given."""
    assert program.main(["greet", "you", "-m", "other.toml"]) == 7
    (acme / "dragoman.toml").write_text(MANIFEST)
    assert program.main(["greet", "me"]) == 7
    assert capsys.readouterr().out == "greeting you\ngreeting me\n"


@pytest.mark.parametrize("text", [None, "manifest = 1\n", "not a manifest", 'sinks = "x"\n'])
def test_without_its_name_in_a_manifest_there_is_no_such_command(acme, capsys, text):
    if text is not None:
        (acme / "dragoman.toml").write_text(text)
    with pytest.raises(SystemExit) as end:
        program.main(["greet", "you"])
    assert end.value.code == 2
    assert "invalid choice: 'greet'" in capsys.readouterr().err


def test_core_commands_look_for_no_plugin(acme):
    """E2: what core offers itself imports no plugin to find out."""
    (acme / "dragoman.toml").write_text(MANIFEST)
    before = set(sys.modules)
    with pytest.raises(SystemExit):
        program.main(["plugins", "--help"])
    assert "dragoman.cli.plugin_commands" not in set(sys.modules) - before
