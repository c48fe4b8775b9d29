"""Plugins as their users meet them: wheels, an environment of their own, real metadata."""

from __future__ import annotations

from typing import Any

import pytest

pytestmark = pytest.mark.timeout(400)  # the first test builds and installs everything

RESOLVE = """
import json, sys
from dragoman import PluginError
from dragoman.plugins.catalogue import Catalogue

catalogue, answers = Catalogue.installed(), []
for kind, reference in json.loads({questions!r}):
    try:
        component = catalogue.resolve(kind, reference)
        answers.append([component.name, catalogue.distribution_of(reference)])
    except PluginError as error:
        answers.append(["refused", error.distribution, error.reason, error.remedy])
print(json.dumps(dict(answers=answers, modules=sorted(sys.modules))))
"""


def resolve(deployment: Any, *questions: tuple[str, str]) -> tuple[list[Any], set[str]]:
    """Ask one catalogue; return its answers and what was imported."""
    import json

    shown = deployment.run(RESOLVE.format(questions=json.dumps(questions)))
    return shown["answers"], set(shown["modules"])


def test_the_deployment_is_made_of_wheels(deployment: Any) -> None:
    shown = deployment.run("import dragoman, json; print(json.dumps(dragoman.__file__))")
    assert shown.startswith(str(deployment.prefix))


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("platforms", "irc"),
        ("runtimes", "parrot"),
        ("memories", "attic"),
        ("sinks", "ticker"),
        ("extensions", "gate"),
    ],
)
def test_a_third_party_component_of_each_kind_is_found(
    deployment: Any, kind: str, name: str
) -> None:
    answers, modules = resolve(deployment, (kind, name), (kind, f"{name}:{name}"))
    assert answers == [[name, f"acme-{name} 0.7"]] * 2
    assert {module for module in modules if module.startswith("acme_")} == {f"acme_{name}"}


def test_fc_plg_01_broken_plugins_are_named_and_stop_no_other(deployment: Any) -> None:
    answers, _ = resolve(
        deployment,
        ("platforms", "irc"),
        ("sinks", "lost"),
        ("sinks", "garbled"),
        ("sinks", "leaving"),
        ("sinks", "ticker"),
    )
    good_a, lost, garbled, leaving, good_b = answers
    assert (good_a[0], good_b[0]) == ("irc", "ticker")
    for answer, distribution, reason in (
        (lost, "acme-lost 0.7", "cannot be imported: ModuleNotFoundError: No module named"),
        (garbled, "acme-garbled 0.7", "cannot be imported: SyntaxError: invalid syntax"),
        (leaving, "acme-leaving 0.7", "cannot be imported: SystemExit: 3"),
    ):
        assert answer[:2] == ["refused", distribution]
        assert answer[2].startswith(reason)
        assert distribution.partition(" ")[0] in answer[3]


def test_what_metadata_forbids_is_never_imported(deployment: Any) -> None:
    answers, modules = resolve(deployment, ("sinks", "outdated"), ("platforms", "matrix"))
    outdated, matrix = answers
    assert outdated[1] == "acme-outdated 0.7"
    assert outdated[2].startswith("needs dragoman ")
    assert "acme-matrix-one 0.7 (acme_matrix_one) and acme-matrix-two 0.7" in matrix[2]
    assert not any(module.startswith("acme_") for module in modules)


def test_fc_plg_03_a_name_of_core_stays_core_s(deployment: Any) -> None:
    shown = deployment.run(
        "import json; from dragoman.plugins.catalogue import Catalogue\n"
        "print(json.dumps(Catalogue.installed().distribution_of('console')))"
    )
    assert shown.startswith("dragoman ")


def test_the_plugins_command_lists_all_and_imports_none(deployment: Any) -> None:
    shown = deployment.run(
        "import argparse, sys; from dragoman.cli import plugins\n"
        "parser = argparse.ArgumentParser(); plugins.configure(parser)\n"
        "code = plugins.run(parser.parse_args(['--format', 'json']))\n"
        "assert not [name for name in sys.modules if name.startswith('acme_')]\n"
        "sys.exit(code)",
        expect=1,
    )
    assert shown["warnings"] == []
    states = {plugin["distribution"]: plugin["problem"] for plugin in shown["plugins"]}
    sound = {name for name, problem in states.items() if problem is None}
    assert {name for name in states if name not in sound} == {
        "acme-outdated",
        "acme-matrix-one",
        "acme-matrix-two",
        "acme-pretender",
    }
    assert {"dragoman", "acme-irc", "acme-lost", "acme-unnamed"} <= sound


GATE = """
import json, logging
from datetime import UTC, datetime

import anyio

from dragoman import Address, ConversationView, Inbound, Sender
from dragoman.clock import SystemClock
from dragoman.plugins.catalogue import Catalogue
from dragoman.plugins.hooktable import HookTable


async def main():
    component = Catalogue.installed().resolve("extensions", "gate")
    async with component.open(component.config(), None) as gate:
        table = HookTable.compile(
            [("extensions.gate", gate)],
            timeout=5, clock=SystemClock(), log=logging.getLogger(), admit_by=frozenset({"gate"}),
        )
        return [
            (verdict.allowed, verdict.reason)
            for text in ("please", "now")
            for verdict in [await table.admit(event(text), ConversationView("irc", "irc"))]
        ]


def event(text):
    return Inbound("1", Address("irc", "#a"), Sender("7"), text, datetime.now(UTC))


print(json.dumps(anyio.run(main)))
"""


def test_the_hooks_of_a_third_party_extension_are_called(deployment: Any) -> None:
    assert deployment.run(GATE) == [
        [True, "plugin extensions.gate: said the word"],
        [False, "plugin extensions.gate: did not say the word"],
    ]


def test_a_plugin_that_nobody_names_is_not_imported_until_somebody_does(deployment: Any) -> None:
    marker = deployment.prefix / "imported-a-plugin-that-nobody-named"
    resolve(deployment, ("platforms", "irc"), ("sinks", "lost"), ("sinks", "ticker"))
    assert not marker.exists()
    answers, _ = resolve(deployment, ("sinks", "unnamed"))
    assert answers[0][2] == "has no sinks"
    assert marker.read_text() == "imported"
    marker.unlink()
