"""What turns use and cost, and whether they may go on.

The program's totals hold everything: helpers, summing up, what a broken connection has cost twice.
They grow over turns, and begin at nothing with a program, with an emptied conversation, and in
other versions elsewhere. A turn has used the difference; where a count is less than before, the
totals have begun anew.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import attrs
from claude_agent_sdk import ResultMessage

from dragoman import Failed, FailureKind, Usage

NAMESPACE: Final = "claude.spent"
"""Of a session's records; the newest item is what the session has cost so far."""

Totals: TypeAlias = Mapping[str, Mapping[str, Any]]
"""Counts by model, in the program's words."""

_CACHED: Final = "cacheReadInputTokens"
_INPUT: Final = ("inputTokens", _CACHED, "cacheCreationInputTokens")
_COUNTED: Final = (*_INPUT, "outputTokens", "thinkingTokens", "costUSD")


@attrs.define(eq=False)
class Calls:
    """The calls of models that a turn saw; all that is known where no result tells more."""

    requests: Counter[str] = attrs.field(factory=Counter)
    _used: dict[str, Counter[str]] = attrs.field(factory=dict)
    _model: str = ""
    _output: int = 0
    """What the newest call has written so far."""
    _helpers: set[str] = attrs.field(factory=set)

    def begin(self, model: object, usage: object) -> None:
        """A model begins to answer; ``usage`` is that of the service."""
        self._model, self._output = str(model or ""), 0
        self.requests[self._model] += 1
        counts = self._used.setdefault(self._model, Counter())
        given = (_count(usage, name) for name in ("input_tokens", "cache_creation_input_tokens"))
        cached = _count(usage, "cache_read_input_tokens")
        counts["input"] += sum(given) + cached
        counts["cached"] += cached
        self.grow(usage)

    def grow(self, usage: object) -> None:
        """The answer has grown, and is so long now."""
        output = max(_count(usage, "output_tokens"), self._output)
        self._used.setdefault(self._model, Counter())["output"] += output - self._output
        self._output = output

    def helper(self, identity: str | None, model: str) -> None:
        """A helper's model has answered; each message brings a part of the answer."""
        if identity is not None and identity not in self._helpers:
            self._helpers.add(identity)
            self.requests[model] += 1

    def usage(self) -> list[Usage]:
        """Return what is known of them."""
        return [
            Usage(
                requests=self.requests[model],
                input_tokens=counts["input"],
                output_tokens=counts["output"],
                cached_tokens=counts["cached"],
                model=model,
            )
            for model, counts in self._used.items()
        ]


@attrs.define(eq=False)
class Meter:
    """Reads the totals of one program, turn by turn. ``last`` are those that it begins with."""

    last: Totals = attrs.field(factory=dict)

    @property
    def cost(self) -> float:
        """What the program counts as cost by now, in US dollars."""
        return sum(_number(counts, "costUSD") for counts in self.last.values())

    def read(self, result: ResultMessage | None, calls: Calls) -> list[Usage]:
        """Return what a turn has used of each model, by its result, or by what was seen of it."""
        if result is None or result.model_usage is None:
            return calls.usage()
        now: Totals = {model: dict(counts) for model, counts in result.model_usage.items()}
        before: Totals = {} if _begun_anew(self.last, now) else self.last
        self.last = now
        used = {model: _difference(counts, before.get(model, {})) for model, counts in now.items()}
        return _usages({model: more for model, more in used.items() if any(more.values())}, calls)

    def reset(self) -> None:
        """The conversation was emptied, and the totals with it."""
        self.last = {}


def _begun_anew(before: Totals, now: Totals) -> bool:
    return any(
        _number(now.get(model, {}), name) < _number(counts, name)
        for model, counts in before.items()
        for name in _COUNTED
    )


def _difference(now: Mapping[str, Any], before: Mapping[str, Any]) -> dict[str, float]:
    return {name: _number(now, name) - _number(before, name) for name in _COUNTED}


def _usages(used: Mapping[str, Mapping[str, float]], calls: Calls) -> list[Usage]:
    """Join what was used with the calls seen. Some services name a model otherwise when it answers."""
    otherwise = sum(count for model, count in calls.requests.items() if model not in used)
    usages = []
    for model, more in used.items():
        requests, otherwise = calls.requests[model] + otherwise, 0
        usage = Usage(
            requests=max(requests, 1),
            input_tokens=int(sum(more[name] for name in _INPUT)),
            output_tokens=int(more["outputTokens"]),
            model=model,
            cached_tokens=int(more[_CACHED]),
            reasoning_tokens=int(more["thinkingTokens"]),
            cost=more["costUSD"],
        )
        usages.append(usage)
    return usages


@attrs.frozen
class Spent:
    """What a session has cost so far, in US dollars, and what its program's totals were then."""

    cost: float = 0.0
    totals: Totals = attrs.field(factory=dict)

    @classmethod
    def of(cls, records: Sequence[str]) -> Spent:
        """Return what the newest item says; nothing where there is none."""
        try:
            found = json.loads(records[-1])
            return cls(_number(found, "cost"), dict(found["totals"]))
        except (IndexError, ValueError, TypeError, KeyError):
            return cls()

    def plus(self, usages: Iterable[Usage], totals: Totals) -> Spent:
        """Return what it is with a further turn, behind which the program's totals are these."""
        return Spent(self.cost + sum(usage.cost or 0.0 for usage in usages), totals)

    def item(self) -> str:
        """Return it as an item of the records."""
        return json.dumps({"cost": self.cost, "totals": dict(self.totals)})


@attrs.frozen
class Budget:
    """What may be spent, in US dollars; ``None`` is without limit."""

    turn: float | None = None
    session: float | None = None

    def refusal(self, spent: Spent) -> Failed | None:
        """Return the end of a turn that must not begin."""
        if self.session is None or spent.cost < self.session:
            return None
        detail = f"the session has cost ${spent.cost:.2f} of ${self.session:.2f}"
        return Failed(FailureKind.BUDGET, detail)

    def ceiling(self, spent: Spent, counted: float) -> float | None:
        """Return the total cost at which a program has to stop, that counts ``counted`` by now.

        It can be told only when it starts. What a session has left holds for all turns that the
        program will serve; with a limit for each turn, it may serve one.
        """
        left = None if self.session is None else self.session - spent.cost
        limits = [limit for limit in (self.turn, left) if limit is not None]
        return counted + min(limits) if limits else None


def _count(usage: object, name: str) -> int:
    return int(_number(usage, name))


def _number(counts: object, name: str) -> float:
    value = counts.get(name) if isinstance(counts, Mapping) else None
    return value if isinstance(value, int | float) and 0 < value < math.inf else 0
