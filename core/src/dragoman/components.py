"""What a plugin registers: components of a deployment, and commands."""

from __future__ import annotations

import argparse
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Generic, Literal, TypeAlias, TypeVar

import attrs

from dragoman.hosting import Host
from dragoman.inspecting import Inspects
from dragoman.messages import Inbound
from dragoman.roles import Role

Busy: TypeAlias = Literal["now", "queue", "refuse"]
"""What a command does while a turn of its session runs or waits for people: it is carried out all
the same, waits until nothing does, or is refused."""

ConfigT = TypeVar("ConfigT")
ProductT_co = TypeVar("ProductT_co", covariant=True)


@attrs.frozen
class Component(Generic[ConfigT, ProductT_co]):
    """A recipe for one object of a deployment.

    ``config`` is an attrs class: the component's table in the manifest is checked against it, and
    each field's ``metadata={"help": …}`` documents it. ``open(config, host)`` makes the object for
    the application's life: it imports vendor code (in a worker thread), checks its configuration,
    touches no network and needs five seconds at most. ``backends`` are the event loops it runs on.
    Its ``notices()``, if it has them, are the `dragoman.Finding` s that ``dragoman check`` shows.
    ``setup`` tells operators what has to be done outside, step by step: ``dragoman init`` prints it.
    ``inspector(config, name, profile)`` of a runtime makes what can read the items that it keeps, for
    ``dragoman sessions inspect``: it opens nothing, but may import what ``open`` would.
    """

    name: str
    config: type[ConfigT]
    open: Callable[[ConfigT, Host], AbstractAsyncContextManager[ProductT_co]]
    backends: tuple[str, ...] = ("asyncio", "trio")
    setup: str = ""
    inspector: Callable[[ConfigT, str, str], Inspects] | None = None


@attrs.frozen
class CliCommand:
    """A command of the ``dragoman`` program.

    ``configure`` adds arguments to the command's parser; ``run`` returns the exit code.
    """

    name: str
    help: str
    configure: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]


@attrs.frozen(kw_only=True)
class CommandCall:
    """A command that somebody gave in a chat. The person is admitted, and so is the profile."""

    name: str
    arguments: str = attrs.field(repr=False)
    event: Inbound
    profile: str


@attrs.frozen
class ChatCommand:
    """A command that people give in a chat, as ``/name arguments``.

    ``run`` returns what is shown in answer; a blank text shows nothing. It has
    ``[limits] hook_timeout`` seconds, waits for no turn and starts none. Its failure is told to the
    person in one line, and logged. ``role`` is the least that may give it, ``busy`` what
    becomes of it while a turn runs or waits where it was given.
    """

    name: str = attrs.field(validator=attrs.validators.matches_re(r"[a-z][a-z0-9_]{0,31}"))
    help: str
    run: Callable[[CommandCall], Awaitable[str]]
    role: Role = Role.USER
    busy: Busy = "now"
