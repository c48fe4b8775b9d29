"""The distributions of this tree move together, and each is whole."""

import subprocess
import sys
import tomllib

import pytest
from packaging.requirements import Requirement


@pytest.fixture
def folders(root):
    """Every distribution's folder, core first."""
    return [root / "core", *(path.parent for path in root.glob("plugins/*/pyproject.toml"))]


@pytest.fixture
def projects(folders):
    """Every distribution's metadata, core first."""
    return [tomllib.loads((path / "pyproject.toml").read_text())["project"] for path in folders]


def test_every_distribution_has_cores_version(projects):
    assert len(projects) > 1
    assert {project["version"] for project in projects} == {projects[0]["version"]}


def test_every_plugins_range_admits_core_and_not_the_next_minor_version(projects):
    """E2: until 1.0 a minor version may break plugins."""
    version = projects[0]["version"]
    major, minor, *_ = version.split(".")
    for project in projects[1:]:
        (needed,) = [
            Requirement(line) for line in project["dependencies"] if line.startswith("dragoman")
        ]
        assert needed.specifier.contains(version), project["name"]
        assert not needed.specifier.contains(f"{major}.{int(minor) + 1}.0"), project["name"]


def test_every_distribution_is_whole(root, folders):
    for folder in folders:
        assert (folder / "README.md").read_text().strip(), folder
        assert (folder / "LICENSE").read_text() == (root / "LICENSE").read_text()
        assert list(folder.glob("src/*/py.typed")), folder


def test_the_changelog_can_be_made_from_its_fragments(root, projects):
    """And every fragment is in it as a sentence."""
    version = projects[0]["version"]
    done = subprocess.run(
        [sys.executable, "-m", "towncrier", "build", "--draft", "--version", version],
        cwd=root,
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"## {version} (")
    for fragment in root.glob("changelog.d/+*.md"):
        sentence = fragment.read_text().strip()
        assert sentence.endswith("."), fragment
        assert f"- {sentence}" in done.stdout, fragment
