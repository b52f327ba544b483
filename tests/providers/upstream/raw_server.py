"""A small MCP server on stdio without any SDK: it starts fast, speaks either era, and misbehaves on demand.

Run as `python -m tests.providers.upstream.raw_server ERA [HABIT…]`; ERA is `2025`, `2026`, or `both`.
"""

import json
import os
import sys
import time
from functools import partial
from typing import Any

from tests.providers.upstream.raw_server_faults import deaf, pages, scream, visit  # noqa: F401
from tests.providers.upstream.raw_server_rpc import (
    APPS,
    EMPTY,
    MODERN,
    SURE,
    ask,
    fail,
    give,
    listed,
    progress,
    say,
    send,
    speaks,
    text,
    tools,
    waiting,
)
from tests.providers.upstream.raw_server_tasks import about_task, job, tell_listener  # noqa: F401

habits = sys.argv[2:]
began: dict[str, Any] = {}  # the capabilities that the client declared at `initialize`
told: dict[str, Any] = {}  # by the client, outside calls


def echo(request: dict[str, Any], arguments: dict[str, Any]) -> None:
    text(request["id"], arguments["text"], structuredContent={"text": arguments["text"]})


def count(request: dict[str, Any], arguments: dict[str, Any]) -> None:
    for step in range(1, arguments["n"] + 1):
        progress(request, step, total=arguments["n"])
    text(request["id"], str(arguments["n"]))


def crash(request: dict[str, Any], arguments: dict[str, Any]) -> None:
    text(request["id"], "Error executing tool crash: boom", isError=True)


def missing(request: dict[str, Any], arguments: dict[str, Any]) -> None:
    meta = {
        "dev.afoot/error": {"category": "not_found", "code": "gone", "retryable": True, "retry_after_s": 3}
    }
    text(request["id"], "no such thing", isError=True, _meta=meta)


def spoiled(request: dict[str, Any], arguments: dict[str, Any]) -> None:
    """Ends as a call of another afoot that timed out: with a part that was told, and one that was not."""
    parts = [{"type": "text", "text": part} for part in ("half", "rest")]
    progress(request, 1, _meta={"dev.afoot/partial": parts[:1]})
    whole = {"type": "text", "text": "timed out: no report for 5 s. It had got to 1, 6 s after it was called"}
    error = {
        "category": "timeout",
        "code": "idle_limit",
        "clock": "idle",
        "message": "timed out: no report for 5 s",
    }
    result = {"content": [whole, *parts], "isError": True, "_meta": {"dev.afoot/error": error}}
    send({"id": request["id"], "result": {"resultType": "complete", **result}})


def hang(request: dict[str, Any], arguments: dict[str, Any]) -> None:
    progress(request, 1)


def confirm(request: dict[str, Any], arguments: dict[str, Any]) -> None:
    def then(answer: Any) -> None:
        is_yes = isinstance(answer, dict) and answer["action"] == "accept" and answer["content"]["sure"]
        text(request["id"], "yes" if is_yes else f"no: {answer}" if not isinstance(answer, dict) else "no")

    ask(request, "elicitation/create", {"message": "sure?", "requestedSchema": SURE}, then)


def sample(request: dict[str, Any], arguments: dict[str, Any]) -> None:
    params = {"messages": [{"role": "user", "content": {"type": "text", "text": "hi"}}], "maxTokens": 9}
    ask(request, "sampling/createMessage", params, partial(dump, request))


def roots(request: dict[str, Any], arguments: dict[str, Any]) -> None:
    ask(request, "roots/list", {}, partial(dump, request))


def dump(request: dict[str, Any], answer: Any) -> None:
    text(request["id"], json.dumps(answer))


def rounds(request: dict[str, Any], arguments: dict[str, Any]) -> None:
    """Asks n times, one after the other, and counts in its state."""
    done = int(request["params"].get("requestState", 0))
    if done == arguments["n"]:
        text(request["id"], f"{done} rounds")
        return
    progress(request, done)
    wish = {
        f"step{done}": {"method": "elicitation/create", "params": {"message": "?", "requestedSchema": SURE}}
    }
    state = {"resultType": "input_required", "inputRequests": wish, "requestState": str(done + 1)}
    send({"id": request["id"], "result": state})


def states(request: dict[str, Any], arguments: dict[str, Any]) -> None:
    """Keeps the client waiting for n rounds."""
    done = int(request["params"].get("requestState", 0))
    if done == arguments["n"]:
        text(request["id"], f"{done} rounds")
    else:
        send({"id": request["id"], "result": {"resultType": "input_required", "requestState": str(done + 1)}})


def die(request: dict[str, Any], arguments: dict[str, Any]) -> None:
    progress(request, 1)
    print("my last words", file=sys.stderr, flush=True)
    os.kill(os.getpid(), 9)


