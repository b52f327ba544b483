"""The cluster over the operator's API, and whether this gateway takes requests, for a load balancer (V8)."""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from afoot.core.ports import Cluster, ClusterFigures, ClusterMemberInfo
from afoot.serve.access.principal import OPERATOR
from afoot.serve.api.request import ApiError, ApiRequest
from afoot.serve.mcp.sessions_2025 import SESSION_MAX_AGE_S

READY: Final = "ready"


class Readiness(Struct, frozen=True):
    """Whether requests should be sent here: ready, stopping, draining, unrecorded, cut_off."""

    status: str


class ClusterView(Struct, frozen=True):
    """The gateways and workers of the cluster; `id` is this gateway's, empty if it is alone."""

    id: str
    members: Sequence[ClusterMemberInfo]
    figures: ClusterFigures | None = None  # of this gateway's part


async def ready(request: ApiRequest) -> None:
    """Whether this gateway takes new calls; 503 if not."""
    status = readiness(request)
    await request.answer(200 if status == READY else 503, Readiness(status))


def readiness(request: ApiRequest) -> str:
    """The reason why no request should come here; "ready" if there is none."""
    gateway, engine = request.gateway, request.gateway.engine
    if engine.closing is not None:
        return "stopping"
    if engine.draining is not None:
        return "draining"
    if engine.require_history and engine.recorder.degraded is not None:
        return "unrecorded"
    cluster = gateway.cluster
    if cluster is not None and not any(one.id == cluster.id and one.left_s > 0 for one in cluster.members()):
        return "cut_off"  # others may take its calls
    return READY


async def show(request: ApiRequest) -> None:
    """The gateways and workers of this cluster, as this gateway heard of them last."""
    request.query()
    cluster = request.gateway.cluster
    view = (
        ClusterView("", ())
        if cluster is None
        else ClusterView(cluster.id, cluster.members(), cluster.figures)
    )
    await request.answer(200, view)


class TakeOverRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """Whether a member is declared dead although its lease has not run out."""

    force: bool = False


class TakeOverView(Struct, frozen=True):
    """The member that was declared dead, and how many of its calls this gateway has taken over."""

    member: ClusterMemberInfo
    calls: int


async def drain(request: ApiRequest) -> None:
    """Have a gateway or a worker take no new calls; those that it has go on."""
    request.query()
    found = await _cluster(request).drain(request.names["id"], request.identity or OPERATOR, drains=True)
    await request.answer(200, found)


async def resume(request: ApiRequest) -> None:
    """Have a gateway or a worker that was drained take calls again."""
    request.query()
    found = await _cluster(request).drain(request.names["id"], request.identity or OPERATOR, drains=False)
    await request.answer(200, found)


async def take_over(request: ApiRequest) -> None:
    """Declare a gateway or a worker dead: others go on with its calls at once."""
    request.query()
    wanted = await request.body(TakeOverRequest)
    cluster = _cluster(request)
    member, calls = await cluster.declare_dead(
        request.names["id"], request.identity or OPERATOR, force=wanted.force
    )
    await request.answer(200, TakeOverView(member, calls))


async def rotate_keys(request: ApiRequest) -> None:
    """Make a new key that seals request states and session ids; older keys open until nothing needs them."""
    request.query()
    keep_s = max(SESSION_MAX_AGE_S, request.gateway.longest_state_s())
    found = await _cluster(request).rotate_keys(keep_s, request.identity or OPERATOR)
    await request.answer(200, found)


def _cluster(request: ApiRequest) -> Cluster:
    if request.gateway.cluster is None:
        raise ApiError(409, "this gateway is alone: cluster.redis is not set", "refused")
    return request.gateway.cluster
