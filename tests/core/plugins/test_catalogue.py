"""Loading plugins: only those named, once, and each failure its own."""

from __future__ import annotations

import logging
import sys
from types import ModuleType
from typing import Any

import attrs
import pytest

from dragoman import CliCommand, Component, PluginError, hookimpl
from dragoman.hookspecs import Registration
from dragoman.plugins.catalogue import Catalogue
from dragoman.plugins.discover import InstalledPlugin
from dragoman.plugins.loading import KINDS

GOOD = """
import attrs
from dragoman import Component, hookimpl

@attrs.frozen
class Config:
    pass

@hookimpl
def dragoman_platforms():
    yield Component("good", Config, lambda config, host: None)
"""


@attrs.frozen
class Config:
    pass


def component(name: str, **changes: Any) -> Component[Any, Any]:
    return attrs.evolve(Component(name, Config, lambda config, host: None), **changes)


def module(**hooks: Any) -> Any:
    """A plugin's module with these registration hooks."""
    return bare_module(**{name: hookimpl(hook) for name, hook in hooks.items()})


def bare_module(**members: Any) -> Any:
    """A module with these members."""
    result = ModuleType("plg_made_here")
    vars(result).update(members)
    return result


def none() -> list[Any]:
    return []


def catalogue(site: Any) -> Catalogue:
    return Catalogue(find=site.discover)


def refusal(plugins: Catalogue, reference: str = "bad", kind: str = "platforms") -> PluginError:
    with pytest.raises(PluginError) as caught:
        plugins.resolve(kind, reference)
    return caught.value


def test_a_named_plugin_is_imported_once_and_an_unnamed_one_never(site: Any) -> None:
    trace = site.root / "trace"
    count = f"with open({str(trace)!r}, 'a') as file:\n    file.write(__name__ + ' ')\n"
    site.module("plg_good", count + GOOD)
    site.module("plg_unnamed", count + GOOD)
    site.install("acme-good", entries={"good": "plg_good"})
    site.install("acme-unnamed", entries={"unnamed": "plg_unnamed"})
    plugins = catalogue(site)
    assert not trace.exists()
    first = plugins.resolve("platforms", "good")
    assert plugins.resolve("platforms", "good:good") is first
    assert trace.read_text() == "plg_good "
    assert "plg_unnamed" not in sys.modules
    assert plugins.distribution_of("good:good") == "acme-good 1.0"


