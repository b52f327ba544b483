"""A subscription of 2026-07-28 that outlives its gateway: the client sees one stream."""

from msgspec import Struct, field, json

from afoot.bridge.pending import Pending
from afoot.wire.jsonrpc import ENVELOPE, Id
from afoot.wire.mcp import notice

ACKNOWLEDGED = "notifications/subscriptions/acknowledged"


class _Wanted(Struct):
    tools: bool = field(name="toolsListChanged", default=False)
    prompts: bool = field(name="promptsListChanged", default=False)
    resources: bool = field(name="resourcesListChanged", default=False)
    uris: list[str] = field(name="resourceSubscriptions", default_factory=list)


class _Acknowledged(Struct):
    notifications: _Wanted


class Subscription:
    """What has been shown of one; `is_over` when the gateway refused it."""

    def __init__(self, pending: Pending) -> None:
        self._pending = pending
        self._is_known = False  # the client has its acknowledgement
        self.is_over = False

    def show(self, frames: list[bytes]) -> list[bytes]:
        """Those frames that the client is to see."""
        pending = self._pending
        shown = pending.pass_on(frames)
        if pending.last is not None:
            self.is_over = bool(pending.last.error)
            if not self.is_over:  # this gateway is going; the next will be told what the client wants to hear
                shown.pop()
                pending.last = None
        if shown and not self._is_known:
            self._is_known = True
            return shown
        return [line for frame in shown for line in self._again(frame)]

    def _again(self, frame: bytes) -> list[bytes]:
        """A second acknowledgement tells the client that anything may have changed meanwhile."""
        message = ENVELOPE.decode(frame)
        if message.method != ACKNOWLEDGED:
            return [frame]
        try:
            return list(
                _changes(self._pending.id, json.decode(message.params, type=_Acknowledged).notifications)
            )
        except ValueError:
            return []


def _changes(request: Id, wanted: _Wanted) -> list[bytes]:
    kinds = [kind for kind in ("tools", "prompts", "resources") if getattr(wanted, kind)]
    lists = [notice(f"notifications/{kind}/list_changed", request) for kind in kinds]
    return lists + [notice("notifications/resources/updated", request, uri=uri) for uri in wanted.uris]