def flood(request: dict[str, Any], arguments: dict[str, Any]) -> None:
    token = request["params"]["_meta"]["progressToken"]
    params = {"progressToken": token, "progress": 0, "total": arguments["n"], "message": "page"}
    line = json.dumps({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})
    head, _, rest = line.partition('"progress": 0')
    for step in range(1, arguments["n"] + 1):
        sys.stdout.write(f'{head}"progress": {step}{rest}\n')
    text(request["id"], "done")


def backwards(request: dict[str, Any], arguments: dict[str, Any]) -> None:
    for number in (5, 3, 9, -1, 9):
        progress(request, number, total=10)
    progress(request, "many", total=10)
    progress(request, None)
    text(request["id"], "done")


def strangers(request: dict[str, Any], arguments: dict[str, Any]) -> None:
    for token in (987654, "never heard of", None, {"a": 1}):
        say("notifications/progress", progressToken=token, progress=1)
    text(request["id"], "done")


def after(request: dict[str, Any], arguments: dict[str, Any]) -> None:
    text(request["id"], "done")
    progress(request, 99)


def twice(request: dict[str, Any], arguments: dict[str, Any]) -> None:
    text(request["id"], "first")
    text(request["id"], "second")


def large(request: dict[str, Any], arguments: dict[str, Any]) -> None:
    text(request["id"], "x" * arguments["n"])


def garbage(request: dict[str, Any], arguments: dict[str, Any]) -> None:
    sys.stdout.flush()
    for line in (
        b"hello",
        b"{",
        b"[1,2]",
        b"\xff\xfe\x00",
        b'"text"',
        b"",
        b"{}",
        b'{"id": {}}',
        b"[" * 5000,
    ):
        sys.stdout.buffer.write(line + b"\n")
    text(request["id"], "done")


def newline(request: dict[str, Any], arguments: dict[str, Any]) -> None:
    text(request["id"], json.dumps(request["params"]["arguments"]))


def nan(request: dict[str, Any], arguments: dict[str, Any]) -> None:
    text(request["id"], "nan", structuredContent={"value": float("nan")})


def change(request: dict[str, Any], arguments: dict[str, Any]) -> None:
    tools["another"] = EMPTY
    say("notifications/tools/list_changed")
    progress(request, 1)
    text(request["id"], "changed")


def log(request: dict[str, Any], arguments: dict[str, Any]) -> None:
    say("notifications/message", level="warning", logger="me", data="a line")
    say("notifications/message", level="loud", data={"a": 1})
    text(request["id"], "logged")


def meta(request: dict[str, Any], arguments: dict[str, Any]) -> None:
    """Speaks as an afoot does."""
    own = "dev.afoot/progress"
    progress(request, 1, message="running, 3 s", _meta={own: {"source": "engine"}})
    progress(request, 2, message="ask", _meta={own: {"source": "engine", "waiting_on": "person"}})
    progress(request, 3, message="on", _meta={own: {"data": {"phase": "one"}}})
    progress(request, 4, _meta={"dev.afoot/partial": [{"type": "text", "text": "half"}]})
    progress(request, 5.5, total=9, _meta={own: {"progress": 2, "total": 8}})
    child = {"id": "x", "tool": "inner", "state": "running", "progress": 1, "total": 4, "new": 1}
    progress(request, 6, _meta={own: {"children": [{"call": "x"}, *[child] * 60]}})
    progress(request, 7, _meta=17)
    progress(request, 3e-06, message="words", _meta={own: {"indeterminate": True}})
    ended = {"id": "x", "tool": "inner", "state": "finished", "outcome": "ok"}
    progress(request, 8, _meta={own: {"source": "engine", "children": [ended]}})
    text(request["id"], json.dumps(request["params"]["_meta"]))


def whole(request: dict[str, Any], arguments: dict[str, Any]) -> None:
    """Adds a key of its own to the `_meta` of everything, unknown fields, and an unknown type of content."""
    own = {"x.example/at": {"of": "server"}}
    given = {key: one for key, one in request["params"].items() if key not in ("inputResponses", "name")}

    def then(answer: Any) -> None:
        progress(request, 1, total=2, message="half", later=[1], _meta=own)
        say("notifications/message", level="warning", data={"a": 1}, later=2, _meta=own)
        items = [{"type": "text", "text": "x", "_meta": own}, {"type": "hologram", "depth": 3, "_meta": own}]
        got = {"request": given, "answer": answer}
        meta = {**own, "dev.afoot/call": "not yours", "progressToken": "nor this"}
        give(request["id"], content=items, structuredContent=got, later={"b": None}, _meta=meta)

    question = {"message": "sure?", "requestedSchema": SURE, "later": True, "_meta": own}
    ask(request, "elicitation/create", question, then)


def kept(request: dict[str, Any], arguments: dict[str, Any]) -> None:
    """Says which roots and which level of logs it was told."""
    text(request["id"], json.dumps(told))


