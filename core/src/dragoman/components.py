"""What a plugin registers: components of a deployment and commands of the command line."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Generic, TypeVar

import attrs

from dragoman.protocols import Host

ConfigT = TypeVar("ConfigT")
ProductT_co = TypeVar("ProductT_co", covariant=True)


@attrs.frozen
class Component(Generic[ConfigT, ProductT_co]):
    """A recipe for one object of a deployment.

    ``config`` is an attrs class: the component's table in the manifest is checked against it, and
    each field's ``metadata={"help": …}`` documents it. ``open(config, host)`` makes the object for
    the application's life: it imports vendor code (in a worker thread), checks its configuration,
    touches no network and needs five seconds at most. ``backends`` are the event loops it runs on.
    """

    name: str
    config: type[ConfigT]
    open: Callable[[ConfigT, Host], AbstractAsyncContextManager[ProductT_co]]
    backends: tuple[str, ...] = ("asyncio", "trio")


@attrs.frozen
class CliCommand:
    """A command of the ``dragoman`` program.

    ``configure`` adds arguments to the command's parser; ``run`` returns the exit code.
    """

    name: str
    help: str
    configure: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]
