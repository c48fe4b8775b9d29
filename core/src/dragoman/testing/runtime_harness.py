"""What an author supplies so that `dragoman.testing.runtime_suite` can judge a runtime."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

from dragoman.components import Component
from dragoman.protocols import Runtime
from dragoman.runevents import FailureKind
from dragoman.testing.runtime_script import Line, Step

FAULTS: Final[tuple[FailureKind, ...]] = (
    FailureKind.RATE_LIMIT,
    FailureKind.TRANSPORT,
    FailureKind.TIMEOUT,
    FailureKind.REFUSAL,
    FailureKind.CONTEXT_OVERFLOW,
    FailureKind.CREDENTIALS,
)
"""What may hinder a backend, by how a runtime has to call it. For ``TIMEOUT`` it says nothing
for longer than the runtime waits; the configuration is then a ``hasty`` one."""

ABILITIES: Final = frozenset(
    (
        *(fault.value for fault in FAULTS),
        "act",
        "ask",
        "asked",
        "busy",
        "count",
        "history",
        "hold",
        "models",
        "script",
        "think",
        "tool error",
        "tool hold",
        "unreachable",
    )
)
"""What a harness may be unable to do, as `RuntimeHarness.cannot` names it.

``script``: the backend says what a test wants. ``act``, ``count``, ``hold`` and ``think`` are the
steps of these names; ``tool error``, ``tool hold`` and ``ask`` are calls that fail, that wait, and that
need a decision.
``asked``, ``busy`` and ``models`` are the methods of these names. ``history``: what was said in a session
reaches the backend again.
"""


class RuntimeHarness(Protocol):
    """A runtime to judge, and the backend behind it: a model, or what speaks to one.

    One is made for each test. The suite tells it what the backend does next (`script`), and looks
    at the backend from the other side: what it was asked, what its tools did, whether it is at
    rest. The backend has one tool with a side effect, which the harness gives to the runtime in
    whatever way its users do: it takes one argument ``what`` and notes it where `effects` finds it
    (a list, or a file where it runs in another process). Its result is the text of
    `dragoman.testing.runtime_script.outcome`.

    ``cannot`` names each missing ability (of `ABILITIES`) with the reason, which the tests that
    need it are skipped with; its methods may then be missing.
    """

    @property
    def component(self) -> Component[Any, Runtime]:
        """What the plugin registers. The suite runs on its ``backends``."""
        ...

    @property
    def cannot(self) -> Mapping[str, str]:
        """Reasons, by ability."""
        ...

    @property
    def secrets(self) -> Sequence[str]:
        """Every secret in play: none of them may be in a log record, an error or a ``repr``."""
        ...

    def config(self, *, reachable: bool = True, hasty: bool = False) -> Any:
        """Return the component's configuration, without repeats of failed calls, and with room for a
        hundred messages in what is told again.

        It leads nowhere for ``unreachable``; a ``hasty`` one waits a part of a second, and no
        longer, for a backend that says nothing.
        """
        ...

    def script(self, said: str, *steps: Step) -> None:
        """Let the backend do these steps whenever a message that has ``said`` in it is answered.

        Where a backend is asked again after each round of tool calls, as models are, a
        `dragoman.testing.runtime_script.Book` knows which steps come next.
        """
        ...

    async def release(self) -> None:
        """Let everything go on that holds, or comes to hold from now on."""
        ...

    async def asked(self) -> Sequence[Sequence[Line]]:
        """Return what the backend was given each time that it was asked, oldest first."""
        ...

    async def models(self) -> Sequence[str]:
        """Return the model of each time that the backend was asked, oldest first."""
        ...

    async def effects(self) -> Sequence[str]:
        """Return what the tool did, in order: a call counts from its begin."""
        ...

    async def busy(self) -> int:
        """Return how many answers and tool calls the backend is at work on, holding ones included."""
        ...
