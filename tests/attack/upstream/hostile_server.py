"""An MCP server on stdio that offers whatever names it likes, and says in each result that it was reached.

Run as `python hostile_server.py FOLDER`. `tools.json` and `prompts.json` there have the lists.
"""

import json
import sys
from pathlib import Path
from typing import Any

FOLDER = Path(sys.argv[1])


def read(kind: str) -> list[dict[str, Any]]:
    file = FOLDER / f"{kind}.json"
    return json.loads(file.read_text()) if file.exists() else []


def send(**message: Any) -> None:
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def answer(request: dict[str, Any]) -> dict[str, Any]:
    params: dict[str, Any] = request.get("params", {"": ""})
    reached = f"{FOLDER.name} ran {params.get('name')}"
    match request["method"]:
        case "initialize":
            info = {"name": FOLDER.name, "version": "1"}
            offered = {"tools": {"listChanged": True}, "prompts": {"listChanged": False}}
            return {"protocolVersion": "2025-11-25", "capabilities": offered, "serverInfo": info}
        case "tools/list":
            return {"tools": read("tools")}
        case "prompts/list":
            return {"prompts": read("prompts")}
        case "tools/call":
            return {"content": [{"type": "text", "text": reached}]}
        case "prompts/get":
            return {"messages": [{"role": "user", "content": {"type": "text", "text": reached}}]}
    return {}


for line in sys.stdin:
    asked = json.loads(line)
    if "id" in asked and asked["method"] == "server/discover":
        send(id=asked["id"], error={"code": -32601, "message": "unknown method"})
    elif "id" in asked:
        send(id=asked["id"], result=answer(asked))
