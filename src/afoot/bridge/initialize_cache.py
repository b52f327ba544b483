"""`cached_answer` answers `initialize` before the gateway has started, as the gateway would (H1, N2).

Hosts wait for this answer: Codex about a second, then it goes on without the server. The last gateway's
answer is kept in `initialize.json` of the state folder, for each config and protocol version. Without one,
everything is declared that a gateway can have, as a gateway does for servers that it has not opened yet.
"""

import logging
import os
from pathlib import Path

from msgspec import Raw, Struct, json

from afoot.config.state_folder import StoredList
from afoot.errors import CallerError
from afoot.wire import mcp_2025
from afoot.wire.jsonrpc import Id
from afoot.wire.mcp_2025 import InitializeParams
from afoot.wire.resources import server_capabilities
from afoot.wire.results import Response, encode
from afoot.wire.tasks import CAPABILITY

log = logging.getLogger("afoot")

FILE = "initialize.json"
MAX_KEPT = 20


class CachedAnswer(Struct, frozen=True):
    """The answer of one gateway to `initialize`, by its config and the version that was agreed."""

    config: str
    protocol: str
    afoot: str  # the version of the gateway: another one may declare something else
    result: dict[str, object]


def cached_answer(request: Id, hello: InitializeParams, config: Path | None, version: str) -> bytes:
    """The response to `initialize`, without a gateway of this version."""
    for one in _read(_stored()):
        if (one.config, one.protocol, one.afoot) == (_key(config), hello.version, version):
            return encode(Response(request, one.result))
    can = server_capabilities(subscribe=True, completions=True)
    if hello.version == mcp_2025.LATEST:
        can = {**can, "tasks": CAPABILITY}
    info = Raw(json.encode({"name": "afoot", "version": version}))
    return mcp_2025.initialize_result(request, hello, info, "", can)


def store_answer(result: Raw, protocol: str, config: Path | None, version: str) -> None:
    """Keep a gateway's answer for the next start, if it is not known yet."""
    new = CachedAnswer(_key(config), protocol, version, json.decode(result, type=dict[str, object]))
    file = _stored()
    known = _read(file)
    if new in known:
        return
    kept = [one for one in known if not _same_place(one, new)]
    try:
        file.write([*kept, new][-MAX_KEPT:])
    except CallerError as error:
        log.info("the answer to initialize is not kept: %s", error)


def _stored() -> StoredList[CachedAnswer]:
    return StoredList(FILE, CachedAnswer)


def _read(file: StoredList[CachedAnswer]) -> list[CachedAnswer]:
    try:
        return file.read() or []
    except CallerError as error:
        log.info("%s", error)
        return []


def _same_place(one: CachedAnswer, other: CachedAnswer) -> bool:
    return (one.config, one.protocol) == (other.config, other.protocol)


def _key(config: Path | None) -> str:
    return str(config.absolute()) if config is not None else os.environ.get("AFOOT_CONFIG", "")
