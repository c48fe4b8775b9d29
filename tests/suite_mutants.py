"""Wrong plugins, each with the tests of a suite that it is to fail."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from typing import Any, TypeVar

import attrs

T = TypeVar("T", bound=type[Any])


@attrs.define
class Mutants:
    """Classes of plugins' objects, each with the tests that it is to fail."""

    known: list[tuple[type[Any], frozenset[str]]] = attrs.field(factory=list)

    def fails(self, *names: str) -> Callable[[T], T]:
        """Say which tests a mutant fails; it passes all others."""

        def add(mutant: T) -> T:
            self.known.append((mutant, frozenset(names)))
            return mutant

        return add


def names_of(mutants: Mutants) -> list[str]:
    return [mutant.__name__ for mutant, _ in mutants.known]


def tests_of(suite: type[Any]) -> Iterator[tuple[str, Callable[[Any], Awaitable[None]]]]:
    """Yield the asynchronous tests of a suite, each with its parameters, by name."""
    made = suite()
    for name in dir(suite):
        test = getattr(made, name)
        if not (name.startswith("test_") and inspect.iscoroutinefunction(test)):
            continue
        marks = [one for one in getattr(test, "pytestmark", ()) if one.name == "parametrize"]
        if not marks:
            yield name, test
        for mark in marks:
            argument, values = mark.args
            for value in values:
                shown = getattr(value, "value", value)
                yield f"{name}[{shown}]", partial(test, **{argument: value})
