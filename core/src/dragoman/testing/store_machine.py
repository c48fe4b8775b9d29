"""The store's contract as a state machine: any history of operations, compared with the model.

Each step draws one operation. It is applied at once, or held back so that it shares a commit with
those that follow. After each commit every answer, every row and every query is compared with
`StoreModel`, and each change of a state that the database saw has to be an edge.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any, cast

import attrs
from anyio.from_thread import start_blocking_portal
from hypothesis import note, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from dragoman.errors import StaleLease
from dragoman.store import operations as ops
from dragoman.store.writer import rounds
from dragoman.testing.store_draws import Draws
from dragoman.testing.store_model import StoreModel
from dragoman.testing.store_model_apply import apply
from dragoman.testing.store_queries import check_queries
from dragoman.testing.store_rows import check_rows, watch_states
from dragoman.testing.store_scene import OpenStore, together


class StoreMachine(RuleBasedStateMachine):
    """One history of one store.

    There is a single rule, and the kinds are weighted in `Draws`: with a rule for each kind,
    histories rarely get as far as a turn that ends.
    """

    def __init__(self, open_store: OpenStore) -> None:
        super().__init__()
        self.model = StoreModel()
        self.group: list[ops.Operation[Any]] = []
        self.history: list[ops.Operation[Any]] = []
        self.made = 0
        self.open = ExitStack()
        self.portal = self.open.enter_context(start_blocking_portal("asyncio"))
        self.store = self.open.enter_context(self.portal.wrap_async_context_manager(open_store()))
        self.portal.call(watch_states, self.store)

    @rule(data=st.data(), hold=st.booleans())
    def step(self, data: st.DataObject, hold: bool) -> None:
        """Draw an operation; let it wait for its commit, or apply it with those that wait."""
        draws = Draws(self.model, data, self.made, [*self.history, *self.group])
        operation = draws.operation()
        self.made = draws.made
        if _turn_of(operation) in {_begun_by(other) for other in self.group}:
            # A repeated end may share its commit with the end of the turn that it handed on to. Both
            # orders are right then, and they differ in what the repetition is answered.
            self.flush()
        note(f"{'hold' if hold else 'apply'} {operation}")
        self.group.append(operation)
        if not hold:
            self.flush()

    def teardown(self) -> None:
        """Close the store."""
        self.open.close()

    def flush(self) -> None:
        """Apply the group in one commit, and compare everything."""
        group, self.group = self.group, []
        self.history.extend(group)
        commits = self.store.commits
        answers = self.portal.call(together, self.store, *group)
        assert self.store.commits == commits + 1
        for _, numbers in rounds(group):
            for number in sorted(numbers, key=lambda number: _turn(group[number])):
                expected = apply(self.model, group[number], answers[number])
                assert_same(group[number], answers[number], expected)
        self.portal.call(check_rows, self.store, self.model)
        self.portal.call(check_queries, self.store, self.model)


def run_machine(open_store: OpenStore, *, examples: int, steps: int) -> None:
    """Run `StoreMachine` over that many histories."""
    run_state_machine_as_test(
        # Any factory will do; the annotation asks for more than the function.
        cast("type[RuleBasedStateMachine]", lambda: StoreMachine(open_store)),
        # The same histories each time: a proof that holds today holds tomorrow.
        settings=settings(
            max_examples=examples, stateful_step_count=steps, deadline=None, derandomize=True
        ),
    )


def assert_same(op: ops.Operation[Any], answer: Any, expected: Any) -> None:
    """Compare an answer, or a refusal, with the model's."""
    if isinstance(expected, StaleLease):
        assert isinstance(answer, StaleLease), (op, answer)
        assert (answer.turn_id, answer.fence) == (expected.turn_id, expected.fence)
        return
    if isinstance(answer, ops.Recovered):
        answer = attrs.evolve(answer, interrupted=tuple(sorted(answer.interrupted)))
    assert answer == expected, op


def _begun_by(op: ops.Operation[Any]) -> str:
    """Return the turn that an operation may begin."""
    adoption = getattr(op, "adoption", None)
    return adoption.turn_id if adoption else ""


def _turn_of(op: ops.Operation[Any]) -> str | None:
    """Return the turn whose lease an operation carries."""
    lease = getattr(op, "lease", None)
    return lease.turn_id if lease else None


def _turn(op: ops.Operation[Any]) -> int:
    """Return an operation's turn inside its round: events are admitted in order of receipt."""
    return op.event_id if isinstance(op, ops.Accept) else 0
