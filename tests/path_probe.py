"""A program that serves one tool, calls it once over HTTP, and prints which functions that crossed."""

import asyncio
import json
import os
import socket
import sys
import threading
import time
from types import FrameType

from afoot import app, config

PACKAGE = f"{os.sep}src{os.sep}afoot{os.sep}"
META: dict[str, object] = {
    "progressToken": 5,
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}
BODY = json.dumps(
    {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "three", "_meta": META}}
).encode()
crossed: set[str] = set()


def note(frame: FrameType, event: str, _: object) -> None:
    """Remember a function of ours; what a comprehension does belongs to the function around it.

    The watchdog looks in twice a second, whatever is called.
    """
    code = frame.f_code
    is_ours = PACKAGE in code.co_filename and not code.co_name.startswith("<")
    if event == "call" and is_ours and not code.co_qualname.startswith("Watchdog."):
        crossed.add(f"{code.co_filename.split(PACKAGE)[1]}:{code.co_qualname}")


def call_once(client: socket.socket, port: int) -> bytes:
    """Make one call and read its whole answer."""
    head = (
        f"POST /mcp HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\ncontent-type: application/json\r\n"
        "accept: application/json, text/event-stream\r\nmcp-protocol-version: 2026-07-28\r\n"
        f"mcp-method: tools/call\r\nmcp-name: three\r\ncontent-length: {len(BODY)}\r\n\r\n"
    )
    client.sendall(head.encode() + BODY)
    answer = b""
    while not answer.endswith(b"0\r\n\r\n"):
        answer += client.recv(65536)
    return answer


def probe(loop: asyncio.AbstractEventLoop, port: int) -> None:
    """Call twice to warm up, then once under the profiler."""
    client = socket.create_connection(("127.0.0.1", port))
    for _ in range(2):
        call_once(client, port)
    time.sleep(0.3)  # until what the first calls left to do later is done
    loop.call_soon_threadsafe(sys.setprofile, note)
    answer = call_once(client, port)
    loop.call_soon_threadsafe(sys.setprofile, None)
    found = {"crossed": sorted(crossed), "notifications": answer.count(b"notifications/progress")}
    print(json.dumps(found), flush=True)
    os.kill(os.getpid(), 15)


def main(tools: str, store: str) -> None:
    """Serve the tools, and call one of them from a thread."""

    def started(address: object, *_: object) -> None:
        port = int(str(getattr(address, "mcp", "")).rsplit(":", 1)[1].partition("/")[0])
        threading.Thread(target=probe, args=(asyncio.get_running_loop(), port), daemon=True).start()

    settings = config.load(flags={"http": "127.0.0.1:0", "store": store}).settings
    app.run(app.Plan(settings, (tools,)), started)


if __name__ == "__main__":
    main(*sys.argv[1:])
