"""What is told of a server beside its configuration, and the carrier that fits it."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec import Struct

from afoot.config import Server
from afoot.errors import ToolError
from afoot.providers.upstream.carrier import Carrier
from afoot.providers.upstream.negotiation import PROBE_S
from afoot.providers.upstream.oauth_access import Access
from afoot.providers.upstream.record import Record
from afoot.providers.upstream.stdio import MAX_BYTES, Stdio

if TYPE_CHECKING:
    import httpx2


class Options(Struct, frozen=True):
    """What holds for a server whatever its configuration says."""

    restart_limit: int = 3  # attempts in a row
    max_bytes: int = MAX_BYTES  # of one message
    probe_s: float = PROBE_S
    auth: "httpx2.Auth | None" = None
    access: Access | None = None  # the login to it, if `auth` is not given
    target: object = None  # a server object to run in this process
    clean: Callable[[str], str] = str  # takes the secrets out of what is logged (S4)


def carrier_for(server: Server, record: Record, options: Options) -> Carrier:
    """A carrier, not open yet. HTTP and the SDK are imported only by those who need them: they are slow."""
    if options.target is not None or server.module:
        from afoot.providers.upstream.inprocess import InProcess

        return InProcess(server, record, options.target)
    if server.url:
        from afoot.providers.upstream.http import Http
        from afoot.providers.upstream.oauth import Bearer

        auth = Bearer(options.access) if options.auth is None and options.access else options.auth
        return Http(server, record, options.max_bytes, auth)
    if server.command:
        return Stdio(server, record, options.max_bytes)
    raise ToolError.validation(f"server {record.server} has neither command, url nor module")
