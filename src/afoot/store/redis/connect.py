"""`connect` and `connect_thread` make clients for the address of a Redis or Valkey, or of a Sentinel.

All settings of the client library that matter are set here and nowhere else. Replies have the shape of
protocol version 2: that of version 3, the default of newer libraries, differs for streams.
"""

from collections.abc import Awaitable
from typing import Any, Protocol, cast

from redis import Redis
from redis.asyncio import BlockingConnectionPool
from redis.asyncio import Redis as AsyncRedis
from redis.asyncio.retry import Retry as AsyncRetry
from redis.asyncio.sentinel import Sentinel as AsyncSentinel
from redis.backoff import NoBackoff
from redis.exceptions import RedisError
from redis.retry import Retry
from redis.sentinel import Sentinel

from afoot.config.sentinel_address import SENTINEL_SCHEME, read_sentinel_address
from afoot.config.tables import REDIS_ADDRESSES, REDIS_SCHEMES
from afoot.errors import StoreError

CONNECT_S = 3.0  # to open a connection
REPLY_S = 5.0  # for a reply; one that blocks on purpose is given its own time on top
HEALTH_CHECK_S = 10.0  # a connection that was idle for so long is tried before it is used
MAX_CONNECTIONS = 2  # of one client; more commands at once wait for one


class Client(Protocol):
    """The one method of a client that is used: a command and its arguments."""

    def execute_command(self, *args: Any, **options: Any) -> Awaitable[Any]: ...

    def aclose(self) -> Awaitable[None]: ...


class ThreadClient(Protocol):
    """The same in a thread that has no loop."""

    def execute_command(self, *args: Any, **options: Any) -> Any: ...

    def close(self) -> None: ...


class _ClientOfSentinel:
    """A client of the master, which closes also the connections to the Sentinels."""

    def __init__(self, master: Client, sentinels: list[Client]) -> None:
        self._master = master
        self._sentinels = sentinels
        self.execute_command = master.execute_command

    async def aclose(self) -> None:
        for one in (self._master, *self._sentinels):
            await one.aclose()


class _ThreadClientOfSentinel:
    """The same in a thread that has no loop."""

    def __init__(self, master: ThreadClient, sentinels: list[ThreadClient]) -> None:
        self._master = master
        self._sentinels = sentinels
        self.execute_command = master.execute_command

    def close(self) -> None:
        for one in (self._master, *self._sentinels):
            one.close()


def connect(url: str, reply_s: float = REPLY_S) -> Client:
    """A client on the running loop. It opens its connections when it needs them.

    A command is never repeated by the client itself: one that writes facts may have been carried out although
    its reply is lost. Raises StoreError for an address that is none.
    """
    options = _options(reply_s)
    options["retry"] = AsyncRetry(NoBackoff(), 0)
    if _scheme(url) == SENTINEL_SCHEME:
        service, settings = _sentinel(url, options)
        sentinel = AsyncSentinel(**settings)
        master = sentinel.master_for(service)
        return _ClientOfSentinel(cast(Client, master), [cast(Client, one) for one in sentinel.sentinels])
    pool = BlockingConnectionPool.from_url(url, max_connections=MAX_CONNECTIONS, timeout=reply_s, **options)
    return cast(Client, AsyncRedis.from_pool(pool))


def connect_thread(url: str, reply_s: float = REPLY_S) -> ThreadClient:
    """A client for a thread of its own; raises StoreError for an address that is none."""
    options = _options(reply_s)
    options["retry"] = Retry(NoBackoff(), 0)
    if _scheme(url) == SENTINEL_SCHEME:
        service, settings = _sentinel(url, options)
        sentinel = Sentinel(**settings)
        thread_master = cast(ThreadClient, sentinel.master_for(service))
        return _ThreadClientOfSentinel(thread_master, [cast(ThreadClient, one) for one in sentinel.sentinels])
    return cast(ThreadClient, Redis.from_url(url, **options))


def store_error(error: BaseException, what: str) -> StoreError:
    """The error that a journal raises where its client could not do something."""
    reason = str(error) or type(error).__name__
    if isinstance(error, StoreError):
        return error
    if isinstance(error, RedisError | OSError | TimeoutError):
        return StoreError(f"{what}: {reason}")
    return StoreError(f"{what}: {error!r}")


def is_cluster_node(info: Any) -> bool:
    """Whether the reply to INFO is that of a node of a Redis Cluster."""
    if isinstance(info, dict):
        return str(info.get("cluster_enabled", 0)) == "1"
    return b"cluster_enabled:1" in (info.encode() if isinstance(info, str) else bytes(info)).split()


def _options(reply_s: float) -> dict[str, Any]:
    return {
        "protocol": 2,
        "decode_responses": False,
        # A lost packet is sent again only after a second, so a short lease needs a new try.
        "socket_connect_timeout": min(CONNECT_S, reply_s),
        "socket_timeout": reply_s,
        "socket_keepalive": True,
        "health_check_interval": HEALTH_CHECK_S,
    }


def _scheme(url: str) -> str:
    """The scheme of an address; raises StoreError for one that is not supported."""
    scheme = url.partition("://")[0]
    if scheme not in REDIS_SCHEMES:
        raise StoreError(f"cluster.redis: {scheme}:// is not supported; use {REDIS_ADDRESSES}")
    return scheme


def _sentinel(url: str, options: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The service that Sentinels watch, and the settings by which the client library finds it."""
    try:
        address = read_sentinel_address(url)
    except ValueError as error:
        raise StoreError(f"cluster.redis: {error}") from None
    settings: dict[str, Any] = {"sentinels": address.hosts, "db": address.database, **options}
    settings |= _login(address.username, address.password)
    login = _login(address.sentinel_username, address.sentinel_password)
    return address.service, {**settings, "sentinel_kwargs": {**options, **login}}


def _login(username: str, password: str) -> dict[str, str | None]:
    return {"username": username or None, "password": password or None}
