"""The page on writing a plugin shows a whole one: it runs, and its types are strict."""

import runpy
import subprocess
import sys
import tomllib
from types import ModuleType

import anyio
import pytest
from packaging.requirements import Requirement

import dragoman.runtimes
from dragoman.application import Application
from dragoman.manifest.load import read
from dragoman.plugins.catalogue import Catalogue
from dragoman.testing.platform_suite import PlatformSuite
from dragoman.testing.runtime_suite import RuntimeSuite
from peers.process import free_port

PAGE = "docs/write-a-plugin.md"


@pytest.fixture
def plugin(blocks, tmp_path):
    """The page's module as a file."""
    source, *_ = blocks(PAGE, "python")
    path = tmp_path / "dragoman_lines.py"
    path.write_text(source)
    return path


def test_its_metadata_names_the_module_and_admits_this_core(blocks, root):
    """E2."""
    project = tomllib.loads(blocks(PAGE, "toml")[0])["project"]
    assert project["entry-points"]["dragoman"] == {"lines": "dragoman_lines"}
    core = tomllib.loads((root / "core" / "pyproject.toml").read_text())["project"]["version"]
    (needed,) = [Requirement(line) for line in project["dependencies"] if "dragoman" in line]
    assert needed.specifier.contains(core)


@pytest.mark.anyio
async def test_a_line_is_answered(blocks, plugin, tmp_path):
    """C1, E2: a platform in one file repeats nothing of sessions or turns."""
    port = free_port()
    manifest = tmp_path / "dragoman.toml"
    manifest.write_text(blocks(PAGE, "toml")[1].replace("7007", str(port)))
    hook = runpy.run_path(str(plugin))["dragoman_platforms"]
    module = type("Plugin", (), {"dragoman_platforms": staticmethod(hook)})
    catalogue = Catalogue(objects={"lines": module})
    app = Application(read(manifest, catalogue).manifest, catalogue)
    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            await tasks.start(lambda *, task_status: app.run(task_status=task_status))
            async with await connected(port) as stream:
                await stream.send(b"hello there\n")
                assert await stream.receive() == b"hello there\n"
            app.stop()


async def connected(port):
    """Return a connection as soon as somebody listens."""
    while True:
        try:
            return await anyio.connect_tcp("127.0.0.1", port)
        except OSError:
            await anyio.lowlevel.checkpoint()


def test_its_types_are_strict(plugin, root):
    """E4: the public names are enough."""
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--config-file=", plugin.name],
        cwd=plugin.parent,
        env={"MYPYPATH": str(root / "core" / "src"), "HOME": str(plugin.parent)},
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("number", "name", "suite"), [(1, "TestLines", PlatformSuite), (2, "TestPoet", RuntimeSuite)]
)
def test_its_suites_are_the_suites(blocks, number, name, suite):
    """The modules are subclasses as pytest takes them."""
    names = {}
    exec(blocks(PAGE, "python")[number], names)
    assert issubclass(names[name], suite)


def test_it_names_all_that_runtimes_share(root):
    """E4."""
    page = (root / PAGE).read_text()
    names = [name for name in vars(dragoman.runtimes) if not name.startswith("_")]
    kept = [name for name in names if not isinstance(vars(dragoman.runtimes)[name], ModuleType)]
    assert kept
    assert [name for name in kept if f"`{name}`" not in page] == []
