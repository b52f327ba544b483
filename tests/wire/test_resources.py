"""What passes through from other servers: what is kept on the way, what is left behind, what is sealed."""

from typing import Any

import msgspec
import pytest
from mcp_types.methods import parse_server_result
from msgspec import Raw

from afoot.wire import resources
from afoot.wire.jsonrpc import INTERNAL_ERROR, INVALID_PARAMS, Fault
from afoot.wire.jsonrpc import read as read_message
from afoot.wire.results import Capabilities
from afoot.wire.sealed_state import (
    LookupState,
    RequestState,
    check_binding,
    request_digest,
    seal,
    seal_lookup_state,
    unseal_lookup_state,
    unseal_request_state,
)

KEY = b"k" * 32
INFO = Raw(b'{"name":"afoot","version":"1"}')
PREFIX = "io.modelcontextprotocol/"
ALL = Capabilities({"form": {}, "url": {}}, {}, {})


def lookup(method: str, **params: object) -> resources.Lookup:
    """A request that starts no call."""
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    return resources.read_lookup(read_message(msgspec.json.encode(body)), "local", ALL)


def result(frame: bytes) -> dict[str, Any]:
    """The result in a frame."""
    found: dict[str, Any] = msgspec.json.decode(frame)["result"]
    return found


GET = lookup("prompts/get", name="greet", arguments={"a": "1"})
READ = lookup("resources/read", uri="file:///a")
ELICIT = {"method": "elicitation/create", "params": {"mode": "form"}}
URL = {"method": "elicitation/create", "params": {"mode": "url"}}


def test_what_belongs_to_this_hop_goes_no_further() -> None:
    """T2: our caller's token and envelope are not the next one's; what it traces with is."""
    meta: resources.JsonObject = {
        "progressToken": 1,
        f"{PREFIX}logLevel": "info",
        "dev.afoot/budget": {},
        "traceparent": "00",
    }
    asked = lookup("prompts/get", name="greet", new=1, _meta=meta, requestState="s", inputResponses={"k": 1})
    assert asked.server_params("own", {}, None) == {"name": "own", "new": 1, "_meta": {"traceparent": "00"}}
    again = asked.server_params("own", asked.answers, "theirs")
    assert again["inputResponses"] == {"k": 1} and again["requestState"] == "theirs" and asked.state == "s"


@pytest.mark.parametrize(
    ("ref", "subject", "sent"),
    [
        ({"type": "ref/prompt", "name": "a__p"}, "a__p", {"type": "ref/prompt", "name": "own"}),
        ({"type": "ref/resource", "uri": "x://{a}"}, "x://{a}", {"type": "ref/resource", "uri": "x://{a}"}),
    ],
)
def test_a_completion_is_asked_for_under_the_servers_own_name(
    ref: object, subject: str, sent: object
) -> None:
    """U5: by prompt or by template."""
    asked = lookup("completion/complete", ref=ref, argument={"name": "a", "value": "v"})
    assert asked.subject == subject and asked.server_params("own", {}, None)["ref"] == sent


@pytest.mark.parametrize(
    ("method", "params", "field"),
    [
        ("prompts/get", {}, "params.name: missing"),
        ("prompts/get", {"name": 1}, "params.name"),
        ("prompts/get", {"name": "a", "arguments": []}, "params.arguments"),
        ("resources/read", {"uri": None}, "params.uri"),
        ("resources/read", {"uri": "a", "requestState": 1}, "params.requestState"),
        ("completion/complete", {"ref": {"type": "ref/other"}}, "params.ref"),
        ("completion/complete", {"ref": {"type": "ref/prompt", "name": "a"}}, "params.argument: missing"),
    ],
)
def test_what_is_wrong_is_named(method: str, params: dict[str, object], field: str) -> None:
    """E4: before any server is asked."""
    with pytest.raises(Fault) as caught:
        lookup(method, **params)
    assert caught.value.code == INVALID_PARAMS and caught.value.message.startswith(field)


def test_a_result_fits_the_era_of_whoever_asked() -> None:
    """U5: whatever the era of the server, checked against the official types."""
    contents = [{"uri": "file:///a", "text": "x"}]
    old: resources.JsonObject = {"contents": contents, "_meta": {"theirs": 1}}
    new: resources.JsonObject = {**old, "resultType": "complete", "ttlMs": 5, "cacheScope": "public"}
    for given in (old, new):
        newer = result(resources.lookup_result_2026(READ, INFO, given))
        parse_server_result("resources/read", "2026-07-28", newer)
        assert newer["_meta"]["theirs"] == 1 and newer["_meta"][f"{PREFIX}serverInfo"]["name"] == "afoot"
        assert newer["ttlMs"] == (5 if given is new else 0)
        older = result(resources.lookup_result_2025(READ, given))
        parse_server_result("resources/read", "2025-11-25", older)
        assert older == old


