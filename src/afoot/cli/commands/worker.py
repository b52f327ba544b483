"""`afoot worker` runs functions for the gateways of a cluster until Ctrl-C."""

import os
import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter


def worker(
    *targets: str,
    config: Annotated[Path | None, Parameter(help="the config file; default: the nearest afoot.toml")] = None,
    slots: Annotated[int, Parameter(help="how many calls run here at once; default: 10")] = 10,
    label: Annotated[str, Parameter(help="run the tools that ask for workers of this label")] = "",
    json: Annotated[bool, Parameter(help="print one line of JSON once calls are taken")] = False,
) -> int:
    """Run functions for the gateways of a cluster.

    Args:
        targets: files or modules with tools; default: the targets of the config file
    """
    from msgspec import json as encoding

    from afoot.cli.client import USAGE, CliError
    from afoot.cli.terminal.log_output import log_of_server
    from afoot.config.settings import load_settings
    from afoot.config.tables import is_label
    from afoot.gateway.worker import WorkerPlan, run_worker

    if slots < 1:
        raise CliError(USAGE, "--slots: must be at least 1")
    if not is_label(label):
        raise CliError(USAGE, "--label: must be at most 64 letters, digits, _ and -")
    log_of_server()
    flags: dict[str, object] = {"targets": list(targets)} if targets else {}
    settings = load_settings(config, flags).settings
    if "" not in sys.path and os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())  # modules are imported from this folder

    def started(name: str) -> None:
        text = f"worker {name} takes calls, {slots} at once; Ctrl-C stops it"
        told = (
            encoding.encode({"worker": name, "pid": os.getpid(), "slots": slots}).decode() if json else text
        )
        print(told, flush=True)

    try:
        run_worker(WorkerPlan(settings, tuple(settings.targets), slots, label), started)
    except ImportError as error:
        raise CliError(USAGE, f'{error.name} is missing: pip install "afoot[cluster]"') from None
    return 0
