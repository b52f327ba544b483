"""`afoot doctor` checks the installation: one line per check, with the fix for each problem.

The checks that only look are in `checks`; `trial_calls` starts a gateway of its own and makes real calls.
"""

import asyncio
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from afoot.cli.doctor.findings import Finding, finding_line
from afoot.cli.options import JsonOption

if TYPE_CHECKING:
    from afoot.config.settings import LoadedSettings


def doctor(
    *,
    config: Annotated[Path | None, Parameter(help="the config file; default: the nearest afoot.toml")] = None,
    json: JsonOption = False,
) -> int:
    """Check the installation. Exits with 1 if a check fails."""
    import msgspec

    from afoot.cli.terminal.text import escape_json

    worst = 0
    for one in run_checks(config):
        worst = max(worst, int(one.state == "fail"))
        print(escape_json(msgspec.json.encode(one).decode()) if json else finding_line(one), flush=True)
    return worst


def run_checks(config: Path | None) -> Iterator[Finding]:
    """Yield the findings of all checks, each as soon as it is known."""
    from afoot.cli.doctor import checks
    from afoot.cli.doctor.cluster import check_cluster

    yield checks.check_python()
    yield from checks.check_packages()
    found, loaded = checks.check_config(config)
    yield found
    yield checks.check_state_folder()
    yield checks.check_clock()
    if loaded is not None:
        yield checks.check_store(loaded.settings.store)
        yield from check_cluster(loaded.settings)
        yield checks.check_port(loaded.settings.http)
        yield from checks.check_targets(loaded)
    yield from asyncio.run(_run_live_checks(loaded))
    yield from checks.check_host_files()
    yield from checks.check_client_limits()
    yield from checks.check_extension()
    yield from checks.check_resources()


async def _run_live_checks(loaded: "LoadedSettings | None") -> list[Finding]:
    """The checks that take a while, at the same time: real calls, and a handshake with every server."""
    from afoot.cli.doctor.checks import check_servers
    from afoot.cli.doctor.trial_calls import check_calls

    logging.disable(logging.CRITICAL)  # a server's errors are in its finding
    calls, servers = await asyncio.gather(check_calls(), check_servers(loaded))
    return [*calls, *servers]
