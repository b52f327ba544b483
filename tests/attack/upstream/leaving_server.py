"""An MCP server on stdio that leaves processes behind, each in a session of its own.

Run as `python leaving_server.py FOLDER HOW`. The pids are in the file `left`. HOW is `child`, `daemon` (its
parent has ended, too) or `bare` (a child with an empty environment).
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

SLEEP = ["/bin/sh", "-c", "trap '' HUP TERM; while :; do sleep 5; done"]
FOLDER, HOW = Path(sys.argv[1]), sys.argv[2]


def leave() -> None:
    """Start a process that no signal to this process's group reaches."""
    if HOW == "daemon" and os.fork():
        os.wait()
        return
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    environment = {} if HOW == "bare" else None
    left = subprocess.Popen(SLEEP, start_new_session=True, env=environment, **quiet)
    (FOLDER / "left").write_text(str(left.pid))
    if HOW == "daemon":
        os._exit(0)


def answer(method: str) -> dict[str, Any]:
    if method == "initialize":
        info = {"name": "leaving", "version": "1"}
        return {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info}
    return {"tools": []} if method == "tools/list" else {}


leave()
for line in sys.stdin:
    request = json.loads(line)
    if "id" in request:
        print(
            json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": answer(request["method"])}),
            flush=True,
        )
