"""A server that writes without end: to its stderr, as log messages, or as pages of its list of tools."""

import json
import sys

KIND = sys.argv[1]
TOOL = {"name": "ping", "inputSchema": {"type": "object"}}


def answer(request: dict[str, object], result: object) -> None:
    print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)


def flood() -> None:
    if KIND in ("short stderr", "short stdout"):
        stream = sys.stderr if KIND == "short stderr" else sys.stdout
        stream.write("x\n" * 500_000)
        return
    for number in range(20_000):
        line = f"{number} ".ljust(500, "y")
        if KIND == "stderr":
            print(line, file=sys.stderr)
        elif KIND == "logs":
            params = {"level": "info", "data": line}
            print(json.dumps({"jsonrpc": "2.0", "method": "notifications/message", "params": params}))
    sys.stdout.flush()


for text in sys.stdin:
    message = json.loads(text)
    method = message.get("method")
    if method == "initialize":
        able: dict[str, object] = {"tools": dict[str, str](), "logging": dict[str, str]()}
        info = {"name": "flooding", "version": "1"}
        answer(message, {"protocolVersion": "2025-11-25", "capabilities": able, "serverInfo": info})
    elif method == "tools/list" and KIND == "list":
        page = int(message.get("params", {}).get("cursor") or 0)
        tools = [{**TOOL, "name": f"t{page}", "description": "x" * 1_000_000}]
        answer(message, {"tools": tools, "nextCursor": str(page + 1)})
    elif method == "tools/list" and KIND == "many":
        answer(message, {"tools": [{}, *({**TOOL, "name": f"t{number}"} for number in range(20_000))]})
    elif method == "tools/list" and KIND == "tiny":
        answer(message, {"tools": [0] * 600_000})
    elif method == "tools/list":
        answer(message, {"tools": [TOOL]})
    elif method == "tools/call":
        flood()
        answer(message, {"content": []})
    elif "id" in message:
        error = {"code": -32601, "message": "no such method"}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": error}), flush=True)
