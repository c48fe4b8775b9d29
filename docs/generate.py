"""Writes what follows from code: ``docs/hooks.md``, ``docs/manifest.md``, ``docs/commands.md``,
tables in READMEs.

``make docs`` runs it; a test compares what it would write with what is there.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from enum import Enum
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

import attrs

from dragoman import Capabilities, FileLimits, PlainDialect, Rate, Secret
from dragoman.flow.registry import OWN
from dragoman.hookspecs import Behaviour, Registration
from dragoman.keys import ScopeRule
from dragoman.manifest.model import (
    Access,
    Budget,
    DeliveryRules,
    Limits,
    Manifest,
    Network,
    Profile,
    Route,
)
from dragoman.plugins.catalogue import Catalogue

HERE = Path(__file__).parent

HOOKS_INTRO = """# Hooks

*Written by `make docs` from `hookspecs.py`; change the docstrings there.*

A plugin is a module that an entry point of the group `dragoman` names. Its *registration hooks* \
are functions of the module, marked with `dragoman.hookimpl`; they return components. *Behaviour \
hooks* are methods of the objects that components opened, marked the same way. Each hook says its \
shape: *collect* (all are called at start-up), *ask* (all are asked, each may refuse), *first* \
(until one answers), *pipe* (the value goes through all), *notify* (all are told, isolated). An \
implementation may name fewer arguments than the hook has.
"""

MANIFEST_INTRO = """# The manifest

*Written by `make docs` from the configuration classes; change their metadata there.*

A deployment is one TOML file, `dragoman.toml` by default. It begins with `manifest = 1`, the \
version of this format. `dragoman init` writes one with comments, `dragoman check` finds every \
mistake with its line, `dragoman schema` makes a JSON Schema for editors.

Secrets are never written into it. A key that takes one is a table with exactly one of \
`env = "NAME"` (environment variable), `file = "path"` and `credential = "name"` (a systemd \
credential). Nothing is expanded inside strings. Relative paths start at the manifest's folder. \
Times are seconds.

Components stand in tables `[platforms.<id>]`, `[runtimes.<id>]`, `[memories.<id>]`, \
`[sinks.<id>]`, `[stores.<id>]` and `[extensions.<id>]`. Every such table takes `plugin`, which is the id by \
default and may name one of several components as `plugin:component`, and `optional`: when true, \
a component that cannot be used is left out with a warning instead of stopping the start. The \
other keys are the component's own.

Routes are compared by what they name, in the order user, thread, channel, workspace, platform: \
one that names the user wins over one that does not, and so on; a channel wins over its category. \
What no route takes goes to the \
profile `default`, or to the only profile there is.
"""

COMMANDS_INTRO = """# Commands in a chat

*Written by `make docs` from the table of commands; change it there.*

A message that is a command, `/name` and what may follow it, is answered by the gateway and never \
reaches an agent. Platforms with a menu of commands (Telegram) or commands of their own (Discord, \
Slack) show those that everybody may give who is let in; as text all of them work everywhere. \
Commands are let in like messages: whoever may not talk to the agent gets no answer to one, and \
what is only forwarded or quoted is none.

Each command says the least role that may give it, and what becomes of it while a turn runs or \
waits for people: it is carried out all the same (now), waits until nothing does (queue), or is \
refused (refuse). `/help` lists what the asker may give. Plugins add commands by the hook \
`dragoman_commands`, with the same two rules; a name that core has stays core's.
"""

TABLES: tuple[tuple[str, type], ...] = (
    ("Top level", Manifest),
    ("`[profiles.<id>]`", Profile),
    ("`scope` of a profile", ScopeRule),
    ("`budget` of a profile", Budget),
    ("`[[routes]]`", Route),
    ("`[access]`", Access),
    ("`[limits]`", Limits),
    ("`[delivery]`", DeliveryRules),
    ("`[network]`", Network),
)

COMPONENTS = (
    ("platforms", "console"),
    ("platforms", "discord"),
    ("platforms", "telegram"),
    ("platforms", "slack"),
    ("runtimes", "echo"),
    ("runtimes", "openai"),
    ("runtimes", "claude"),
    ("memories", "notes"),
    ("sinks", "trace"),
    ("stores", "sqlite"),
    ("extensions", "http"),
    ("extensions", "files"),
)


def hooks() -> str:
    """Return the page of all hooks."""
    lines = [HOOKS_INTRO, "## Registration\n", inspect.getdoc(Registration) or "", ""]
    lines += _hooks_of(Registration)
    lines += ["## Behaviour\n", inspect.getdoc(Behaviour) or "", ""]
    lines += _hooks_of(Behaviour)
    return "\n".join(lines).rstrip() + "\n"


def _hooks_of(specs: type) -> Iterator[str]:
    for name, hook in vars(specs).items():
        if not name.startswith("dragoman_"):
            continue
        colour = "async def" if inspect.iscoroutinefunction(hook) else "def"
        parameters = ", ".join(list(inspect.signature(hook).parameters)[1:])
        yield f"### `{colour} {name}({parameters})`\n"
        yield (inspect.getdoc(hook) or "") + "\n"


def manifest() -> str:
    """Return the page of all tables and keys."""
    lines = [MANIFEST_INTRO]
    for title, cls in TABLES:
        lines += [f"## {title}\n", *_keys(cls)]
    catalogue = Catalogue.installed()
    for kind, reference in COMPONENTS:
        config = catalogue.resolve(kind, reference).config
        title = f'`[{kind}.<id>]` with `plugin = "{reference}"`'
        lines += [f"## {title}\n", *_keys(config), *_nested(f"{kind}.<id>", config)]
    return "\n".join(lines).rstrip() + "\n"


def commands() -> str:
    """Return the page of core's own commands."""
    rows = [
        f"| `{' '.join(filter(None, ('/' + one.name, one.arguments)))}` | {one.help} "
        f"| {one.role.value} | {one.busy} |"
        for one in sorted(OWN, key=lambda entry: entry.name)
    ]
    head = ("| command | what it does | who | beside a turn |", "|---|---|---|---|")
    return "\n".join((COMMANDS_INTRO, *head, *rows)) + "\n"


