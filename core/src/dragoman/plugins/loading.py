"""Loads one plugin, so that whatever it does wrong stays its own failure."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, Final, TypeAlias, TypeVar

import attrs
import pluggy

from dragoman.components import ChatCommand, CliCommand, Component
from dragoman.errors import PluginError
from dragoman.hookspecs import Behaviour
from dragoman.plugins.discover import InstalledPlugin
from dragoman.plugins.scan import unmarked_hooks

T = TypeVar("T")
Hooks: TypeAlias = list[tuple[str, Callable[[], object]]]

KINDS: Final = ("platforms", "runtimes", "memories", "sinks", "stores", "extensions")
"""The manifest's kinds of component; the hook ``dragoman_<kind>`` returns those of a plugin."""


@attrs.frozen(eq=False)
class Loaded:
    """What a plugin registered."""

    components: Mapping[str, tuple[Component[Any, Any], ...]]
    commands: tuple[CliCommand, ...]
    chat_commands: tuple[ChatCommand, ...]


def load(
    manager: pluggy.PluginManager, origin: InstalledPlugin, obtain: Callable[[], object]
) -> Loaded:
    """Obtain a plugin's object, register it and collect what it offers.

    Raises `PluginError` for everything that goes wrong in the plugin's code, an exit included; the
    manager then knows nothing of the plugin. Only an interrupt from the keyboard passes.
    """
    try:
        plugin = _isolated(origin, "cannot be imported", obtain)
        _register(manager, origin, plugin)
        hooks = _own_hooks(manager, origin, plugin)
        components = {kind: tuple(_components(origin, f"dragoman_{kind}", hooks)) for kind in KINDS}
        return Loaded(
            components,
            tuple(_offered(origin, "dragoman_cli", CliCommand, "commands", hooks)),
            tuple(_offered(origin, "dragoman_commands", ChatCommand, "commands", hooks)),
        )
    except BaseException:
        manager.unregister(name=origin.name)
        raise


def _register(manager: pluggy.PluginManager, origin: InstalledPlugin, plugin: object) -> None:
    unmarked = unmarked_hooks(manager, plugin)
    if unmarked:
        raise origin.error(f"{unmarked[0]} is not marked with @hookimpl")
    _isolated(origin, "cannot be registered", lambda: manager.register(plugin, origin.name))


def _own_hooks(manager: pluggy.PluginManager, origin: InstalledPlugin, plugin: object) -> Hooks:
    """Return the plugin's registration hooks by name, each checked for its shape."""
    hooks = []
    for caller in manager.get_hookcallers(plugin) or ():
        for impl in (impl for impl in caller.get_hookimpls() if impl.plugin is plugin):
            if caller.has_spec():
                _check_shape(origin, caller.name, impl)
                hooks.append((caller.name, impl.function))
            elif not impl.optionalhook:
                raise _unknown_hook(origin, caller.name)
    return hooks


def _unknown_hook(origin: InstalledPlugin, hook: str) -> PluginError:
    if hasattr(Behaviour, hook):
        return origin.error(f"{hook} is a hook of opened objects, not of the plugin's module")
    return origin.error(
        f"needs a newer dragoman: unknown hook {hook}", "try: pip install --upgrade dragoman"
    )


def _check_shape(origin: InstalledPlugin, hook: str, impl: pluggy.HookImpl) -> None:
    function = impl.function
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        raise origin.error(f"{hook} must be 'def', not 'async def'")
    if impl.wrapper or impl.hookwrapper:
        raise origin.error(f"{hook} must not be a wrapper")


def _components(origin: InstalledPlugin, hook: str, hooks: Hooks) -> Iterator[Component[Any, Any]]:
    seen: set[str] = set()
    for item in _offered(origin, hook, Component, "components", hooks):
        flaw = _flaw(item.name, item.config, item.open)
        if flaw:
            raise origin.error(f"{hook} returned a component {item.name!r} {flaw}")
        if item.name in seen:
            raise origin.error(f"{hook} returned two components named {item.name!r}")
        seen.add(item.name)
        yield item


def _flaw(name: object, config: object, opener: object) -> str:
    """Return what is wrong with a component; annotations bind nobody at run time."""
    if not isinstance(name, str) or not name or ":" in name:
        return "whose name is not a word without colon"
    if not isinstance(config, type) or not attrs.has(config):
        return "whose configuration is not an attrs class"
    return "" if callable(opener) else "whose 'open' cannot be called"


def _offered(
    origin: InstalledPlugin, hook: str, cls: type[T], what: str, hooks: Hooks
) -> Iterator[T]:
    for name, function in hooks:
        if name == hook:
            for item in _isolated(origin, f"{hook} failed", partial(_listed, function)):
                if not isinstance(item, cls):
                    raise origin.error(f"{hook} must return {what}, not {type(item).__name__}")
                yield item


def _listed(function: Callable[[], Any]) -> list[Any]:
    return list(function())


def _isolated(origin: InstalledPlugin, what: str, call: Callable[[], Any]) -> Any:
    """Call into the plugin; what it raises becomes its `PluginError`."""
    try:
        return call()
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # even sys.exit() in a plugin ends only the plugin
        raise origin.error(f"{what}: {_describe(error)}", _remedy(origin, error)) from error


def _describe(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:300]}" if text else type(error).__name__


def _remedy(origin: InstalledPlugin, error: BaseException) -> str:
    if origin.distribution and isinstance(error, ModuleNotFoundError):
        return f"try: pip install --force-reinstall {origin.distribution}"
    return ""
