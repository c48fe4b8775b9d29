"""The pages say what the code does: generated ones are current, and examples run."""

import re
import runpy
import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from dragoman.application import Application
from dragoman.cli.main import COMMANDS, main
from dragoman.manifest.load import read
from dragoman.plugins.catalogue import Catalogue
from peers.process import free_port

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"


def blocks(page, language):
    """The fenced blocks of one language."""
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("name", ["hooks.md", "manifest.md"])
def test_a_generated_page_is_current(name):
    """E3: every hook with its arguments and every setting is documented."""
    page = runpy.run_path(str(DOCS / "generate.py"))["PAGES"][name]
    assert (DOCS / name).read_text() == page(), "run `make docs`"


def test_every_setting_says_what_it_is():
    """E3: a key without help would be missing from the manifest's page."""
    import attrs

    tables = runpy.run_path(str(DOCS / "generate.py"))
    catalogue = Catalogue.installed()
    classes = [cls for _, cls, _ in tables["TABLES"]]
    classes += [catalogue.resolve(kind, name).config for kind, name in tables["COMPONENTS"]]
    silent = [
        f"{cls.__name__}.{field.name}"
        for cls in classes
        for field in attrs.fields(cls)
        if "help" not in field.metadata
    ]
    own = ("components", "profiles", "routes", "access", "limits", "network")
    assert silent == [f"Manifest.{name}" for name in own]


def test_the_readmes_manifest_is_right(tmp_path):
    (text,) = blocks(ROOT / "README.md", "toml")
    (tmp_path / "dragoman.toml").write_text(text)
    environment = {"TELEGRAM_TOKEN": "123456789:" + "A" * 35, "OPENAI_API_KEY": "sk-dummy-key"}
    loaded = read(tmp_path / "dragoman.toml", Catalogue.installed(), environment)
    assert loaded.warnings == ()


def test_every_make_target_that_is_named_exists():
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *DOCS.rglob("*.md")]:
        for target in re.findall(r"`make ([a-z]+)`", page.read_text()):
            assert target in targets, page


def test_every_link_between_pages_leads_somewhere():
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *DOCS.rglob("*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page}: {target}"


def test_commands_are_the_same_in_help_and_docs(capsys):
    """E5: the list of commands, the program's help and the guarantees agree."""
    with pytest.raises(SystemExit):
        main(["--help"])
    shown = capsys.readouterr().out
    assert re.findall(r"^    ([a-z]+)  ", shown, re.MULTILINE) == list(COMMANDS)
    row = re.search(
        r"^\| E5 \| The commands (.*?)\.", (DOCS / "guarantees.md").read_text(), re.MULTILINE
    )
    assert set(re.findall(r"[a-z]+", row[1])) - {"and"} == set(COMMANDS)
    for name in COMMANDS:
        with pytest.raises(SystemExit) as end:
            main([name, "--help"])
        assert end.value.code == 0


@pytest.mark.anyio
async def test_the_example_plugin_works(tmp_path):
    """C1, E2: what the page shows is a whole platform."""
    (source,) = blocks(DOCS / "write-a-plugin.md", "python")
    manifest = blocks(DOCS / "write-a-plugin.md", "toml")[1]
    port = free_port()
    (tmp_path / "dragoman_lines.py").write_text(source)
    (tmp_path / "dragoman.toml").write_text(manifest.replace("7007", str(port)))
    namespace = runpy.run_path(str(tmp_path / "dragoman_lines.py"))
    module = type(
        "Plugin", (), {"dragoman_platforms": staticmethod(namespace["dragoman_platforms"])}
    )
    catalogue = Catalogue(objects={"lines": module})
    app = Application(read(tmp_path / "dragoman.toml", catalogue).manifest, catalogue)
    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            await tasks.start(lambda *, task_status: app.run(task_status=task_status))
            stream = None
            while stream is None:
                try:
                    stream = await anyio.connect_tcp("127.0.0.1", port)
                except OSError:
                    await anyio.lowlevel.checkpoint()
            async with stream:
                await stream.send(b"hello there\n")
                assert await stream.receive() == b"hello there\n"
            app.stop()


def test_the_example_plugin_is_typed_as_an_author_would(tmp_path):
    """E4: the public names are enough for strict types."""
    (source,) = blocks(DOCS / "write-a-plugin.md", "python")
    (tmp_path / "dragoman_lines.py").write_text(source)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--config-file=", "dragoman_lines.py"],
        cwd=tmp_path,
        env={"MYPYPATH": str(ROOT / "core" / "src"), "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=55,
        check=False,
    )
    assert done.returncode == 0, done.stdout