def _nested(path: str, cls: type[Any]) -> Iterator[str]:
    """Yield the tables inside a component's table, and those that have names of their own."""
    for name, hint in get_type_hints(cls).items():
        named = get_origin(hint) is Mapping
        for part in (hint, *get_args(hint)):
            if attrs.has(part) and part is not Secret:
                below = f"{path}.{name}" + (".<name>" if named else "")
                yield f"### `[{below}]`\n"
                yield from _keys(part)
                yield from _nested(below, part)


def _keys(cls: type[Any]) -> Iterator[str]:
    hints = get_type_hints(cls)
    fields = [field for field in attrs.fields(cls) if "help" in field.metadata]
    if not fields:
        yield "No keys of its own.\n"
        return
    yield "| key | type | default | meaning |\n|---|---|---|---|"
    for field in fields:
        meaning = str(field.metadata["help"]).replace("|", "\\|")
        yield f"| `{field.name}` | {_type(hints[field.name])} | {_default(field)} | {meaning} |"
    yield ""


def _type(hint: Any) -> str:
    if hint is Secret:
        return "secret"
    if get_origin(hint) is None:
        if isinstance(hint, type) and issubclass(hint, Enum):
            return ", ".join(f'`"{member.value}"`' for member in hint)
        names = {str: "text", int: "whole number", float: "number", bool: "true or false"}
        return "path" if hint is Path else names.get(hint, "table")
    if get_origin(hint) is Mapping:
        inner = get_args(hint)[1]
        return "tables" if attrs.has(inner) else f"table of {_type(inner)}"
    arguments = [each for each in get_args(hint) if each not in (type(None), ...)]
    if all(isinstance(each, str) for each in arguments):
        return ", ".join(f'`"{each}"`' for each in arguments)
    words = " or ".join(dict.fromkeys(_type(each) for each in arguments))
    return f"list of {words}" if get_origin(hint) is tuple else words


def _default(field: attrs.Attribute[Any]) -> str:
    default = field.default
    if default is attrs.NOTHING:
        return "required"
    if isinstance(default, attrs.Factory):  # type: ignore[arg-type]
        return "none" if default.factory is dict else "see the next table"
    if isinstance(default, Enum):
        default = default.value
    if default is None or default == ():
        return "none"
    if isinstance(default, bool):
        return str(default).lower()
    return f'`"{default}"`' if isinstance(default, str | Path) else f"`{default}`"


def capability_table(can: Capabilities) -> str:
    """Return what a platform can do, a row for each field."""
    rows = [
        f"| `{field.name}` | {_ability(getattr(can, field.name))} |"
        for field in attrs.fields(Capabilities)
        if field.name != "dialect"
    ]
    return "\n".join(("| capability | value |", "|---|---|", *rows))


def _ability(value: Any) -> str:
    match value:
        case None:
            return "none"
        case bool():
            return "yes" if value else "no"
        case Enum():
            return str(value.value)
        case Rate(calls, seconds):
            return f"{calls} in {seconds:g} s"
        case FileLimits():
            shown = ", ".join(sorted(value.kinds))
            return f"{value.size:,} bytes, caption {value.caption:,}, shown as such: {shown}"
        case _:
            return f"{value:,g}" if isinstance(value, float) else f"{value:,}"


def slack() -> str:
    """Return the Slack plugin's README with its table of capabilities as the code has it."""
    from dragoman_slack.abilities import capabilities_of
    from dragoman_slack.config import SlackConfig

    nothing = Secret("nowhere", "")
    return _with_table(SLACK, capabilities_of(SlackConfig(bot_token=nothing, app_token=nothing)))


def telegram() -> str:
    """Return the Telegram plugin's README with its table of capabilities as the code has it."""
    from dragoman_telegram.abilities import capabilities_of
    from dragoman_telegram.config import TelegramConfig

    config = TelegramConfig(token=Secret("nowhere", ""))
    return _with_table(TELEGRAM, capabilities_of(config, PlainDialect(), drafts=config.drafts))


def _with_table(name: str, can: Capabilities) -> str:
    before, begin, rest = (HERE / name).read_text().partition("<!-- capabilities -->\n")
    _, end, after = rest.partition("<!-- end -->\n")
    return f"{before}{begin}{capability_table(can)}\n{end}{after}"


SLACK = "../plugins/slack/README.md"
TELEGRAM = "../plugins/telegram/README.md"
PAGES = {
    "hooks.md": hooks,
    "manifest.md": manifest,
    "commands.md": commands,
    SLACK: slack,
    TELEGRAM: telegram,
}


def main() -> None:
    """Write all pages."""
    for name, page in PAGES.items():
        (HERE / name).write_text(page())


if __name__ == "__main__":
    main()
