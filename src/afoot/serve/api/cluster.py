"""The cluster over the operator's API, and whether this gateway takes requests, for a load balancer (V8)."""

from collections.abc import Sequence

from msgspec import Struct

from afoot.core.ports import ClusterMemberInfo
from afoot.serve.api.request import ApiRequest


class Readiness(Struct, frozen=True):
    """Whether requests should be sent here: ready, stopping, unrecorded, cut_off."""

    status: str


class ClusterView(Struct, frozen=True):
    """The gateways and workers of the cluster; `id` is this gateway's, empty if it is alone."""

    id: str
    members: Sequence[ClusterMemberInfo]


async def ready(request: ApiRequest) -> None:
    """Whether this gateway takes new calls; 503 if not."""
    status = readiness(request)
    await request.answer(200 if status == "ready" else 503, Readiness(status))


def readiness(request: ApiRequest) -> str:
    """The reason why no request should come here; "ready" if there is none."""
    gateway, engine = request.gateway, request.gateway.engine
    if engine.closing is not None:
        return "stopping"
    if engine.require_history and engine.recorder.degraded is not None:
        return "unrecorded"
    own = [one for one in gateway.cluster_members() if one.id == gateway.cluster_id]
    if gateway.cluster_id and not any(one.left_s > 0 for one in own):
        return "cut_off"  # others may take its calls
    return "ready"


async def show(request: ApiRequest) -> None:
    """The gateways and workers of this cluster, as this gateway heard of them last."""
    request.query()
    gateway = request.gateway
    await request.answer(200, ClusterView(gateway.cluster_id, gateway.cluster_members()))
