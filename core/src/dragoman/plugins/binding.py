"""Finds the behaviour hooks of an opened object, and refuses those that could not be called."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import attrs
import pluggy

from dragoman.errors import PluginError
from dragoman.hookspecs import Behaviour
from dragoman.plugins.scan import unmarked_hooks


@attrs.frozen(eq=False)
class BoundHook:
    """One implementation of a hook, ready to be called with the hook's own arguments in order.

    ``arguments`` are those that the implementation accepts, each with its place among them.
    """

    component: str
    hook: str
    arguments: tuple[tuple[str, int], ...]
    _function: Callable[..., Any]

    @property
    def name(self) -> str:
        """How a log names it, as in ``extensions.gate: dragoman_admit``."""
        return f"{self.component}: {self.hook}"

    def __call__(self, *values: object) -> Any:
        """Call the implementation with as many of ``values`` as it accepts."""
        return self._function(**{name: values[place] for name, place in self.arguments})


def bind(component: str, target: object) -> Iterator[BoundHook]:
    """Yield the hooks of an object that ``component`` opened. Raises `PluginError`.

    Each object has a manager of its own, so that objects which compare equal do not meet in one.
    """
    manager = pluggy.PluginManager("dragoman")
    manager.add_hookspecs(Behaviour)
    where = f"{type(target).__module__}.{type(target).__qualname__}"
    for name in unmarked_hooks(manager, target):
        raise PluginError(component, "", f"{where}.{name} is not marked with @hookimpl", _REPORT)
    try:
        manager.register(target, component)
    except pluggy.PluginValidationError as error:
        reason = f"a hook of {where} does not fit: {' '.join(str(error).split())}"
        raise PluginError(component, "", reason, _UPGRADE) from None
    for caller in vars(manager.hook).values():
        for impl in caller.get_hookimpls():
            if caller.has_spec():
                problem = _misfit(caller.name, impl)
                if problem:
                    reason = f"{where}.{caller.name} {problem}"
                    raise PluginError(component, "", reason, _REPORT)
                arguments = _accepted(caller.name, impl.function)
                yield BoundHook(component, caller.name, arguments, impl.function)
            elif not impl.optionalhook:
                raise PluginError(component, "", f"unknown hook {where}.{caller.name}", _UPGRADE)


def _misfit(hook: str, impl: pluggy.HookImpl) -> str:
    """Return why an implementation cannot be used, or an empty text."""
    if impl.wrapper or impl.hookwrapper:
        return "must not be a wrapper"
    if impl.tryfirst or impl.trylast:
        return "cannot choose its place: the manifest's order holds"
    wanted = inspect.iscoroutinefunction(getattr(Behaviour, hook))
    if inspect.isgeneratorfunction(impl.function) or inspect.isasyncgenfunction(impl.function):
        return "must return its answer, not yield it"
    if inspect.iscoroutinefunction(impl.function) != wanted:
        return "must be 'async def'" if wanted else "must be 'def', not 'async def'"
    for name, parameter in inspect.signature(impl.function).parameters.items():
        if parameter.kind in (parameter.KEYWORD_ONLY, parameter.POSITIONAL_ONLY):
            return f"must not have the {parameter.kind.description} argument {name!r}"
    return ""


def _accepted(hook: str, function: Callable[..., Any]) -> tuple[tuple[str, int], ...]:
    """Return the hook's arguments that a checked implementation names, with their places.

    Those that it gives a default are passed too. One with a default that the hook does not have
    keeps it: so a plugin can name the argument of a newer dragoman.
    """
    names = list(inspect.signature(getattr(Behaviour, hook)).parameters)
    accepted = inspect.signature(function).parameters
    return tuple(
        (name, place - 1) for place, name in enumerate(names) if place and name in accepted
    )


_UPGRADE = "try: pip install --upgrade dragoman, or report it to its authors"
_REPORT = "report it to its authors"
