"""The catalogue: what the manifest's plugin references stand for."""

from __future__ import annotations

import difflib
import importlib
import logging
import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

import attrs
import pluggy

from dragoman.components import ChatCommand, CliCommand, Component
from dragoman.errors import PluginError
from dragoman.hookspecs import Registration
from dragoman.plugins.discover import Installed, InstalledPlugin, discover
from dragoman.plugins.loading import KINDS, Loaded, load

_log = logging.getLogger(__name__)


def _manager() -> pluggy.PluginManager:
    manager = pluggy.PluginManager("dragoman")
    manager.add_hookspecs(Registration)
    return manager


@attrs.define(eq=False, repr=False)
class Catalogue:
    """The plugins of one application. It looks for them at the first question.

    A plugin is imported when something of it is asked for, and then once; a failure is remembered
    like a success. ``objects`` are plugins given by the program that embeds dragoman, by name:
    modules, or anything with registration hooks. They come before installed plugins of that name.
    """

    _objects: Mapping[str, object] = attrs.field(factory=dict)
    _find: Callable[[], Installed] = attrs.field(default=discover, kw_only=True)
    _found: Installed | None = attrs.field(default=None, init=False)
    _manager: pluggy.PluginManager = attrs.field(factory=_manager, init=False)
    _results: dict[str, Loaded | PluginError] = attrs.field(factory=dict, init=False)

    @classmethod
    def installed(cls) -> Catalogue:
        """Return the catalogue of what is installed, and nothing else."""
        return cls()

    @property
    def found(self) -> Installed:
        """What metadata says is installed."""
        if self._found is None:
            self._found = self._find()
        return self._found

    def resolve(self, kind: str, reference: str) -> Component[Any, Any]:
        """Return the component that ``plugin`` or ``plugin:component`` names.

        ``kind`` is one of `KINDS`. Without a component's name it is the plugin's only one of that
        kind, or the one named like the plugin. Raises `PluginError`.
        """
        name, _, wanted = reference.partition(":")
        offered = self.components(kind, name)
        if not wanted:
            named = [component for component in offered if component.name == name]
            chosen = named or offered
        else:
            chosen = tuple(component for component in offered if component.name == wanted)
        if len(chosen) != 1:
            raise self._no_choice(kind, name, wanted)
        return chosen[0]

    def components(self, kind: str, plugin: str) -> tuple[Component[Any, Any], ...]:
        """Return all components of a kind that a plugin has. Raises `PluginError`."""
        if kind not in KINDS:
            msg = f"{kind!r} is not a kind of component"
            raise ValueError(msg)
        return self._load(plugin).components[kind]

    def cli_commands(self, names: Iterable[str]) -> list[CliCommand]:
        """Return the commands that these plugins add, in this order.

        A plugin that cannot be used adds none, and a name that is taken is not given again: both
        are logged, so that the program's other commands, `check` among them, still work.
        """
        commands: dict[str, CliCommand] = {}
        for name in dict.fromkeys(names):
            try:
                offered = self._load(name).commands
            except PluginError as error:
                _log.warning("%s", error)
                continue
            for command in offered:
                if commands.setdefault(command.name, command) is not command:
                    _log.warning("plugin %r: the command %r is taken", name, command.name)
        return list(commands.values())

    def chat_commands(self, names: Iterable[str]) -> dict[str, ChatCommand]:
        """Return what these plugins let people say in a chat, by name.

        Raises `PluginError` where two plugins claim one name. One that cannot be used adds none:
        its components are a problem of their own.
        """
        owners: dict[str, str] = {}
        commands: dict[str, ChatCommand] = {}
        for plugin in dict.fromkeys(names):
            try:
                offered = self._load(plugin).chat_commands
            except PluginError:
                continue
            for command in offered:
                owner = owners.setdefault(command.name, plugin)
                if command.name in commands:
                    raise self._origin(plugin).error(
                        f"the chat command /{command.name} is taken by plugin {owner!r}",
                        "use one of the two plugins",
                    )
                commands[command.name] = command
        return commands

    def distribution_of(self, reference: str) -> str:
        """Return the distribution and version behind a reference; empty where none is known."""
        return self._origin(reference.partition(":")[0]).label

    def _load(self, name: str) -> Loaded:
        if name not in self._results:
            try:
                self._results[name] = load(self._manager, self._origin(name), self._source(name))
            except PluginError as error:
                self._results[name] = error
        result = self._results[name]
        if isinstance(result, PluginError):
            raise result.with_traceback(None)
        return result

    def _origin(self, name: str) -> InstalledPlugin:
        plugin = None if name in self._objects else self.found.get(name)
        return plugin or InstalledPlugin(name)

    def _source(self, name: str) -> Callable[[], object]:
        """Return what obtains the plugin's object; raise where metadata already says no."""
        if name in self._objects:
            return partial(self._objects.__getitem__, name)
        plugin = self.found.get(name)
        if plugin is None:
            raise self._not_installed(name)
        if plugin.problem is not None:
            raise plugin.error(plugin.problem, plugin.remedy)
        return partial(importlib.import_module, plugin.module)

    def _not_installed(self, name: str) -> PluginError:
        known = {plugin.name for plugin in self.found.plugins} | set(self._objects)
        hints = [f"did you mean {close!r}?" for close in difflib.get_close_matches(name, known, 1)]
        if _NAME.fullmatch(name):
            hints.append(f"try: pip install dragoman-{name}")
        return PluginError(name, "", "not installed", " or ".join(hints))

    def _no_choice(self, kind: str, name: str, wanted: str) -> PluginError:
        everything = self._load(name).components
        if everything[kind] and not wanted:
            reason = f"has several {kind}"
            remedy = "name one: " + ", ".join(f"{name}:{c.name}" for c in everything[kind])
        else:
            reason = f"has no {kind} named {wanted!r}" if wanted else f"has no {kind}"
            remedy = "it has " + (_inventory(everything) or "no components at all")
        return PluginError(name, self.distribution_of(name), reason, remedy)


def _inventory(everything: Mapping[str, tuple[Component[Any, Any], ...]]) -> str:
    return "; ".join(
        f"{kind}: {', '.join(component.name for component in components)}"
        for kind, components in everything.items()
        if components
    )


_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")
