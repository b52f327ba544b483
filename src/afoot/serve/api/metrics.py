"""`GET /metrics`: the figures of this gateway, and of its cluster, as Prometheus scrapes them (V8)."""

import asyncio
import os
import resource
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Final

from afoot.core.call import State
from afoot.core.ports import Cluster
from afoot.observe.prometheus import CONTENT_TYPE, MetricFamily, MetricLine, exposition
from afoot.serve.api.cluster import READY, readiness
from afoot.serve.api.request import ApiError, ApiRequest
from afoot.serve.gateway_state import GatewayState

MAX_MEMBERS: Final = 300  # of a cluster that are told apart
WAITING: Final = "waiting"  # a call that runs, or is queued, while one of its questions is open
STATES: Final = (State.QUEUED.value, State.RUNNING.value, WAITING, State.CANCELLING.value)

_STATM = Path("/proc/self/statm")
_DESCRIPTORS = Path("/proc/self/fd")


async def show(request: ApiRequest) -> None:
    """The figures of this gateway, in the text format of Prometheus."""
    request.query()
    gateway = request.gateway
    kept = gateway.figures
    if kept is None:
        raise ApiError(404, "no figures are kept here (see metrics)", "not_found")
    await kept.start()
    pieces = list[bytes]()
    families = chain(_gateway(gateway, readiness(request)), _cluster(gateway.cluster), _process(gateway))
    for family in chain(families, kept.families()):
        pieces.append(exposition(family).encode(errors="replace"))
        await asyncio.sleep(0)  # with hundreds of tools, each takes some milliseconds
    body = b"".join(pieces)
    with request.bounded(len(body)):
        kind = (b"content-type", CONTENT_TYPE.encode())
        await request.reply.json(200, body, (b"cache-control", b"no-store"), kind=kind)


def _gateway(gateway: GatewayState, status: str) -> Iterator[MetricFamily]:
    engine = gateway.engine
    yield _value("afoot_build_info", "The version of this gateway.", 1, version=gateway.version)
    yield _value("afoot_ready", "Whether this gateway takes new calls (see /readyz).", status == READY)
    yield _value(
        "afoot_history_degraded", "Whether facts wait in memory.", engine.recorder.degraded is not None
    )
    found = Counter(
        WAITING if live.call.open and live.call.state is not State.CANCELLING else live.call.state.value
        for live in engine.own_calls()
    )
    told = [MetricLine("", {"state": state}, found[state]) for state in STATES]
    yield MetricFamily("afoot_calls", "gauge", "Calls of this gateway that are not over, by state.", told)
    yield _value(
        "afoot_tools_past_grace_total", "Tools that did not stop in their grace.", engine.ran_past_grace
    )


def _process(gateway: GatewayState) -> Iterator[MetricFamily]:
    """The figures of the process, by the names that all clients of Prometheus give them."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    yield _value("process_cpu_seconds_total", "Processor time of the gateway.", used.ru_utime + used.ru_stime)
    yield _value("process_start_time_seconds", "When the gateway started.", gateway.started_at)
    with suppress(OSError, ValueError, IndexError):  # not on Linux
        pages = int(_STATM.read_text().split()[1])
        bytes_used = pages * os.sysconf("SC_PAGE_SIZE")
        yield _value("process_resident_memory_bytes", "Memory of the gateway.", bytes_used)
        yield _value("process_open_fds", "Open files and connections.", len(os.listdir(_DESCRIPTORS)))
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    most = float("inf") if soft == resource.RLIM_INFINITY else soft
    yield _value("process_max_fds", "The most open files and connections.", most)


def _cluster(cluster: Cluster | None) -> Iterator[MetricFamily]:
    if cluster is None:
        return
    seen = cluster.figures
    yield _value("afoot_cluster_redis_up", "Whether Redis answered at the last look.", seen.is_heard)
    yield _value(
        "afoot_cluster_tail_lag", "Facts of the cluster that this gateway does not know yet.", seen.lag
    )
    yield _value("afoot_cluster_queue_length", "Functions that no worker has begun.", seen.waiting)
    yield _value("afoot_cluster_taken_over_total", "Calls that this gateway took over.", seen.taken_over)
    yield _value("afoot_cluster_clock_skew_seconds", "By how much the clock of Redis is ahead.", seen.skew_s)
    members = cluster.members()
    states = Counter((one.role, _state(one.left_s, one.draining)) for one in members)
    told = [
        MetricLine("", {"role": role, "state": state}, states[role, state])
        for role in ("gateway", "worker")
        for state in ("live", "draining", "silent")
    ]
    yield MetricFamily("afoot_cluster_members", "gauge", "Gateways and workers, by state.", told)
    known = members[:MAX_MEMBERS]
    labels = [{"member": one.id, "role": one.role} for one in known]

    def each(name: str, description: str, values: Iterable[float]) -> MetricFamily:
        lines = [MetricLine("", label, value) for label, value in zip(labels, values, strict=True)]
        return MetricFamily(f"afoot_cluster_member_{name}", "gauge", description, lines)

    yield MetricFamily(
        "afoot_cluster_member_info", "gauge", "Where each member runs.",
        [
            MetricLine("", {**label, "host": one.host, "version": one.version}, 1)
            for label, one in zip(labels, known, strict=True)
        ],
    )  # fmt: skip
    yield each(
        "lease_seconds", "What is left of its lease; below 0 it may be dead.", (one.left_s for one in known)
    )
    yield each("calls", "Calls that it owns, or runs.", (one.calls for one in known))
    yield each("lag", "Facts of the cluster that it does not know yet.", (one.lag for one in known))
    slots = [
        MetricLine("", label, one.slots)
        for label, one in zip(labels, known, strict=True)
        if one.role == "worker"
    ]
    yield MetricFamily("afoot_cluster_worker_slots", "gauge", "Calls that it runs at once.", slots)


def _state(left_s: float, draining: bool) -> str:
    if left_s <= 0:
        return "silent"
    return "draining" if draining else "live"


def _value(name: str, description: str, value: float, **labels: str) -> MetricFamily:
    kind = "counter" if name.endswith("_total") else "gauge"
    found: Mapping[str, str] = labels
    return MetricFamily(name, kind, description, [MetricLine("", found, value)])
