"""`follow_config` reads the settings again when their files change; `follow_tools` does so with tools."""

import asyncio
import logging
from collections.abc import Iterable, Mapping
from pathlib import Path

from msgspec import Struct

from afoot.config.settings import find_config, load_settings
from afoot.errors import CallerError
from afoot.gateway import Gateway
from afoot.serve.gateway_state import GatewayState

CONFIG_S = 1.0
TOOLS_S = 0.3
WRITE_PAUSE_S = 0.1  # a program that writes a file in two steps has written the second by then

log = logging.getLogger("afoot")

Stamps = tuple[tuple[int, int], ...]


class ConfigSource(Struct, frozen=True):
    """The source of the settings: a file, or the one that is found; and the flags."""

    file: Path | None = None
    flags: Mapping[str, object] = {}


async def follow_config(gateway: Gateway, state: GatewayState, source: ConfigSource) -> None:
    """Read the settings, and plugins, again when their files change; one with an error changes nothing."""
    seen = _stamps(_files(gateway, source))
    while True:
        await asyncio.sleep(CONFIG_S)
        if gateway.browsing.folders:
            _look(gateway)
        now = _stamps(_files(gateway, source))
        if now == seen:
            continue
        await asyncio.sleep(WRITE_PAUSE_S)
        if now == _stamps(_files(gateway, source)):
            reload_config(gateway, state, source)
            seen = _stamps(_files(gateway, source))


def reload_config(gateway: Gateway, state: GatewayState, source: ConfigSource) -> None:
    """Take over the settings from their files, or say what is wrong with them."""
    before = gateway.settings, state.problems
    try:
        fixed = gateway.adopt(load_settings(source.file, source.flags).settings)
    except CallerError as error:
        log.error("kept the old settings: %s", error)
        state.problems = [str(error)]
        return
    except Exception:  # a mistake of ours must not end the following of the files
        log.exception("kept the old settings")
        state.problems = ["the settings could not be taken; the gateway's log says more"]
        return
    state.settings = gateway.settings
    state.problems = [f"{key} takes effect when the gateway is started again" for key in fixed]
    if gateway.settings is before[0] and state.problems == before[1]:
        return  # nothing has changed
    for problem in (*state.problems, *gateway.servers.problems):
        log.warning("%s", problem)
    log.warning("read the settings again: %s", describe_gateway(gateway))


def _look(gateway: Gateway) -> None:
    try:
        gateway.browsing.check_files()
    except Exception:  # a mistake of ours must not end the following of the files
        log.exception("plugins could not be read again")


async def follow_tools(gateway: Gateway) -> None:
    """Read tool files again when they change; a file with an error leaves the old tools in place."""
    files = [Path(str(target)) for target in gateway.targets if str(target).endswith(".py")]
    seen = _stamps(files)
    while True:
        await asyncio.sleep(TOOLS_S)
        now = _stamps(files)
        if now == seen:
            continue
        seen = now
        try:
            gateway.reload()
        except (CallerError, TypeError, ValueError) as error:
            log.error("kept the old tools: %s", error)
        else:
            log.warning("reloaded %d tools", len(gateway.tools()))


def describe_gateway(gateway: Gateway) -> str:
    """The numbers of tools and servers, in words."""
    tools, servers = len(gateway.tools()), len(gateway.servers.list())
    return f"{tools} tool{'s' * (tools != 1)}, {servers} server{'s' * (servers != 1)}"


def _files(gateway: Gateway, source: ConfigSource) -> list[Path]:
    file = source.file or find_config()
    return [*([] if file is None else [file]), *gateway.servers.files]


def _stamps(files: Iterable[Path]) -> Stamps:
    return tuple(_stamp(file) for file in files)


def _stamp(file: Path) -> tuple[int, int]:
    try:
        found = file.stat()
    except OSError:
        return (0, 0)
    return found.st_mtime_ns, found.st_size
