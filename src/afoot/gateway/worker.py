"""`run_worker` runs the functions of its targets for the gateways of a cluster, until it is told to stop.

The functions are loaded as a gateway loads them, by a gateway that nobody reaches: so schemas, lifespans,
child processes and threads are the same.
"""

import asyncio
import logging
import os
import signal
from collections.abc import Callable, Sequence

from msgspec import Raw, Struct
from msgspec.structs import replace

from afoot import __version__
from afoot.config.redactor import make_redactor
from afoot.config.settings import Settings
from afoot.config.tables import LOCAL_SERVER, ClusterSettings
from afoot.core.names import own_name
from afoot.core.ports import Provider, RunnerStart, Tool, Work
from afoot.engine.catalog import Catalog
from afoot.errors import CallerError, UnknownName
from afoot.gateway import MEMORY, Gateway, Target
from afoot.gateway.app import loop_factory
from afoot.gateway.log_redaction import redact_logs
from afoot.gateway.malloc import return_memory_early
from afoot.providers.forked_signals import add_signal_handler

DEFAULT_SLOTS = 10

log = logging.getLogger("afoot")


class WorkerPlan(Struct, frozen=True):
    """The functions to run, and how many calls at once."""

    settings: Settings
    targets: tuple[Target, ...]
    slots: int = DEFAULT_SLOTS
    label: str = ""  # of the tools that it runs


def run_worker(plan: WorkerPlan, started: Callable[[str], object]) -> None:
    """Run functions until a signal; `started` gets the worker's id. Raises CallerError, StoreError."""
    return_memory_early()
    redact_logs(make_redactor(plan.settings).text)
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(_serve(plan, started))


async def _serve(plan: WorkerPlan, started: Callable[[str], object]) -> None:
    # Redis and Docket are loaded only here: a gateway that is alone needs none of them.
    from afoot.cluster.function_worker import FunctionWorker

    settings = plan.settings
    if not settings.cluster.redis:
        raise CallerError("a worker needs the address of a Redis: set cluster.redis, or AFOOT_CLUSTER")
    alone = replace(
        settings, store=MEMORY, cluster=ClusterSettings(), servers={}, mcp_servers=[], hooks=[], targets=[]
    )
    async with Gateway(*plan.targets, settings=alone) as gateway:
        functions = OwnFunctions(gateway.engine.catalog)
        if not functions.tools():
            raise CallerError("nothing to run: a worker runs functions, so name a file or a module of tools")
        if not any(tool.worker == plan.label for tool in functions.tools()):
            wanted = f"label {plan.label}" if plan.label else "no label"
            raise CallerError(f"nothing to run: no function is for workers with {wanted}")
        worker = FunctionWorker(
            settings.cluster, functions, plan.slots, __version__, settings.drain_s, plan.label
        )
        _listen(worker.stop)
        ready = asyncio.Event()
        serving = asyncio.create_task(worker.run(ready))
        waiting = asyncio.create_task(ready.wait())
        await asyncio.wait([serving, waiting], return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        if ready.is_set():
            started(worker.id)
        await serving


class OwnFunctions:
    """The functions in a catalog, without the tools of any server."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog

    def tools(self) -> Sequence[Tool]:
        return [tool for tool in self._catalog if tool.server == LOCAL_SERVER]

    def prepare(self, tool: str, arguments: Raw) -> Work:
        provider, found = self._find(tool)
        return provider.prepare(own_name(found), arguments)

    def start(self, tool: str, caller: str) -> RunnerStart | None:
        provider, found = self._find(tool)
        return provider.start(own_name(found), caller)

    def _find(self, tool: str) -> tuple[Provider, Tool]:
        for provider, found in self._catalog.known.values():
            if found.server == LOCAL_SERVER and own_name(found) == tool:
                return provider, found
        raise UnknownName("tool", tool, self._catalog.known)


def _listen(stop: asyncio.Event) -> None:
    """Stop in order at the first signal, at once at the second."""

    def signalled(number: int) -> None:
        if stop.is_set():
            os._exit(128 + number)
        log.warning("stopping: the calls that run here are finished, or end by the rules for a dead worker")
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        add_signal_handler(number, signalled, number)
