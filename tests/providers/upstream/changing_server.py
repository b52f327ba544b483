"""A small MCP server on stdio whose tools are what a file says whenever they are listed.

Run as `python changing_server.py FOLDER`. In the folder, `tools.json` has the list, and `ran` gets a line
with the tool's title for each call. As long as `dies` has lines, a call takes the first one as the next
list, and the server dies.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

FOLDER = Path(sys.argv[1])


def tools() -> list[dict[str, Any]]:
    return json.loads((FOLDER / "tools.json").read_text())


def send(**message: Any) -> None:
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def call() -> dict[str, Any]:
    what = tools()[0]["title"]
    with (FOLDER / "ran").open("a") as ran:
        ran.write(f"{what}\n")
    dies = (FOLDER / "dies").read_text().splitlines() if (FOLDER / "dies").exists() else []
    if dies:
        (FOLDER / "dies").write_text("\n".join(dies[1:]))
        (FOLDER / "tools.json").write_text(dies[0])
        os._exit(1)
    return {"content": [{"type": "text", "text": what}]}


def answer(method: str) -> dict[str, Any]:
    if method == "initialize":
        info = {"name": "changing", "version": "1"}
        offered = {"tools": {"listChanged": True}}
        return {"protocolVersion": "2025-11-25", "capabilities": offered, "serverInfo": info}
    return {"tools": tools()} if method == "tools/list" else call() if method == "tools/call" else {}


for line in sys.stdin:
    request = json.loads(line)
    if "id" in request and request["method"] == "server/discover":
        send(id=request["id"], error={"code": -32601, "message": "unknown method"})
    elif "id" in request:
        send(id=request["id"], result=answer(request["method"]))