BROKEN = {
    "ImportError": ("import nowhere_to_be_found", "ModuleNotFoundError: No module named"),
    "SyntaxError": ("def broken(:", "SyntaxError: invalid syntax"),
    "SystemExit": ("import sys\nsys.exit(3)", "SystemExit: 3"),
    "GeneratorExit": ("raise GeneratorExit", "cannot be imported: GeneratorExit"),
    "CancelledError": ("import asyncio\nraise asyncio.CancelledError", "CancelledError"),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_fc_plg_01_a_broken_import_is_named_and_stops_no_other(site: Any, kind: str) -> None:
    source, reason = BROKEN[kind]
    for name in ("plg_good_a", "plg_good_b"):
        site.module(name, GOOD)
    site.module("plg_bad", source)
    site.install("acme-a", entries={"good_a": "plg_good_a"})
    site.install("acme-bad", "0.7", {"bad": "plg_bad"})
    site.install("acme-b", entries={"good_b": "plg_good_b"})
    plugins = catalogue(site)
    assert plugins.resolve("platforms", "good_a").name == "good"
    error = refusal(plugins)
    assert error.distribution == "acme-bad 0.7"
    assert reason in error.reason
    assert "acme-bad" in error.remedy
    assert plugins.resolve("platforms", "good_b").name == "good"


def test_a_failed_import_is_remembered(site: Any) -> None:
    trace = site.root / "trace"
    count = f"with open({str(trace)!r}, 'a') as file:\n    file.write('x')\n"
    site.module("plg_bad", count + "raise OSError('no')\n")
    site.install("acme-bad", entries={"bad": "plg_bad"})
    plugins = catalogue(site)
    assert str(refusal(plugins)) == str(refusal(plugins))
    assert trace.read_text() == "x"


def test_an_interrupt_from_the_keyboard_passes_and_leaves_nothing(site: Any) -> None:
    site.module("plg_bad", "raise KeyboardInterrupt")
    site.install("acme-bad", entries={"bad": "plg_bad"})
    plugins = catalogue(site)
    with pytest.raises(KeyboardInterrupt):
        plugins.resolve("platforms", "bad")
    site.module("plg_bad", GOOD)
    assert plugins.resolve("platforms", "bad").name == "good"


def stop() -> Any:
    yield component("half")
    sys.exit(2)


def test_fc_plg_01_what_fails_half_way_leaves_no_hook_behind() -> None:
    bad = module(dragoman_sinks=lambda: [component("sink")], dragoman_platforms=stop)
    plugins = Catalogue({"bad": bad, "good": module(dragoman_sinks=lambda: [component("good")])})
    assert refusal(plugins).reason == "dragoman_platforms failed: SystemExit: 2"
    assert refusal(plugins, kind="sinks").reason == refusal(plugins).reason
    assert plugins._manager.get_plugins() == set()
    assert plugins._manager.hook.dragoman_sinks.get_hookimpls() == []
    assert plugins.resolve("sinks", "good").name == "good"


async def colour() -> Any:
    return []


def wrapper() -> Any:
    return (yield)


MISFITS: dict[str, tuple[Any, str]] = {
    "a newer hook": (module(dragoman_tomorrow=none), "unknown hook dragoman_tomorrow"),
    "a hook of objects": (module(dragoman_admit=lambda event: None), "a hook of opened objects"),
    "an argument": (module(dragoman_platforms=lambda host: []), "not be found in the hookspec"),
    "a keyword": (module(dragoman_platforms=lambda *, host: []), "dragoman_platforms failed: Type"),
    "a coroutine": (module(dragoman_platforms=colour), "must be 'def', not 'async def'"),
    "a wrapper": (
        bare_module(dragoman_platforms=hookimpl(wrapper=True)(wrapper)),
        "must not be a wrapper",
    ),
    "no mark": (bare_module(dragoman_platforms=list), "is not marked with @hookimpl"),
    "nothing": (module(dragoman_platforms=lambda: None), "dragoman_platforms failed: TypeError"),
    "a word": (module(dragoman_platforms=lambda: ["irc"]), "must return components, not str"),
    "a dict config": (
        module(dragoman_platforms=lambda: [component("a", config=dict)]),
        "whose configuration is not an attrs class",
    ),
    "an instance": (
        module(dragoman_platforms=lambda: [component("a", config=Config())]),
        "whose configuration is not an attrs class",
    ),
    "no name": (module(dragoman_platforms=lambda: [component("")]), "whose name is not a word"),
    "a colon": (module(dragoman_platforms=lambda: [component("a:b")]), "whose name is not a word"),
    "no open": (
        module(dragoman_platforms=lambda: [component("a", open=None)]),
        "'open' cannot be called",
    ),
    "one name twice": (
        module(dragoman_platforms=lambda: [component("a"), component("a")]),
        "returned two components named 'a'",
    ),
    "no command": (module(dragoman_cli=lambda: [component("a")]), "must return commands"),
}


@pytest.mark.parametrize("case", MISFITS)
def test_a_registration_that_does_not_fit_is_refused(case: str) -> None:
    plugin, reason = MISFITS[case]
    assert reason in refusal(Catalogue({"bad": plugin})).reason


def test_an_unknown_hook_asks_for_a_newer_dragoman_and_an_optional_one_does_not() -> None:
    error = refusal(Catalogue({"bad": module(dragoman_tomorrow=none)}))
    assert error.reason.startswith("needs a newer dragoman")
    assert "pip install --upgrade dragoman" in error.remedy
    optional = bare_module(
        dragoman_tomorrow=hookimpl(optionalhook=True)(lambda: [component("later")]),
        dragoman_sinks=hookimpl(lambda: [component("sink")]),
    )
    assert Catalogue({"new": optional}).resolve("sinks", "new").name == "sink"


def test_one_plugin_s_unknown_hook_is_not_another_s_failure() -> None:
    plugins = Catalogue(
        {
            "bad": module(dragoman_tomorrow=lambda: None),
            "good": bare_module(
                dragoman_tomorrow=3, dragoman_sinks=hookimpl(lambda: [component("good")])
            ),
        }
    )
    refusal(plugins)
    assert plugins.resolve("sinks", "good").name == "good"


def test_a_plugin_that_is_not_installed_comes_with_a_suggestion(site: Any) -> None:
    site.install("dragoman-telegram", entries={"telegram": "dragoman_telegram"})
    error = refusal(catalogue(site), "telegarm")
    assert error.reason == "not installed"
    assert error.remedy == "did you mean 'telegram'? or try: pip install dragoman-telegarm"
    assert refusal(catalogue(site), "discord").remedy == "try: pip install dragoman-discord"
    assert "pip" not in refusal(catalogue(site), "no; name").remedy


def test_a_problem_in_the_metadata_is_raised_before_any_import(site: Any) -> None:
    site.install("dragoman", "1.4.0", {"console": "dragoman.console"})
    site.install("acme-old", "0.3", {"old": "plg_old"}, requires=("dragoman<1",))
    site.module("plg_old", GOOD)
    error = refusal(catalogue(site), "old")
    assert (error.distribution, error.reason) == (
        "acme-old 0.3",
        "needs dragoman <1, running 1.4.0",
    )
    assert "plg_old" not in sys.modules


def test_a_reference_picks_the_component() -> None:
    several = module(
        dragoman_runtimes=lambda: [component("fast"), component("slow")],
        dragoman_sinks=lambda: [component("other"), component("acme")],
        dragoman_memories=lambda: [component("only")],
    )
    plugins = Catalogue({"acme": several})
    assert plugins.resolve("runtimes", "acme:slow").name == "slow"
    assert plugins.resolve("sinks", "acme").name == "acme"
    assert plugins.resolve("memories", "acme").name == "only"
    assert [c.name for c in plugins.components("runtimes", "acme")] == ["fast", "slow"]
    assert refusal(plugins, "acme", "runtimes").remedy == "name one: acme:fast, acme:slow"
    error = refusal(plugins, "acme", "platforms")
    assert error.reason == "has no platforms"
    assert error.remedy == "it has runtimes: fast, slow; memories: only; sinks: other, acme"
    assert refusal(plugins, "acme:quick", "runtimes").reason == "has no runtimes named 'quick'"
    with pytest.raises(ValueError, match="not a kind"):
        plugins.resolve("toasters", "acme")


def test_there_is_a_kind_for_each_registration_hook_of_components() -> None:
    hooks = {name for name in vars(Registration) if name.startswith("dragoman_")}
    assert {f"dragoman_{kind}" for kind in KINDS} == hooks - {"dragoman_cli", "dragoman_commands"}


def test_an_object_comes_before_an_installed_plugin_of_its_name(site: Any) -> None:
    site.install("acme", entries={"acme": "plg_never"})
    given = module(dragoman_sinks=lambda: [component("given")])
    plugins = Catalogue({"acme": given}, find=site.discover)
    assert plugins.resolve("sinks", "acme").name == "given"
    assert plugins.distribution_of("acme") == ""


def test_two_catalogues_share_nothing() -> None:
    plugin = module(dragoman_sinks=lambda: [component("sink")])
    one, other = Catalogue({"acme": plugin}), Catalogue({"acme": plugin})
    assert one.resolve("sinks", "acme") is not other.resolve("sinks", "acme")


def test_commands_come_from_named_plugins_and_survive_a_broken_one(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def command(name: str) -> CliCommand:
        return CliCommand(name, "help", lambda parser: None, lambda args: 0)

    plugins = Catalogue(
        {
            "a": module(dragoman_cli=lambda: [command("export")]),
            "bad": module(dragoman_cli=stop),
            "b": module(dragoman_cli=lambda: [command("export"), command("import")]),
            "unnamed": module(dragoman_cli=lambda: [command("never")]),
        }
    )
    with caplog.at_level(logging.WARNING):
        found = plugins.cli_commands(["a", "bad", "b", "a"])
    assert [each.name for each in found] == ["export", "import"]
    assert found[0] is plugins.cli_commands(["a"])[0]
    assert [record.getMessage() for record in caplog.records] == [
        str(refusal(plugins, "bad")),
        "plugin 'b': the command 'export' is taken",
    ]


def test_the_installed_catalogue_sees_this_environment() -> None:
    found = Catalogue.installed().found.get("console")
    assert isinstance(found, InstalledPlugin)
    assert (found.distribution, found.problem) == ("dragoman", None)
