"""Files that are followed while a gateway runs: its config always, files of tools where that is wanted."""

import asyncio
import logging
from collections.abc import Iterable, Mapping
from pathlib import Path

from msgspec import Struct

from afoot.config import find, load
from afoot.errors import CallerError
from afoot.gateway import Gateway
from afoot.serve.site import Site

CONFIG_S = 1.0
TOOLS_S = 0.3
SETTLE_S = 0.1  # whoever writes a file in two steps has it whole by then

log = logging.getLogger("afoot")

Stamps = tuple[tuple[int, int], ...]


class Source(Struct, frozen=True):
    """Where the settings came from: a file, or the one that is found; and the flags."""

    file: Path | None = None
    flags: Mapping[str, object] = {}


async def follow_config(gateway: Gateway, site: Site, source: Source) -> None:
    """Read the settings, and plugins, again when their files change; one with an error changes nothing."""
    seen = _stamps(_files(gateway, source))
    while True:
        await asyncio.sleep(CONFIG_S)
        if gateway.browsing.folders:
            _look(gateway)
        now = _stamps(_files(gateway, source))
        if now == seen:
            continue
        await asyncio.sleep(SETTLE_S)
        if now == _stamps(_files(gateway, source)):
            read_again(gateway, site, source)
            seen = _stamps(_files(gateway, source))


def read_again(gateway: Gateway, site: Site, source: Source) -> None:
    """Take the settings as they are in their files now, or say what is wrong with them."""
    before = gateway.settings, site.problems
    try:
        fixed = gateway.adopt(load(source.file, source.flags).settings)
    except CallerError as error:
        log.error("kept the old settings: %s", error)
        site.problems = [str(error)]
        return
    except Exception:  # a mistake of ours must not end the following of the files
        log.exception("kept the old settings")
        site.problems = ["the settings could not be taken; the gateway's log says more"]
        return
    site.settings = gateway.settings
    site.problems = [f"{key} takes effect when the gateway is started again" for key in fixed]
    if gateway.settings is before[0] and site.problems == before[1]:
        return  # nothing is other than it was
    for problem in (*site.problems, *gateway.servers.problems):
        log.warning("%s", problem)
    log.warning("read the settings again: %s", told(gateway))


def _look(gateway: Gateway) -> None:
    try:
        gateway.browsing.look()
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


def told(gateway: Gateway) -> str:
    """How many tools and servers there are, in words."""
    tools, servers = len(gateway.tools()), len(gateway.servers.list())
    return f"{tools} tool{'s' * (tools != 1)}, {servers} server{'s' * (servers != 1)}"


def _files(gateway: Gateway, source: Source) -> list[Path]:
    file = source.file or find()
    return [*([] if file is None else [file]), *gateway.servers.files]


def _stamps(files: Iterable[Path]) -> Stamps:
    return tuple(_stamp(file) for file in files)


def _stamp(file: Path) -> tuple[int, int]:
    try:
        found = file.stat()
    except OSError:
        return (0, 0)
    return found.st_mtime_ns, found.st_size
