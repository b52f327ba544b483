"""A server of a few lines on stdin and stdout, started by tests: its tools are the words it is given."""

import json
import sys
import time
from typing import Any


def answer(message: dict[str, Any], names: list[str]) -> dict[str, Any]:
    """What it says to a request."""
    match message:
        case {"method": "initialize"}:
            info = {"name": "tiny", "version": "7"}
            return {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info}
        case {"method": "tools/list"}:
            schema = {"type": "object"}
            return {
                "tools": [{"name": name, "description": "Tiny.", "inputSchema": schema} for name in names]
            }
        case {"method": "tools/call", "params": {"name": str(name)}}:
            time.sleep(1.0 if name == "slow" else 0.0)
            said = {"type": "text", "text": f"{name} of {sys.argv[1]}"}
            return {"content": [said], "isError": name == "broken"}
    raise KeyError(message.get("method"))


def main(names: list[str]) -> None:
    """Answer until stdin ends."""
    print(f"tiny offers {', '.join(names)}", file=sys.stderr, flush=True)
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message:
            continue
        told: dict[str, Any] = {"jsonrpc": "2.0", "id": message["id"]}
        try:
            told["result"] = answer(message, names)
        except KeyError as unknown:
            told["error"] = {"code": -32601, "message": f"no {unknown}"}
        print(json.dumps(told), flush=True)


if __name__ == "__main__":
    main(sys.argv[2:])
