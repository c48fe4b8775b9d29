"""What a component is given: `dragoman.Host`, over the application's own parts."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import attrs
from anyio.abc import TaskGroup

from dragoman.clock import Clock
from dragoman.errors import AccountMismatch
from dragoman.health import Health
from dragoman.hosting import Gateway, NetworkPolicy
from dragoman.store.operations import DeleteValue, PutValue
from dragoman.store.protocol import Store

_ACCOUNT = "account"


@attrs.frozen
class StoredValues:
    """A component's named values."""

    _store: Store
    _component: str

    async def get(self, key: str) -> str | None:
        """Return a value, or ``None``."""
        return await self._store.read.value(self._component, key)

    async def put(self, key: str, value: str) -> None:
        """Write a value."""
        await self._store.apply(PutValue(component=self._component, name=key, value=value))

    async def delete(self, key: str) -> bool:
        """Delete a value; return whether it was there."""
        return await self._store.apply(DeleteValue(component=self._component, name=key))

    async def scan(self, prefix: str) -> Sequence[tuple[str, str]]:
        """Return all values whose key begins with ``prefix``."""
        return await self._store.read.values(self._component, prefix)


@attrs.define(eq=False)
class ComponentHost:
    """The host of one component."""

    name: str
    id: str
    clock: Clock
    log: logging.Logger
    network: NetworkPolicy
    _health: Health
    _store: Store | None
    _root: Path
    _task_group: TaskGroup | None = None

    @property
    def data_dir(self) -> Path:
        """A directory of the component's own, made when first asked for."""
        path = self._root / "components" / self.name
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        return path

    @property
    def records(self) -> StoredValues:
        """The component's values in the store."""
        return StoredValues(self._open_store(), self.name)

    @property
    def task_group(self) -> TaskGroup:
        """The component's tasks, once ``open`` has yielded: they end before it closes."""
        if self._task_group is None:
            msg = f"{self.name}: tasks begin after open() has yielded, not in it"
            raise RuntimeError(msg)
        return self._task_group

    @property
    def gateway(self) -> Gateway:
        """How the gateway does."""
        return self._health

    def alive(self) -> None:
        """Say that a piece of a platform's work was completed."""
        self._health.worked(self.name)

    def mount(self, path: str, app: Callable[..., Any]) -> None:
        """Offer an ASGI application below ``path``."""
        self._health.mount(path, app, self.name)

    def serve_mounts(self) -> None:
        """Say that this component serves what others mount."""
        self._health.served = True

    def attach(self, task_group: TaskGroup | None) -> None:
        """Give the component its task group, or take it away at the end."""
        self._task_group = task_group

    async def bind_account(self, account: str) -> None:
        """Remember the account of the first connection; refuse another one."""
        # Under a name of core's own: a component cannot overwrite its binding by a plain put.
        values = StoredValues(self._open_store(), f"core:{self.name}")
        bound = await values.get(_ACCOUNT)
        if bound is None:
            await values.put(_ACCOUNT, account)
        elif bound != account:
            raise AccountMismatch(self.id, bound, account)

    def _open_store(self) -> Store:
        if self._store is None:
            msg = f"{self.name} is the store: it cannot keep its own values in it"
            raise RuntimeError(msg)
        return self._store
