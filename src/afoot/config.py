"""Every setting, its default, and where its value came from: file, environment, flag."""

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path

import msgspec
from msgspec import Struct

from afoot.errors import CallerError


class ConfigError(CallerError):
    """A setting is wrong; the message names file and key."""


class Settings(Struct, frozen=True, forbid_unknown_fields=True):
    """All settings in force. A duration ends in `_s`, a size in `_bytes`."""

    http: str = "127.0.0.1:23668"
    store: str = ""  # empty: the state folder's calls.db; ":memory:" keeps nothing
    targets: list[str] = []

    idle_s: float = 30.0
    ceiling_s: float = 300.0
    answer_s: float = 600.0
    queue_limit_s: float = 60.0
    cancel_grace_s: float = 5.0
    max_idle_s: float | None = None
    max_ceiling_s: float | None = None
    server_concurrency: int = 0
    drain_s: float = 10.0

    progress_hz: float = 20.0
    notice_s: float = 15.0
    sse_after_s: float = 5.0
    keepalive_s: float = 15.0
    stuck_s: float = 120.0
    lifecycle: str = "off"

    max_body_bytes: int = 4 * 1024 * 1024
    max_arguments_bytes: int = 1024 * 1024
    max_result_bytes: int = 32 * 1024 * 1024
    max_message_chars: int = 1000
    max_data_bytes: int = 64 * 1024
    max_questions: int = 100

    history: str = "best-effort"  # or "required"
    durable: str = "normal"  # or "full"
    mcp_token: str = ""
    allow_origins: list[str] = []
    allow_hosts: list[str] = []

    tools: dict[str, dict[str, float]] = {}
    servers: dict[str, dict[str, float]] = {}


CHOICES = {
    "lifecycle": ("off", "stages"),
    "history": ("best-effort", "required"),
    "durable": ("normal", "full"),
}
LIMITS = ("idle_s", "ceiling_s", "answer_s", "queue_s", "grace_s")


class Loaded(Struct, frozen=True):
    """Settings, and for each key where its value came from."""

    settings: Settings
    origin: dict[str, str]
    file: Path | None = None


def load(file: Path | None = None, flags: Mapping[str, object] | None = None) -> Loaded:
    """Settings from defaults, the config file, the environment and flags, the later over the earlier."""
    values: dict[str, object] = {}
    origin = dict.fromkeys(Settings.__struct_fields__, "default")
    found = file or find()
    if found is not None:
        for key, value in _read(found).items():
            values[key], origin[key] = value, str(found)
    for key, value in _environment().items():
        values[key], origin[key] = value, f"AFOOT_{key.upper()}"
    for key, value in (flags or {}).items():
        values[key], origin[key] = value, "flag"
    return Loaded(_settle(values, origin), origin, found)


def find() -> Path | None:
    """The config file that counts: AFOOT_CONFIG, the nearest afoot.toml upward, the user's config folder."""
    if named := os.environ.get("AFOOT_CONFIG"):
        return Path(named)
    here = Path.cwd()
    for folder in (here, *here.parents):
        if (folder / "afoot.toml").is_file():
            return folder / "afoot.toml"
    user = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "afoot" / "afoot.toml"
    return user if user.is_file() else None


def home() -> Path:
    """The state folder: history, keys, and the address of the running gateway."""
    if named := os.environ.get("AFOOT_HOME"):
        return Path(named)
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "afoot"


def _read(file: Path) -> dict[str, object]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"config {file} cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"config {file}: {error}") from None


def _environment() -> dict[str, object]:
    found: dict[str, object] = {}
    for key in Settings.__struct_fields__:
        text = os.environ.get(f"AFOOT_{key.upper()}")
        if text is not None:
            is_list = isinstance(getattr(Settings(), key), list)
            found[key] = [part for part in text.split(",") if part] if is_list else text
    return found


def _settle(values: dict[str, object], origin: Mapping[str, str]) -> Settings:
    for key, value in values.items():
        if key not in Settings.__struct_fields__:
            raise ConfigError(f"unknown setting {key!r} ({origin[key]}); `afoot config` lists them all")
        try:
            one = msgspec.convert({key: value}, Settings, strict=False)
        except msgspec.ValidationError as error:
            what, _, where = str(error).partition(" - at `$.")
            whole = _whole_key(key, value, where)
            raise ConfigError(f"setting {whole} ({origin[key]}): {what.lower()}") from None
        _check(key, getattr(one, key), origin[key])
    return msgspec.convert(values, Settings, strict=False)


def _whole_key(key: str, value: object, where: str) -> str:
    """`tools.export.idle_s`: msgspec writes `[...]` where the names of a table stand."""
    if "[...]" in where and isinstance(value, dict):
        for name, limits in value.items():
            if not isinstance(limits, dict):
                return f"{key}.{name}"
            for limit, number in limits.items():
                if isinstance(number, bool) or not isinstance(number, int | float):
                    return f"{key}.{name}.{limit}"
    return key


def _check(key: str, value: object, where: str) -> None:
    if key in CHOICES and value not in CHOICES[key]:
        raise ConfigError(f"setting {key} ({where}): must be one of {', '.join(CHOICES[key])}, not {value!r}")
    if isinstance(value, int | float) and not value >= 0:
        raise ConfigError(f"setting {key} ({where}): must not be negative")
    if key in ("keepalive_s", "notice_s", "stuck_s") and not value:
        raise ConfigError(f"setting {key} ({where}): must be more than 0")
    if key in ("tools", "servers") and isinstance(value, dict):
        for name, limits in value.items():
            for limit, number in limits.items():
                if limit not in LIMITS:
                    raise ConfigError(
                        f"setting {key}.{name}.{limit} ({where}): must be one of {', '.join(LIMITS)}"
                    )
                _check(f"{key}.{name}.{limit}", number, where)
