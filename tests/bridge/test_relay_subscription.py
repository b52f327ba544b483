"""A subscription over several gateways is one stream to its client."""

import json
from typing import Any

from afoot.bridge.pending import BridgeRequest
from afoot.bridge.relay import ACKNOWLEDGED, BridgeSubscription
from afoot.wire import jsonrpc
from afoot.wire.mcp_2026 import listen_notification

OVER = b'{"id":"l","result":{"resultType":"complete"},"jsonrpc":"2.0"}'
CHANGED = "notifications/tools/list_changed"


def subscription() -> BridgeSubscription:
    """One that was just asked for."""
    line = b'{"jsonrpc":"2.0","id":"l","method":"subscriptions/listen"}'
    return BridgeSubscription(BridgeRequest(line, jsonrpc.read(line), modern=True))


def acknowledged(**wanted: Any) -> bytes:
    """What each gateway says first."""
    return listen_notification(ACKNOWLEDGED, "l", notifications=wanted)


def test_the_first_acknowledgement_passes_and_a_later_one_means_that_all_may_have_changed() -> None:
    """H4: with the subscription's own id."""
    one, hello = subscription(), acknowledged(toolsListChanged=True, resourceSubscriptions=["x://y"])
    assert one.show([hello]) == [hello]
    told = [json.loads(frame) for frame in one.show([hello])]
    assert [frame["method"] for frame in told] == [CHANGED, "notifications/resources/updated"]
    assert told[1]["params"]["uri"] == "x://y"
    assert all(frame["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"] == "l" for frame in told)


def test_the_end_of_a_gateway_is_not_the_end_of_a_subscription() -> None:
    """H4: only the client ends it, or a refusal."""
    one, changed = subscription(), listen_notification(CHANGED, "l")
    assert one.show([acknowledged()]) and one.show([changed, OVER]) == [changed]
    assert not one.is_over
    refusal = b'{"id":"l","error":{"code":-32602,"message":"no"},"jsonrpc":"2.0"}'
    assert one.show([refusal]) == [refusal] and one.is_over
