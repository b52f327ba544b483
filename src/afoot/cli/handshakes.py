"""A handshake with every server that the config names, all at once, each for so long and no longer."""

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

from afoot.cli.finding import Finding, fail, ok, warn

if TYPE_CHECKING:
    from afoot.config import Loaded
    from afoot.providers.roster import Roster, Wanted

LIMIT_S = 20.0
CLOSING_S = 5.0
AT_ONCE = 4


async def handshakes(loaded: "Loaded | None") -> list[Finding]:
    """One line a server, and one for whatever is wrong with the files that name them."""
    if loaded is None:
        return []
    from afoot.config import ConfigError
    from afoot.providers.roster import gather

    try:
        roster = gather(loaded.settings, loaded.settings.targets)
    except ConfigError as error:
        return [fail("servers", str(error), "mend that file")]
    turns = asyncio.Semaphore(AT_ONCE)
    found = await asyncio.gather(*(_one(name, wanted, turns) for name, wanted in roster.wanted.items()))
    return [*_problems(roster), *found]


def _problems(roster: "Roster") -> Iterator[Finding]:
    for problem in roster.problems:
        yield warn("servers", problem, "mend that file, or leave it out of mcp_servers")


async def _one(name: str, wanted: "Wanted", turns: asyncio.Semaphore) -> Finding:
    check = f"server {name}"
    if wanted.server.disabled:
        return ok(check, "disabled")
    if wanted.why:
        return fail(check, wanted.why, f"mend it in {wanted.origin}")
    async with turns:
        return await _open(check, name, wanted)


async def _open(check: str, name: str, wanted: "Wanted") -> Finding:
    from afoot.errors import AfootError
    from afoot.hosts.secrets import environment
    from afoot.providers.upstream.carriers import Options
    from afoot.providers.upstream.upstream import Upstream

    try:
        server = wanted.server.expanded(environment())
    except KeyError as missing:
        return fail(check, f"{missing.args[0]} is not set, and its settings use it", "set it")
    upstream = Upstream(name, server, options=Options(restart_limit=1, target=wanted.target))
    began = asyncio.get_running_loop().time()
    try:
        async with asyncio.timeout(LIMIT_S):
            await upstream.open()
        took = asyncio.get_running_loop().time() - began
        return ok(check, f"{upstream.era}, {len(upstream.tools())} tools, {took:.1f} s")
    except TimeoutError:
        return fail(check, f"no handshake within {LIMIT_S:g} s", _fix(name, wanted))
    except (AfootError, OSError) as error:
        return fail(check, str(error).removeprefix(f"server {name}").lstrip(": "), _fix(name, wanted))
    finally:
        with suppress(TimeoutError, AfootError, OSError):
            async with asyncio.timeout(CLOSING_S):
                await upstream.close()


def _fix(name: str, wanted: "Wanted") -> str:
    if wanted.server.auth == "oauth":
        return f"sign in: afoot servers login {name}"
    if wanted.server.command:  # its arguments may hold secrets
        return f"run {wanted.server.command} by hand, as {wanted.origin} has it"
    return "see that it runs"
