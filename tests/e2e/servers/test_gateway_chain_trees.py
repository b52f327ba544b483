"""A gateway behind two others: errors, progress without numbers, and the calls below a call."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.gateway import until
from tests.e2e.raw_client import Http, Message, call, frames, modern
from tests.e2e.servers.gateway_chain import Chain, chained
from tests.serve.api_client import Api

pytestmark = pytest.mark.timeout(60)


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chain]:
    """Three gateways that trust each other."""
    with chained(tmp_path_factory.mktemp("chain"), {"trust_annotations": True}) as found:
        with Http(found.outer.url) as http:
            until(lambda: "guild" in str(frames(http.post(modern("tools/list")))), "tools", 20)
        yield found


def sent(chain: Chain, tool: str, arguments: Message | None = None) -> tuple[list[Message], Message]:
    """The params of all progress that a call at the outermost gateway is sent, and its result."""
    with Http(chain.outer.url) as http:
        found = frames(http.post(call(tool, arguments, progressToken="t", **{"dev.afoot/partial": True})))
    return [frame["params"] for frame in found if "params" in frame], found[-1]["result"]


def shown(chain: Chain, tool: str) -> dict[str, Any]:
    """The newest call of a tool, as the API of the outermost gateway shows it."""
    found: dict[str, Any] = Api(chain.outer).get(f"/api/calls/{chain.outer.newest(tool)}").body
    return found


def test_progress_without_numbers_stays_without(chain: Chain) -> None:
    """P1, U6: at the outermost gateway too, there is no number to show."""
    progress, result = sent(chain, "wander")
    assert result["content"][0]["text"] == "there"
    own = [one for one in progress if one.get("message", "").startswith("step")]
    assert own and all(one["_meta"]["dev.afoot/progress"]["indeterminate"] for one in own)
    assert all("total" not in one for one in own)
    assert own[-1]["message"] == "step 3"
    found = shown(chain, "wander")  # a call that ended well is listed by its result
    assert (found["progress"], found["message"]) == (None, "there")


def test_an_error_is_told_once_with_its_clock_and_its_parts(chain: Chain) -> None:
    """E2, P11: the text for a model has each sentence once; programs learn which clock fired."""
    _, result = sent(chain, "crumble")
    text, *parts = [item["text"] for item in result["content"]]
    assert result["isError"] and parts == ["a crumb"]
    assert text.count("timed out") == text.count("It had got to") == text.count("side effects") == 1
    error = result["_meta"]["dev.afoot/error"]
    assert (error["category"], error["code"], error["clock"]) == ("timeout", "idle_limit", "idle")


def test_the_calls_of_the_innermost_gateway_are_seen_at_the_outermost(chain: Chain) -> None:
    """P8: in `_meta`, and in the API; none of them is left running."""
    progress, result = sent(chain, "guild", {"n": 60})
    assert result["content"][0]["text"] == "60 have knitted"
    told = [
        one["_meta"].get("dev.afoot/progress", {}).get("children", []) for one in progress if "_meta" in one
    ]
    states = {child["id"]: child["state"] for some in told for child in some if child["tool"] == "knit"}
    assert len(states) == 60 and set(states.values()) == {"finished"}
    assert max(map(len, told)) <= 50
    remote = shown(chain, "guild")["remote"]
    assert {one["id"] for one in remote if one["tool"] == "knit"} == set(states)
    assert {one["state"] for one in remote} == {"finished"}
