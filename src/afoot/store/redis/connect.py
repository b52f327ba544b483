"""`connect` and `connect_thread` make clients for the address of a Redis or Valkey, a Sentinel or a cluster.

All settings of the client library that matter are set here and nowhere else. Replies have the shape of
protocol version 2: that of version 3, the default of newer libraries, differs for streams.
"""

from collections.abc import Awaitable
from typing import Any, Protocol, cast
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from redis import Redis, RedisCluster
from redis.asyncio import BlockingConnectionPool
from redis.asyncio import Redis as AsyncRedis
from redis.asyncio import RedisCluster as AsyncRedisCluster
from redis.asyncio.retry import Retry as AsyncRetry
from redis.asyncio.sentinel import Sentinel as AsyncSentinel
from redis.backoff import NoBackoff
from redis.exceptions import RedisError
from redis.retry import Retry
from redis.sentinel import Sentinel

from afoot.config.tables import REDIS_SCHEMES
from afoot.errors import StoreError

CONNECT_S = 3.0  # to open a connection
REPLY_S = 5.0  # for a reply; one that blocks on purpose is given its own time on top
HEALTH_CHECK_S = 10.0  # a connection that was idle for so long is tried before it is used
MAX_CONNECTIONS = 2  # of one client; more commands at once wait for one
SENTINEL, CLUSTER = "redis+sentinel", "redis+cluster"


class Client(Protocol):
    """The one method of a client that is used: a command and its arguments."""

    def execute_command(self, *args: Any, **options: Any) -> Awaitable[Any]: ...

    def aclose(self) -> Awaitable[None]: ...


class ThreadClient(Protocol):
    """The same in a thread that has no loop."""

    def execute_command(self, *args: Any, **options: Any) -> Any: ...

    def close(self) -> None: ...


def connect(url: str, reply_s: float = REPLY_S) -> Client:
    """A client on the running loop. It opens its connections when it needs them.

    A command is never repeated by the client itself: one that writes facts may have been carried out although
    its reply is lost. Raises StoreError for an address that is none.
    """
    options = _options(reply_s)
    options["retry"] = AsyncRetry(NoBackoff(), 0)
    parts, scheme = _split(url)
    if scheme == SENTINEL:
        hosts, service, login = _sentinel(parts)
        sentinel = AsyncSentinel(hosts, sentinel_kwargs=dict(options), **options, **login)
        return cast(Client, sentinel.master_for(service))
    if scheme == CLUSTER:
        del options["retry"]  # the client of a cluster follows slots that move, and counts these itself
        return cast(Client, AsyncRedisCluster.from_url(_plain(parts), **options))
    pool = BlockingConnectionPool.from_url(url, max_connections=MAX_CONNECTIONS, timeout=reply_s, **options)
    return cast(Client, AsyncRedis.from_pool(pool))


def connect_thread(url: str, reply_s: float = REPLY_S) -> ThreadClient:
    """A client for a thread of its own; raises StoreError for an address that is none."""
    options = _options(reply_s)
    options["retry"] = Retry(NoBackoff(), 0)
    parts, scheme = _split(url)
    if scheme == SENTINEL:
        hosts, service, login = _sentinel(parts)
        sentinel = Sentinel(hosts, sentinel_kwargs=dict(options), **options, **login)
        return cast(ThreadClient, sentinel.master_for(service))
    if scheme == CLUSTER:
        del options["retry"]
        return cast(ThreadClient, RedisCluster.from_url(_plain(parts), **options))
    return cast(ThreadClient, Redis.from_url(url, **options))


def store_error(error: BaseException, what: str) -> StoreError:
    """The error that a journal raises where its client could not do something."""
    reason = str(error) or type(error).__name__
    if isinstance(error, StoreError):
        return error
    if isinstance(error, RedisError | OSError | TimeoutError):
        return StoreError(f"{what}: {reason}")
    return StoreError(f"{what}: {error!r}")


def _options(reply_s: float) -> dict[str, Any]:
    return {
        "protocol": 2,
        "decode_responses": False,
        "socket_connect_timeout": CONNECT_S,
        "socket_timeout": reply_s,
        "socket_keepalive": True,
        "health_check_interval": HEALTH_CHECK_S,
    }


def _split(url: str) -> tuple[SplitResult, str]:
    """The parts of an address, and what it leads to; raises StoreError."""
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise StoreError(f"cluster.redis: {error}") from None
    if parts.scheme not in REDIS_SCHEMES:
        raise StoreError(f"cluster.redis: {parts.scheme}:// is no address of a Redis or Valkey")
    return parts, parts.scheme.replace("rediss+", "redis+")


def _plain(parts: SplitResult) -> str:
    """The address of one node of a cluster, from which the client learns the others."""
    return parts._replace(scheme=parts.scheme.partition("+")[0]).geturl()


def _sentinel(parts: SplitResult) -> tuple[list[tuple[str, int]], str, dict[str, Any]]:
    """The Sentinels, the service that they watch, and how to log in there.

    redis+sentinel://USER:PASSWORD@HOST:PORT,HOST:PORT/SERVICE/DB
    """
    login, _, places = parts.netloc.rpartition("@")
    hosts = list[tuple[str, int]]()
    for place in places.split(","):
        host, _, port = place.rpartition(":")
        hosts.append((host or port, int(port) if host and port.isdecimal() else 26379))
    service, _, db = parts.path.strip("/").partition("/")
    if not service:
        raise StoreError(
            "cluster.redis: the name of the service is missing: redis+sentinel://HOST:PORT/SERVICE"
        )
    user, _, password = login.partition(":")
    found: dict[str, Any] = {"username": unquote(user) or None, "password": unquote(password) or None}
    found["db"] = int(db or dict(parse_qsl(parts.query)).get("db", "0"))
    found["ssl"] = parts.scheme.startswith("rediss")
    return hosts, service, found
