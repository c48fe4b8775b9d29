"""What metadata alone tells about the installed plugins."""

from __future__ import annotations

import itertools
import subprocess
import sys
from typing import Any

import pytest

SITES = ("first", "second", "third")


def test_a_plugin_is_found_by_its_entry_point(site: Any) -> None:
    site.install("acme-irc", "1.2", {"irc": "acme_irc"}, requires=("dragoman>=0.1",))
    site.install("unrelated", "3.0")
    found = site.discover()
    (plugin,) = found.plugins
    assert (plugin.name, plugin.label, plugin.module) == ("irc", "acme-irc 1.2", "acme_irc")
    assert plugin.problem is None
    assert found.warnings == ()
    assert found.get("irc") is plugin
    assert found.get("matrix") is None


def test_discovery_imports_no_plugin(site: Any) -> None:
    site.install("acme-irc", entries={"irc": "plg_noisy"})
    site.module("plg_noisy", "raise SystemExit('imported')")
    code = (
        "import sys; from dragoman.plugins.discover import discover\n"
        "assert 'importlib_metadata' not in sys.modules\n"
        "assert discover().get('irc').problem is None\n"
        "assert 'plg_noisy' not in sys.modules\n"
    )
    env = {"PYTHONPATH": str(site.root)}
    subprocess.run([sys.executable, "-c", code], env=env, check=True, timeout=110)


@pytest.mark.parametrize("order", list(itertools.permutations(SITES)))
def test_fc_plg_03_two_distributions_with_one_name_are_an_error_that_names_both(
    site: Any, order: tuple[str, ...]
) -> None:
    site.install("other", "2.0", {"matrix": "other_matrix"}, at="first")
    site.install("another", "1.0", {"matrix": "another_matrix"}, at="second")
    site.install("bystander", "1.0", {"xmpp": "bystander"}, at="third")
    found = site.discover(*order)
    both = "the name 'matrix' is claimed by another 1.0 (another_matrix) and other 2.0"
    assert [plugin.distribution for plugin in found.plugins] == ["another", "other", "bystander"]
    for plugin in found.plugins[:2]:
        assert plugin.problem is not None
        assert plugin.problem.startswith(both)
    assert found.plugins[2].problem is None


@pytest.mark.parametrize("order", list(itertools.permutations(SITES[:2])))
def test_fc_plg_03_a_name_of_core_cannot_be_taken(site: Any, order: tuple[str, ...]) -> None:
    site.install("dragoman", "0.1.0", {"console": "dragoman.console"}, at="first")
    site.install("acme-console", "1.0", {"console": "acme"}, at="second")
    found = site.discover(*order)
    own, pretender = found.plugins
    assert found.get("console") is own
    assert (own.distribution, own.problem) == ("dragoman", None)
    assert pretender.problem == "the name 'console' is dragoman's own"
    assert pretender.remedy == "pip uninstall acme-console"


def test_fc_plg_02_a_stale_copy_collapses_to_the_one_that_is_imported(site: Any) -> None:
    site.install(
        "demo-plugin", "1.0", {"demo": "old_mod"}, egg="demo_plugin.egg-info", at="project"
    )
    site.install("demo_plugin", "2.0", {"demo": "new_mod"}, at="site")
    for places, module in ((("site", "project"), "new_mod"), (("project", "site"), "old_mod")):
        found = site.discover(*places)
        (plugin,) = found.plugins
        assert (plugin.module, plugin.problem) == (module, None)
        (warning,) = found.warnings
        assert str(site.root / "project") in warning
        assert str(site.root / "site") in warning


def test_fc_plg_02_in_one_directory_the_wheel_and_then_the_newer_version_win(site: Any) -> None:
    site.install("demo", "9.0", {"demo": "egg"}, egg="demo.egg-info")
    site.install("demo", "1.9", {"demo": "old"})
    site.install("demo", "1.10", {"demo": "new"})
    found = site.discover()
    assert [plugin.module for plugin in found.plugins] == ["new"]
    assert len(found.warnings) == 2


def test_fc_plg_02_a_release_without_the_plugin_hides_an_older_one_with_it(site: Any) -> None:
    site.install("demo", "2.0", at="site")
    site.install("demo", "1.0", {"demo": "gone"}, egg="demo.egg-info", at="project")
    found = site.discover("site", "project")
    assert found.plugins == ()
    assert "2.0 in" in found.warnings[0]


def test_fc_plg_02_one_copy_seen_twice_is_no_reason_to_warn(site: Any) -> None:
    site.install("demo", "2.0", {"demo": "new_mod"}, at="lib")
    (site.root / "lib64").symlink_to("lib")
    found = site.discover("lib", "lib", "lib64")
    assert len(found.plugins) == 1
    assert found.warnings == ()


def test_a_range_that_excludes_the_running_core_is_a_problem(site: Any) -> None:
    site.install("dragoman", "1.4.0", {"console": "dragoman.console"})
    site.install("acme-old", "0.3", {"old": "acme_old"}, requires=("anyio", "dragoman<1,>=0.3"))
    old = site.discover().get("old")
    assert old is not None
    assert old.problem == "needs dragoman <1,>=0.3, running 1.4.0"
    assert old.remedy == "pip install --upgrade acme-old 'dragoman<1,>=0.3'"


def test_an_entry_point_that_is_no_module_is_a_problem(site: Any) -> None:
    site.install("acme", entries={"one": "acme:Plugin", "two": "acme.two"})
    found = site.discover()
    assert found.get("one").problem == "its entry point must name a module, not 'acme:Plugin'"
    assert found.get("two").problem is None


def test_metadata_that_cannot_be_read_stops_nobody(site: Any) -> None:
    site.install("good", entries={"good": "good"})
    broken = site.root / "broken-1.0.dist-info"
    broken.mkdir()
    (broken / "entry_points.txt").write_text("[dragoman]\nbroken = broken\n")
    binary = site.root / "binary-1.0.dist-info"
    binary.mkdir()
    (binary / "entry_points.txt").write_bytes(b"\xff\xfe[dragoman]")
    found = site.discover()
    assert [plugin.name for plugin in found.plugins] == ["good"]
    assert found.warnings == (f"metadata in {site.root} cannot be read",)
