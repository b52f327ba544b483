"""`afoot servers login` and `logout`: a person lets the gateway into a server, or takes that back (U7)."""

import asyncio
import logging
import os
import sys
from typing import Annotated, Any
from urllib.parse import urlsplit

from cyclopts import Parameter

from afoot.cli.calls import At, Json, dumped
from afoot.cli.client import Client, connect, part
from afoot.cli.ending import FAILED, Stop
from afoot.observe.terminal import clean

BEGIN_S = 90.0  # the server may have to be started, and its authorization server asked


def login(
    name: str,
    /,
    *,
    no_browser: Annotated[bool, Parameter(help="only print the address")] = False,
    port: Annotated[int, Parameter(help="where the browser comes back to; else a free one")] = 0,
    at: At = "",
    json: Json = False,
) -> int:
    """Log in to a server (OAuth) in the browser; the tokens are kept, and renewed, until you log out.

    Args:
        name: which server
    """
    client = _client(at)
    if client is None:
        told = asyncio.run(_alone(name, port, not no_browser))
    else:
        told = client.post(f"/api/servers/{part(name)}/login", {"port": port}, BEGIN_S)
        _show(told["url"], not no_browser)
        while told["state"] == "waiting":
            told = client.get(f"/api/servers/{part(name)}/login")
    if told["state"] != "done":
        raise Stop(FAILED, told["error"])
    print(dumped({"server": name, "login": "logged in"}) if json else f"logged in to {name}")
    return 0


def logout(name: str, /, *, at: At = "", json: Json = False) -> int:
    """Forget the tokens of a server, and what afoot is registered as there.

    Args:
        name: which server
    """
    client = _client(at)
    if client is None:
        from afoot.providers.logins import Logins

        told: dict[str, Any] = {"server": name, "had_login": Logins().clear(name)}
    else:
        told = client.post(f"/api/servers/{part(name)}/logout", {})
    text = f"logged out of {name}" if told["had_login"] else f"nobody was logged in to {name}"
    print(dumped(told) if json else text)
    return 0


def _client(at: str) -> Client | None:
    """The gateway that is meant; None if none is named and none runs, as a login needs none."""
    from afoot.state import running

    if not at and not os.environ.get("AFOOT_URL") and running() is None:
        return None
    return connect(at)


async def _alone(name: str, port: int, browser: bool) -> dict[str, Any]:
    """Log in without a gateway, to a server of the config; raises AfootError."""
    from afoot.config import load
    from afoot.core.facts import Limits
    from afoot.engine.catalog import Catalog
    from afoot.errors import UnknownName
    from afoot.providers.known import Known
    from afoot.providers.roster import Roster, gather
    from afoot.providers.servers import Servers

    settings = load().settings
    wanted = gather(settings, settings.targets).wanted
    if name not in wanted:
        raise UnknownName("server", name, wanted)
    logging.getLogger("afoot").addHandler(logging.NullHandler())  # what goes wrong is told by the attempt
    async with Servers(Catalog(), Limits(start_s=settings.start_limit_s), Known(None)) as servers:
        servers.logins.check(name, wanted[name].server)
        servers.follow(Roster({name: wanted[name]}))
        attempt = await servers.login(name, port)
        if attempt.url:
            # A browser in a terminal ends only when its user leaves it, and we have to answer it meanwhile.
            await asyncio.to_thread(_show, attempt.url, browser)
        await attempt.ended()
        return {"state": attempt.state, "error": attempt.error}


def _show(url: str, browser: bool) -> None:
    """Where to go, and there, if there is a browser. The address is somebody else's: only the web counts."""
    print(f"Log in here:\n  {clean(url)}", file=sys.stderr, flush=True)
    if browser and urlsplit(url).scheme in ("http", "https"):
        import webbrowser

        webbrowser.open(url)
