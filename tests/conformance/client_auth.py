"""The person's part of a login, for the official suite: its authorization server asks nobody anything."""

import asyncio
from typing import Final
from urllib.error import HTTPError
from urllib.request import urlopen

from afoot.errors import AfootError
from afoot.gateway import Gateway
from afoot.providers.upstream.managed_server import ManagedServer

LOGINS: Final = 3  # a server that wants yet another one after that is left alone
VISIT_S: Final = 30.0
DOCUMENT: Final = "https://conformance-test.local/client-metadata.json"  # the suite knows it by this name


async def admitted(gateway: Gateway, listed: ManagedServer) -> bool:
    """Log in where that is needed; True if the server then lets us in."""
    for _ in range(LOGINS):
        if listed.login != "needed":
            return True
        if not await log_in(gateway, listed.name):
            return False
    return listed.login != "needed"


async def log_in(gateway: Gateway, name: str) -> bool:
    """One login, as a person with a browser makes it; True if it was one."""
    try:
        attempt = await gateway.servers.login(name)
    except AfootError as error:
        print("login refused:", error)
        return False
    if attempt.url:
        await asyncio.to_thread(visit, attempt.url)
        await attempt.ended(VISIT_S)
    print("login", attempt.state, attempt.error)
    return not attempt.error


def visit(url: str) -> None:
    """Go there and wherever that leads, as a browser does."""
    try:
        with urlopen(url, timeout=VISIT_S) as page:
            page.read()
    except HTTPError as error:
        print("the browser was refused:", error.code)
