"""An MCP server that tells everything it was given: on stderr, in logs, progress, errors and last words."""

import json
import os
import sys
from typing import Any

SCHEMA = {"type": "object", "properties": {"door": {"type": "string", "x-secret": True}}}
TOOLS = [{"name": name, "inputSchema": SCHEMA} for name in ("leak", "leak_fault", "leak_and_die")]
STARTED = f"{sys.argv} {dict(os.environ)}"


def say(**message: Any) -> None:
    """Write a message."""
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def call(params: dict[str, Any], number: object) -> None:
    """Answer a call, after telling its arguments in every way there is."""
    given = json.dumps(params["arguments"])
    print(f"called with {given}", file=sys.stderr, flush=True)
    print("own stderr: secret=plantedvalueownstderrzq", file=sys.stderr, flush=True)
    token = params.get("_meta", {}).get("progressToken")
    if token is not None:
        told = f"with {STARTED} {given} api_key=plantedvalueownprogresszq"
        say(method="notifications/progress", params={"progressToken": token, "progress": 1, "message": told})
    data = {"text": f"{STARTED} {given}", "password": "plantedvalueownlogzq"}
    say(method="notifications/message", params={"level": "error", "data": data})
    say(
        method="notifications/message",
        params={"level": "error", "data": f"{STARTED} token: plantedvalueownlinezq"},
    )
    if params["name"] == "leak_and_die":
        print(f"dying {STARTED} {given} password=plantedvalueownlastwordszq", file=sys.stderr, flush=True)
        sys.exit(3)
    if params["name"] == "leak_fault":
        text = f"{STARTED} {given} password=plantedvalueownfaultzq"
        say(id=number, error={"code": -32000, "message": text})
        return
    say(id=number, result={"content": [{"type": "text", "text": "done"}]})


def main() -> None:
    """Answer until stdin ends."""
    print(f"started {STARTED}", file=sys.stderr, flush=True)
    for line in sys.stdin:
        message = json.loads(line)
        number, method = message.get("id"), message.get("method")
        if method == "initialize":
            info = {"name": "leaky", "version": "1"}
            can: dict[str, Any] = {"tools": {}, "logging": {}}
            say(id=number, result={"protocolVersion": "2025-11-25", "capabilities": can, "serverInfo": info})
        elif method == "tools/list":
            say(id=number, result={"tools": TOOLS})
        elif method == "tools/call":
            call(message["params"], number)
        elif number is not None:
            say(id=number, error={"code": -32601, "message": "not known here"})


if __name__ == "__main__":
    main()