def declared(request: dict[str, Any], arguments: dict[str, Any]) -> None:
    """Says which extensions the client of this request declares: now, or as it began."""
    can = request["params"].get("_meta", {}).get("io.modelcontextprotocol/clientCapabilities", began)
    text(request["id"], json.dumps(can.get("extensions", {})))


def ask_for_roots() -> None:
    def then(answer: Any) -> None:
        told["roots"] = answer
        say("notifications/message", level="notice", data="roots")

    waiting["roots"] = then
    send({"id": "roots", "method": "roots/list", "params": {}})


def refuse(request: dict[str, Any], arguments: dict[str, Any]) -> None:
    fail(request["id"], arguments["n"], "no")


def discover(request: dict[str, Any]) -> None:
    if "slow-discover" in habits:
        time.sleep(0.5)
    meta = {"io.modelcontextprotocol/serverInfo": {"name": "raw", "version": "1"}}
    offered = {"tools": {"listChanged": True}, **({"extensions": APPS} if "apps" in habits else {})}
    fields = {"capabilities": offered, "instructions": "be kind", "_meta": meta}
    give(request["id"], supportedVersions=[MODERN], **fields)


def initialize(request: dict[str, Any]) -> None:
    if "slow-initialize" in habits:
        time.sleep(0.5)
    offered: dict[str, Any] = {
        "tools": {"listChanged": True},
        "prompts": {},
        "resources": {"subscribe": True},
        "tasks": {"cancel": {}, "requests": {"tools": {"call": {}}}},
    }
    if "apps" in habits:
        offered["extensions"] = APPS
    if "logs" in habits:
        offered["logging"] = dict[str, Any]()
    info = {"name": "raw", "version": "1"}
    give(request["id"], protocolVersion="2025-11-25", capabilities=offered, serverInfo=info)


def handle(request: dict[str, Any]) -> None:
    """One message from the client."""
    method, id = request.get("method"), request.get("id")
    if method is None:
        then = waiting.pop(str(id), None)
        if then:
            then(request["result"] if "result" in request else request["error"]["message"])
    elif method == "server/discover":
        if speaks["era"] == "2025":
            if "silent" not in habits:
                fail(id, -32601, "unknown method")
        else:
            speaks["era"] = "2026"
            discover(request)
    elif method == "initialize":
        if "never" in habits:
            return
        if speaks["era"] == "2026":
            fail(id, -32022, "unsupported", {"supported": [MODERN], "requested": "2025-11-25"})
        else:
            speaks["era"] = "2025"
            began.update(request["params"]["capabilities"])
            initialize(request)
    elif method == "tools/call":
        globals()[request["params"]["name"]](request, request["params"].get("arguments", {}))
    elif id is not None:
        other(request)
    elif method in ("notifications/initialized", "notifications/roots/list_changed"):
        if "roots" in habits:
            ask_for_roots()
    elif method == "notifications/cancelled" and "tell-cancel" in habits:
        print(f"cancelled {request['params']['requestId']}", file=sys.stderr, flush=True)


def other(request: dict[str, Any]) -> None:
    """Lists, in pages of ten, and resources."""
    method, id, params = request["method"], request["id"], request.get("params", {})
    if method == "tools/list":
        start = int(params.get("cursor", 0))
        every = listed()
        more = {"nextCursor": str(start + 10)} if start + 10 < len(every) else {}
        give(id, tools=every[start : start + 10], ttlMs=0, cacheScope="private", **more)
        if "restless" in habits:
            print("listed", file=sys.stderr, flush=True)
            say("notifications/tools/list_changed")
    elif method == "logging/setLevel" and "logs" in habits:
        told["level"] = params["level"]
        give(id)
        for level in ("debug", "warning"):
            say("notifications/message", level=level, logger="me", data={"now": params["level"]})
    elif method.startswith("tasks/"):
        about_task(request)
    elif method == "resources/list":
        give(id, resources=[{"uri": "test://a", "name": "a"}])
    elif method == "resources/subscribe":
        give(id)
        say("notifications/resources/updated", uri=params["uri"])
    elif method == "resources/read":
        if params["uri"] == "test://nothing":
            send({"id": id, "result": None})
        else:
            give(id, contents=[{"uri": params["uri"], "text": "hello"}])
    elif method == "prompts/get":
        ask(request, "elicitation/create", {"message": "who?"}, partial(dump, request))
    elif method == "prompts/list":
        give(id, prompts=[{"name": "p"}])
    elif method == "subscriptions/listen":
        meta = {"io.modelcontextprotocol/subscriptionId": id}
        say("notifications/subscriptions/acknowledged", notifications=params["notifications"], _meta=meta)
        if "taskIds" in params["notifications"]:
            tell_listener()
    else:
        fail(id, -32601, f"unknown method {method}")


if __name__ == "__main__":
    if "exit" in habits:
        print("cannot start today", file=sys.stderr)
        sys.exit(3)
    if "banner" in habits:
        print("Welcome to the raw server!", flush=True)
    for line in sys.stdin:
        handle(json.loads(line))
