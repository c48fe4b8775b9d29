"""A deployment from wheels: core and third-party plugins in an environment of their own."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import attrs
import pytest

ROOT = Path(__file__).resolve().parents[2]

RUNTIME_DEPENDENCIES = (
    "aiosqlite",
    "anyio",
    "attrs",
    "cattrs",
    "idna",
    "importlib-metadata",
    "lazy-importer",
    "pluggy",
    "regex",
    "typing-extensions",
    "zipp",
)
"""What core needs, with what that needs; a missing one shows as a failed import."""

REGISTERING = '''
from contextlib import asynccontextmanager

import attrs

from dragoman import Component, hookimpl


@attrs.frozen
class Config:
    greeting: str = "hello"


class Product:
    """Stands for what the plugin makes."""


@asynccontextmanager
async def opened(config, host):
    yield Product()


@hookimpl
def dragoman_KIND():
    yield Component("NAME", Config, opened)
'''

GATE = """
from contextlib import asynccontextmanager

import attrs

from dragoman import Component, Verdict, hookimpl


@attrs.frozen
class Config:
    password: str = "please"


@attrs.define(eq=False)
class Gate:
    password: str

    @hookimpl
    async def dragoman_admit(self, event, view):
        if self.password in event.text:
            return Verdict.allow("said the word")
        return Verdict.refuse("did not say the word")


@asynccontextmanager
async def opened(config, host):
    yield Gate(config.password)


@hookimpl
def dragoman_extensions():
    yield Component("gate", Config, opened)
"""

MARKER = "imported-a-plugin-that-nobody-named"
UNNAMED = f"""
import pathlib, sys

pathlib.Path(sys.prefix, {MARKER!r}).write_text("imported")
"""


def registering(kind: str, name: str) -> str:
    return REGISTERING.replace("KIND", kind).replace("NAME", name)


@attrs.frozen
class Project:
    """A third-party distribution ``acme-<name>`` with one plugin."""

    name: str
    source: str
    plugin: str = ""
    requires: str = "dragoman>=0.1,<1"

    def write(self, root: Path) -> Path:
        """Write the project as its author would, and return its directory."""
        module = f"acme_{self.name.replace('-', '_')}"
        directory = root / self.name
        (directory / module).mkdir(parents=True)
        (directory / module / "__init__.py").write_text(self.source)
        (directory / "pyproject.toml").write_text(
            textwrap.dedent(f"""\
                [build-system]
                requires = ["hatchling"]
                build-backend = "hatchling.build"

                [project]
                name = "acme-{self.name}"
                version = "0.7"
                dependencies = ["{self.requires}"]

                [project.entry-points.dragoman]
                {self.plugin or self.name} = "{module}"
                """)
        )
        return directory


ACME = Path(__file__).parent / "acme"

PROJECTS = (
    *(Project(path.stem, path.read_text()) for path in sorted(ACME.glob("*.py"))),
    Project("irc", registering("platforms", "irc")),
    Project("parrot", registering("runtimes", "parrot")),
    Project("attic", registering("memories", "attic")),
    Project("ticker", registering("sinks", "ticker")),
    Project("gate", GATE),
    Project("lost", "import a_module_that_is_nowhere\n"),
    Project("garbled", "def broken(:\n"),
    Project("leaving", "import sys\nsys.exit(3)\n"),
    Project("outdated", registering("sinks", "outdated"), requires="dragoman>=0.0.1,<0.1"),
    Project("matrix-one", registering("platforms", "matrix"), plugin="matrix"),
    Project("matrix-two", registering("platforms", "matrix"), plugin="matrix"),
    Project("pretender", registering("platforms", "console"), plugin="console"),
    Project("unnamed", UNNAMED),
)


@attrs.frozen
class Deployment:
    """An environment with wheels in it, and nothing of the checkout."""

    prefix: Path

    @property
    def python(self) -> Path:
        return self.prefix / "bin" / "python"

    def run(self, code: str, expect: int = 0) -> Any:
        """Run code in the environment; return what it printed, read as JSON."""
        environment = {"HOME": str(self.prefix), "PATH": os.defpath}
        done = subprocess.run(
            [self.python, "-I", "-c", code],
            env=environment,
            cwd=self.prefix,
            capture_output=True,
            text=True,
            timeout=110,
            check=False,
        )
        assert done.returncode == expect, done.stderr
        assert done.stderr == ""
        return json.loads(done.stdout)


def build_wheel(project: Path, wheels: Path) -> None:
    """Build a project's wheel with what is installed."""
    build = [sys.executable, "-m", "build", "--no-isolation", "--wheel"]
    finish([*build, "--outdir", str(wheels), str(project)])


def finish(command: list[str]) -> None:
    """Run a command to its end; show what it said if it fails."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=110, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def locked(names: tuple[str, ...]) -> str:
    """Return the entries of the lock file for these distributions, hashes included."""
    lock = (ROOT / "requirements" / "dev.txt").read_text()
    entries = re.findall(r"^[^\s#].*(?:\n[ \t].*)*", lock, re.MULTILINE)
    return "\n".join(entry for entry in entries if entry.partition("==")[0] in names)


@pytest.fixture(scope="session")
def deployment(tmp_path_factory: pytest.TempPathFactory) -> Deployment:
    """Wheels of core and of all projects, installed as a user would install them."""
    root = tmp_path_factory.mktemp("deployment")
    wheels, prefix = root / "wheels", root / "environment"
    build_wheel(ROOT / "core", wheels)
    for project in PROJECTS:
        build_wheel(project.write(root), wheels)
    requirements = root / "requirements.txt"
    requirements.write_text(locked(RUNTIME_DEPENDENCIES))
    finish([sys.executable, "-m", "venv", "--without-pip", str(prefix)])
    pip = [sys.executable, "-m", "pip", "--python", str(prefix / "bin" / "python"), "install"]
    finish([*pip, "--quiet", "--no-deps", "--require-hashes", "-r", str(requirements)])
    finish([*pip, "--quiet", "--no-deps", "--no-index", *map(str, wheels.glob("*.whl"))])
    return Deployment(prefix)
