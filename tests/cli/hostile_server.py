"""An MCP server of a few lines whose every word could steer a terminal; started by tests."""

import json
import sys
from typing import Any

NASTY = "a\x1b[2Jb\x1b]0;owned\x07c\x9b1md\u202ee\u200bf\rg\u2066h\x00i\u3164j\x7fk\u2028l\U000e0041m"
# What must never come out as it is; a line end and a tab may stand in a result.
STEERING = set(NASTY) - set("abcdefghijklmowned0123456789;[]JlAm\r\n") | {"\r"}
SCHEMA = {
    "type": "object",
    "properties": {NASTY: {"type": "string", "description": NASTY, "enum": [NASTY], "default": NASTY}},
}
TOOLS = [
    {"name": name, "title": NASTY, "description": f"{NASTY}\n{NASTY}", "inputSchema": SCHEMA}
    for name in ("nasty_ok", "nasty_error", "nasty_fault", "nasty_progress")
]


def answer(message: dict[str, Any]) -> dict[str, Any]:
    """What it says to a request."""
    match message:
        case {"method": "initialize"}:
            info = {"name": NASTY, "version": NASTY}
            return {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info}
        case {"method": "tools/list"}:
            return {"tools": TOOLS}
        case {"method": "tools/call", "params": {"name": str(name)}}:
            if name == "nasty_fault":
                raise ValueError(NASTY)
            link = {"type": "resource_link", "uri": f"file:///{NASTY}", "name": NASTY}
            image = {"type": "image", "mimeType": NASTY, "data": "AAAA"}
            text = {"type": "text", "text": NASTY}
            return {"content": [text, link, image], "isError": name == "nasty_error"}
    raise ValueError(NASTY)


def main() -> None:
    """Answer until stdin ends."""
    print(NASTY, file=sys.stderr, flush=True)
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message:
            continue
        told: dict[str, Any] = {"jsonrpc": "2.0", "id": message["id"]}
        token = message.get("params", {}).get("_meta", {}).get("progressToken")
        if token is not None:
            params = {"progressToken": token, "progress": 1, "total": 2, "message": NASTY}
            sent = {"jsonrpc": "2.0", "method": "notifications/progress", "params": params}
            print(json.dumps(sent), flush=True)
        try:
            told["result"] = answer(message)
        except ValueError as error:
            told["error"] = {"code": -32000, "message": str(error)}
        print(json.dumps(told), flush=True)


if __name__ == "__main__":
    main()
