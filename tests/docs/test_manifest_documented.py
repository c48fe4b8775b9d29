"""``docs/manifest.md`` names every table and setting, those of the built-in plugins included."""

import runpy
import tomllib

import attrs
import pytest

from dragoman.manifest.model import Manifest
from dragoman.manifest.tables import KINDS
from dragoman.plugins.catalogue import Catalogue


@pytest.fixture
def generator(root):
    return runpy.run_path(str(root / "docs" / "generate.py"))


def test_the_page_is_current(root, generator):
    made = generator["PAGES"]["manifest.md"]()
    assert (root / "docs" / "manifest.md").read_text() == made, "run `make docs`"


def test_every_component_of_this_tree_has_a_table(root, generator):
    """E3: whatever the distributions of this tree register is on the page."""
    catalogue = Catalogue.installed()
    registered = set()
    for path in (root / "core" / "pyproject.toml", *root.glob("plugins/*/pyproject.toml")):
        for plugin in tomllib.loads(path.read_text())["project"]["entry-points"]["dragoman"]:
            for kind in KINDS:
                registered |= {(kind, each.name) for each in catalogue.components(kind, plugin)}
    assert registered == set(generator["COMPONENTS"])


def test_every_table_of_core_is_on_the_page(generator):
    """E3: a table that the model gets has to be shown as well."""
    titles = " ".join(title for title, _ in generator["TABLES"])
    for field in attrs.fields(Manifest):
        if "help" not in field.metadata and field.name != "components":
            assert f"[{field.name}" in titles, field.name


def test_every_setting_says_what_it_is(generator):
    """E3: a key without help would be missing from the page."""
    catalogue = Catalogue.installed()
    classes = [cls for _, cls in generator["TABLES"]]
    classes += [catalogue.resolve(kind, name).config for kind, name in generator["COMPONENTS"]]
    silent = [
        f"{cls.__name__}.{field.name}"
        for cls in classes
        for field in attrs.fields(cls)
        if "help" not in field.metadata
    ]
    tables = ("components", "profiles", "routes", "access", "limits", "delivery", "network")
    assert silent == [f"Manifest.{name}" for name in tables]
