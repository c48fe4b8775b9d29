"""What the rest of dragoman knows of a store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from dragoman.store.operations import Operation
    from dragoman.store.reads import Reads

ResultT = TypeVar("ResultT")


class Store(Protocol):
    """The system of record. `dragoman.testing.store.StoreSuite` judges whoever implements it."""

    @property
    def read(self) -> Reads:
        """All queries; they see what is committed."""
        ...

    @property
    def commits(self) -> int:
        """Durable commits since the store was opened."""
        ...

    async def apply(self, operation: Operation[ResultT]) -> ResultT:
        """Write one operation; return its answer when it is durable.

        Raises `dragoman.StaleLease` for a fenced operation whose turn lost its session, and
        `dragoman.StoreUnavailable` when nothing of it was kept. A caller that is cancelled here
        may ask again: the operation is written all the same, and its answer is kept.
        """
        ...
