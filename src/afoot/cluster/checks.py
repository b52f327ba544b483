"""`losses` says which facts the settings of a Redis or Valkey may lose, and how to change them (D5)."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from afoot.errors import StoreError

OLDEST: Final = (6, 2)  # of Redis; a Valkey says that it is 7.2
_KEYS: Final = ("appendonly", "appendfsync", "maxmemory", "maxmemory-policy")

Command = Callable[..., Awaitable[Any]]


class RedisSettings(Struct, frozen=True):
    """The settings and the state of a server that decide what it may lose; unknown texts are empty."""

    version: str = ""
    appendonly: str = ""
    appendfsync: str = ""
    maxmemory: str = ""
    policy: str = ""
    replicas: int = 0


class Loss(Struct, frozen=True):
    """One setting by which facts may be lost; `required` histories do not accept it."""

    text: str
    fix: str


class LossyRedis(StoreError):
    """The history is required, and the server may lose it."""

    def __init__(self, found: Sequence[Loss]) -> None:
        told = "; ".join(f"{one.text} ({one.fix})" for one in found)
        super().__init__(f'history = "required", but Redis may lose it: {told}')


async def read_redis_settings(command: Command) -> RedisSettings:
    """The settings of a server; one that does not tell its settings, as a hosted one, gives empty texts."""
    found = dict.fromkeys(_KEYS, "")
    for key in _KEYS:
        try:
            reply = await command("CONFIG", "GET", key)
        except StoreError:  # not allowed
            continue
        pairs: Mapping[Any, Any] = (
            reply if isinstance(reply, dict) else dict(zip(reply[::2], reply[1::2], strict=True))
        )
        found[key] = _text(next(iter(pairs.values()), ""))
    info = await command("INFO")
    replicas, version = _read_info(info)
    return RedisSettings(
        version,
        found["appendonly"],
        found["appendfsync"],
        found["maxmemory"],
        found["maxmemory-policy"],
        replicas,
    )


def losses(settings: RedisSettings) -> list[Loss]:
    """The settings by which facts may be lost, besides a second at most if the machine loses its power."""
    found = list[Loss]()
    if settings.appendonly == "no":
        text = "it does not write what it is told to a file (appendonly no): a restart loses it"
        found.append(Loss(text, "set appendonly yes"))
    elif settings.appendfsync == "no":
        text = "it leaves it to the system when its file is written (appendfsync no)"
        found.append(Loss(text, "set appendfsync everysec, or always"))
    if settings.policy and settings.policy != "noeviction" and settings.maxmemory not in ("", "0"):
        text = f"it removes keys where memory is short (maxmemory-policy {settings.policy})"
        found.append(Loss(text, "set maxmemory-policy noeviction"))
    return found


def costs(settings: RedisSettings) -> str:
    """The facts that may be lost although the settings lose none by themselves, in words."""
    if not settings.appendonly:
        return "the server does not tell its settings"
    kept = {
        "always": "nothing that was acknowledged is lost if the machine fails",
        "everysec": "a machine that fails loses up to one second",
    }.get(settings.appendfsync, "a machine that fails loses what was not written")
    replicas = (
        f"{settings.replicas} replicas" if settings.replicas else "no replica: a lost disk loses it all"
    )
    return f"{kept}; {replicas}"


def is_too_old(settings: RedisSettings) -> bool:
    """Whether the server lacks commands that a cluster needs."""
    numbers = tuple(int(one) for one in settings.version.split(".")[:2] if one.isdecimal())
    return bool(numbers) and numbers < OLDEST


def _read_info(info: Any) -> tuple[int, str]:
    if isinstance(info, dict):
        return int(info.get("connected_slaves", 0)), _text(info.get("redis_version", ""))
    lines = dict(line.split(":", 1) for line in _text(info).splitlines() if ":" in line)
    return int(lines.get("connected_slaves", 0)), lines.get("redis_version", "")


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
