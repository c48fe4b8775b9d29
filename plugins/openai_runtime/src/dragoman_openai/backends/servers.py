"""Histories on a server: one client for all sessions of a runtime, closed with it.

No call outlasts `CALL` seconds, and none is repeated by the library itself: a repeated write
could be stored twice.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any, Final

import anyio
import attrs
from anyio import to_thread

from dragoman import Host, ManifestError
from dragoman_openai.backends.backend import Backend, library
from dragoman_openai.session_table import SessionTable

if TYPE_CHECKING:
    from agents.memory import Session

CALL: Final = 5.0
"""Seconds that one call to a server may take."""
_CLOSING: Final = 5.0
_POOL: Final = 20
"""Connections of one runtime: turns wait for a free one."""


@asynccontextmanager
async def redis(table: SessionTable, host: Host) -> AsyncIterator[Backend]:
    """Histories in Redis: one standalone server, whole histories expire after ``ttl``."""
    client = await to_thread.run_sync(_redis_client, table, host)
    from agents.extensions.memory import RedisSession

    async def make(name: str) -> Session:
        return RedisSession(name, redis_client=client, key_prefix=table.prefix, ttl=table.ttl)

    async with _closed(host, client.aclose):
        yield Backend("redis", make)


def _redis_client(table: SessionTable, host: Host) -> Any:
    place = f"{host.name}.session"
    module = library("redis.asyncio", "redis", place)
    retry = library("redis.asyncio.retry", "redis", place)
    backoff = library("redis.backoff", "redis", place)
    address = table.address()
    more = {"ssl_ca_certs": str(host.network.ca_file)} if host.network.ca_file else {}
    with _readable(f"{place}.url"):
        pool = module.BlockingConnectionPool.from_url(
            address,
            max_connections=_POOL,
            timeout=CALL,
            socket_timeout=CALL,
            socket_connect_timeout=min(CALL, host.network.connect_timeout),
            health_check_interval=30,
            retry=retry.Retry(backoff.NoBackoff(), 0),
            **(more if address.startswith("rediss:") else {}),
        )
    return module.Redis.from_pool(pool)


@asynccontextmanager
async def sqlalchemy(table: SessionTable, host: Host) -> AsyncIterator[Backend]:
    """Histories in a database that SQLAlchemy has an asynchronous driver for."""
    engine = await to_thread.run_sync(_engine, table, host)
    from agents.extensions.memory import SQLAlchemySession

    async def make(name: str) -> Session:
        return SQLAlchemySession(name, engine=engine, create_tables=table.create_tables)

    async with _closed(host, engine.dispose):
        yield Backend("sqlalchemy", make)


def _engine(table: SessionTable, host: Host) -> Any:
    place = f"{host.name}.session"
    module = library("sqlalchemy.ext.asyncio", "sqlalchemy", place)
    url = library("sqlalchemy.engine", "sqlalchemy", place)
    with _readable(f"{place}.url", 'name an asynchronous driver, as in "postgresql+asyncpg://…"'):
        address = url.make_url(table.address())
        pool: dict[str, Any] = {"pool_pre_ping": True, "pool_recycle": 1800}
        if address.get_backend_name() != "sqlite":
            pool |= {"pool_size": _POOL // 2, "max_overflow": _POOL // 2, "pool_timeout": CALL}
        if address.get_driver_name() == "asyncpg":
            pool["connect_args"] = {"timeout": CALL, "command_timeout": CALL}
        return module.create_async_engine(address, **pool)


@asynccontextmanager
async def mongodb(table: SessionTable, host: Host) -> AsyncIterator[Backend]:
    """Histories in MongoDB."""
    client = await to_thread.run_sync(_mongo_client, table, host)
    from agents.extensions.memory import MongoDBSession

    async def make(name: str) -> Session:
        return MongoDBSession(name, client=client, database=table.database)

    async with _closed(host, client.close):
        yield Backend("mongodb", make)


def _mongo_client(table: SessionTable, host: Host) -> Any:
    place = f"{host.name}.session"
    module = library("pymongo", "mongodb", place)
    address = table.address()
    milliseconds = int(CALL * 1000)
    more: dict[str, Any] = {}
    if host.network.ca_file and address.startswith("mongodb+srv:"):
        more["tlsCAFile"] = str(host.network.ca_file)
    with _readable(f"{place}.url"):
        return module.AsyncMongoClient(
            address,
            connect=False,
            maxPoolSize=_POOL,
            timeoutMS=milliseconds,
            serverSelectionTimeoutMS=milliseconds,
            retryWrites=False,
            **more,
        )


@asynccontextmanager
async def dapr(table: SessionTable, host: Host) -> AsyncIterator[Backend]:
    """Histories in a state store of Dapr's, asked for with strong consistency."""
    place = f"{host.name}.session"
    clients = await to_thread.run_sync(library, "dapr.aio.clients", "dapr", place)
    sidecar = _Sidecar(clients, table.address())
    from agents.extensions.memory import DaprSession

    async def make(name: str) -> Session:
        return DaprSession(
            name,
            state_store_name=table.store or "",
            dapr_client=await sidecar.client(),
            ttl=table.ttl,
            consistency="strong",
        )

    async with _closed(host, sidecar.close):
        yield Backend("dapr", make)


@attrs.define(eq=False)
class _Sidecar:
    """Dapr's client, made when it is first needed: making it asks the sidecar how it does."""

    _clients: Any
    _address: str
    _client: Any = None
    _lock: anyio.Lock = attrs.field(factory=anyio.Lock)

    async def client(self) -> Any:
        """Return the client; raise what the library raises while no sidecar answers."""
        async with self._lock:
            if self._client is None:
                health = library("dapr.aio.clients.health", "dapr", "dapr").DaprHealth
                # Else the client's own, blocking question would hold the loop for a minute.
                with anyio.fail_after(CALL):
                    await health.wait_for_sidecar()
                self._client = self._clients.DaprClient(self._address)
            return self._client

    async def close(self) -> None:
        """Close the client, if there is one."""
        if self._client is not None:
            await self._client.close()


OPENERS: Final[dict[str, Callable[[SessionTable, Host], AbstractAsyncContextManager[Backend]]]] = {
    "redis": redis,
    "sqlalchemy": sqlalchemy,
    "mongodb": mongodb,
    "dapr": dapr,
}


@asynccontextmanager
async def _closed(host: Host, close: Callable[[], Any]) -> AsyncIterator[None]:
    """Call ``close`` at the end, within a limit, whatever else happens."""
    try:
        yield
    finally:
        with anyio.CancelScope(shield=True), host.clock.move_on_after(_CLOSING):
            await close()


@contextmanager
def _readable(key: str, remedy: str = "see the documentation of its library") -> Iterator[None]:
    """Turn what a library says of an address into a problem of the manifest, without its text.

    The text may quote the address, with the password in it.
    """
    try:
        yield
    except ManifestError:
        raise
    except Exception as error:  # noqa: BLE001 - each library has errors of its own
        msg = f"{key}: this address cannot be used ({type(error).__name__})"
        raise ManifestError([f"{msg}; {remedy}"]) from None
