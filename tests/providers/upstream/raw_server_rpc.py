"""How the small server of our own speaks: JSON-RPC on stdout, in the way of its era."""

import json
import sys
from typing import Any

MODERN = "2026-07-28"
speaks = {"era": sys.argv[1] if len(sys.argv) > 1 else "both"}
waiting: dict[str, Any] = {}  # requests of ours that the client answers, and what then
TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
NUMBER = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
EMPTY: dict[str, Any] = {"type": "object", "properties": {}}
SURE = {"type": "object", "properties": {"sure": {"type": "boolean"}}, "required": ["sure"]}
APPS: dict[str, Any] = {"io.modelcontextprotocol/ui": {"of": "raw"}, "x.example/more": {}}
tools = {
    "echo": TEXT, "count": NUMBER, "crash": EMPTY, "missing": EMPTY, "hang": EMPTY, "confirm": EMPTY,
    "die": EMPTY, "flood": NUMBER, "backwards": EMPTY, "twice": EMPTY, "large": NUMBER, "garbage": EMPTY,
    "change": EMPTY, "strangers": EMPTY, "after": EMPTY, "nan": EMPTY, "meta": EMPTY, "log": EMPTY,
    "rounds": NUMBER, "states": NUMBER, "refuse": NUMBER, "visit": EMPTY, "sample": EMPTY,
    "roots": EMPTY, "newline": EMPTY, "deaf": EMPTY, "pages": EMPTY, "scream": EMPTY,
    "job": EMPTY, "kept": EMPTY, "declared": EMPTY, "whole": EMPTY, "spoiled": EMPTY,
}  # fmt: skip


def listed() -> list[dict[str, Any]]:
    """The tools as they are listed; one says what it is."""
    found = [{"name": name, "inputSchema": schema, "x-unknown": 1} for name, schema in tools.items()]
    found[0]["annotations"] = {"readOnlyHint": True, "idempotentHint": True}
    found[6]["annotations"] = {"destructiveHint": True}
    if "apps" in sys.argv:
        found[0]["_meta"] = {"ui": {"resourceUri": "ui://raw/page.html", "visibility": ["app"]}}
    found[list(tools).index("job")]["execution"] = {"taskSupport": "required"}
    found[-1]["_meta"] = {"x.example/at": {"of": "definition"}}
    return found


def send(message: dict[str, Any]) -> None:
    """One line."""
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def say(method: str, **params: Any) -> None:
    """A notification."""
    send({"method": method, "params": params})


def give(id: Any, **result: Any) -> None:
    """A result."""
    send({"id": id, "result": {"resultType": "complete", **result} if speaks["era"] != "2025" else result})


def text(id: Any, said: str, **more: Any) -> None:
    """A tool's result."""
    give(id, content=[{"type": "text", "text": said}], **more)


def fail(id: Any, code: int, message: str, data: Any = None) -> None:
    """An error of the protocol."""
    send({"id": id, "error": {"code": code, "message": message, "data": data}})


def progress(request: dict[str, Any], number: Any, **more: Any) -> None:
    """Progress of a request, if it has a token."""
    token = request["params"].get("_meta", {}).get("progressToken")
    if token is not None:
        say("notifications/progress", progressToken=token, progress=number, **more)


def ask(request: dict[str, Any], method: str, params: dict[str, Any], then: Any) -> None:
    """Ask the client in the way of the era; `then` gets the result, or the error's message."""
    given = request["params"].get("inputResponses")
    if speaks["era"] == "2025":
        waiting["q" + str(request["id"])] = then
        send({"id": "q" + str(request["id"]), "method": method, "params": params})
    elif given is None:
        wish = {"it": {"method": method, "params": params}}
        send({"id": request["id"], "result": {"resultType": "input_required", "inputRequests": wish}})
    else:
        then(given["it"])