def test_a_round_carries_our_state_and_the_servers_questions() -> None:
    """U5: and nobody is told who the server is."""
    inner: resources.JsonObject = {
        "inputRequests": {"who": ELICIT},
        "requestState": "theirs",
        "_meta": {f"{PREFIX}serverInfo": {}},
    }
    found = result(resources.lookup_round_2026(GET, INFO, inner, "ours"))
    assert found["requestState"] == "ours" and found["inputRequests"] == {"who": ELICIT}
    assert found["_meta"][f"{PREFIX}serverInfo"]["name"] == "afoot"
    assert "inputRequests" not in result(
        resources.lookup_round_2026(GET, INFO, {"requestState": "x"}, "ours")
    )


@pytest.mark.parametrize("asked", [5, [], {"k": 1}])
def test_questions_that_are_none_are_the_servers_fault(asked: object) -> None:
    """U5: garbage goes no further."""
    with pytest.raises(Fault) as caught:
        resources.input_requests({"inputRequests": asked})
    assert caught.value.code == INTERNAL_ERROR


def test_what_a_caller_cannot_be_asked_is_named() -> None:
    """Q3: an object of objects, as -32021 has it."""
    sample, roots = {"method": "sampling/createMessage"}, {"method": "roots/list"}
    asked: dict[str, resources.JsonObject] = {"a": {**ELICIT}, "b": {**URL}, "c": {**sample}, "d": {**roots}}
    assert resources.missing_capabilities(asked, ALL) == {}
    assert resources.missing_capabilities(asked, Capabilities({"form": {}}, {})) == {
        "elicitation": {"url": {}},
        "roots": {},
    }
    every: resources.JsonObject = {"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}}
    assert resources.missing_capabilities(asked, Capabilities()) == every


@pytest.mark.parametrize(
    ("code", "data", "modern", "told"),
    [
        (-32002, None, True, (-32602, {"uri": "a"}, 400)),
        (-32602, None, True, (-32602, {"uri": "a"}, 400)),
        (-32602, {"uri": "a"}, False, (-32002, {"uri": "a"}, 200)),
        (-32602, None, False, (-32602, None, 400)),
        (-32601, None, True, (-32601, None, 404)),
        (-32022, {"supported": []}, True, (-32603, {"supported": []}, 200)),
        (-1, {"why": 1}, True, (-1, {"why": 1}, 200)),
    ],
)
def test_a_servers_error_passes_in_the_words_of_the_era(
    code: int, data: object, modern: bool, told: object
) -> None:
    """U5: code, message and data; a resource that is not there has another code in each era."""
    fault = resources.translate_fault(Fault(code, "no", data=data), "files", modern=modern, uri="a")
    assert (fault.code, fault.data, fault.status) == told and "no" in fault.message


def test_what_we_say_that_we_can() -> None:
    """U5: lists may change; subscriptions and completions only where a server has them."""
    few = resources.server_capabilities(subscribe=False, completions=False)
    assert few["resources"] == {"listChanged": True} and "completions" not in few
    many = resources.server_capabilities(subscribe=True, completions=True)
    assert many["resources"] == {"listChanged": True, "subscribe": True} and many["completions"] == {}


def test_a_slip_is_bound_and_is_no_bookmark() -> None:
    """U5, Q1 c: to caller, method, name and arguments, with an end; one kind of state is never the other."""
    slip = LookupState("files", "theirs", "local", GET.digest(), 100.0)
    state = seal_lookup_state(slip, KEY)
    assert unseal_lookup_state(state, KEY, 99.0) == slip
    check_binding(
        slip, "local", lookup("prompts/get", arguments={"a": "1"}, name="greet", requestState=state).digest()
    )
    others = (lookup("prompts/get", name="greet"), lookup("resources/read", uri="greet"), READ)
    for caller, sum_ in (("other", GET.digest()), *(("local", one.digest()) for one in others)):
        with pytest.raises(Fault, match="made for another"):
            check_binding(slip, caller, sum_)
    mark = seal(RequestState("call", 1, "local", request_digest("greet", b"{}"), 100.0), KEY)
    for wrong, read in (
        (mark, unseal_lookup_state),
        (state, unseal_request_state),
        (state + "x", unseal_lookup_state),
    ):
        with pytest.raises(Fault, match="not one of ours"):
            read(wrong, KEY, 1.0)
    with pytest.raises(Fault, match="expired"):
        unseal_lookup_state(state, KEY, 100.5)
