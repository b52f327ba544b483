"""`afoot connect` bridges stdin and stdout to the running gateway; hosts start this program."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from afoot.cli.client import LOST, CliError


def connect(
    *,
    config: Annotated[Path | None, Parameter(help="the config file, if a gateway must be started")] = None,
    at: Annotated[str, Parameter(help="the gateway's URL; default: the gateway on this machine")] = "",
) -> int:
    """Bridge stdin and stdout to the running gateway. Starts a gateway if none runs."""
    from afoot import __version__
    from afoot.bridge.process import run_bridge
    from afoot.errors import CallerError

    try:
        run_bridge(config, at, __version__)
    except CallerError as error:
        raise CliError(LOST, str(error)) from None
    return 0
