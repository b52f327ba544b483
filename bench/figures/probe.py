"""`python -m bench.figures.probe PATH FOLDER` calls a tool over HTTP and prints the functions it crossed.

PATH is `own` (a function of the gateway's), `proxied` (a tool of a server behind it, over stdio) or
`approved` (the same, after its caller was asked and has said yes). Each call is of 2026-07-28 and brings
three reports, with the history on. The gateway is started by its command line alone, so no module of it is
named here.
"""

import collections
import http.client
import json
import os
import runpy
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

PATHS = ("own", "proxied", "approved")
WARM, TRACED = 5, 5
START_S = 30.0
REST_S = 0.01  # a call's last facts are written after its answer
READ_S = 0.06  # before a yes: one that comes within 50 ms is no person's, and is not taken
PACKAGE = f"{os.sep}src{os.sep}afoot{os.sep}"
VERSION = "2026-07-28"
TOOL = "three"
TOOLS = '''"""A tool that reports three times."""

import asyncio
import afoot


@afoot.tool
async def three(ctx: afoot.Context) -> str:
    """Report three times."""
    for n in range(3):
        ctx.report(n + 1, 3, "step")
        await asyncio.sleep(0)
    return "done"
'''


class Tracer:
    """Functions of ours that were entered while it was on, in the thread of the event loop.

    A comprehension or lambda belongs to the function around it.
    """

    def __init__(self) -> None:
        self.is_on = False
        self.crossed: set[str] = set()

    def note(self, frame: FrameType, event: str, _: object) -> None:
        """Remember the function, as the profiler of the thread."""
        if event != "call" or not self.is_on:
            return
        code = frame.f_code
        if PACKAGE in code.co_filename and not code.co_name.startswith("<"):
            self.crossed.add(f"{code.co_filename.split(PACKAGE)[1]}:{code.co_qualname}")


class Caller:
    """One HTTP connection that calls the tool, and says yes when it is asked."""

    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=START_S)
        self.rounds = 0
        self.notifications = 0

    def close(self) -> None:
        """Close the connection; the next call opens another."""
        self._connection.close()

    def call(self) -> dict[str, Any]:
        """Make one call to its end, over as many rounds as it takes, and return its result.

        Raises RuntimeError if the call fails.
        """
        self.rounds = 0
        self.notifications = 0
        more: dict[str, Any] = {}
        while True:
            self.rounds += 1
            result = self._round(more)
            if result.get("isError"):
                raise RuntimeError(f"calling {TOOL}: {result['content']}")
            if "inputRequests" not in result:
                return result
            time.sleep(READ_S)
            yes = {"action": "accept", "content": {"decision": "run"}}
            more = {"requestState": result["requestState"]}
            more["inputResponses"] = {key: yes for key in result["inputRequests"]}

    def _round(self, more: dict[str, Any]) -> dict[str, Any]:
        """Send one request and read its whole answer."""
        prefix = "io.modelcontextprotocol/"
        meta: dict[str, Any] = {"progressToken": 5, f"{prefix}protocolVersion": VERSION}
        meta[f"{prefix}clientCapabilities"] = {"elicitation": {"form": {}}}
        params: dict[str, Any] = {"name": TOOL, "arguments": {}, "_meta": meta, **more}
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
        headers = {
            "content-type": "application/json",
            "accept": "application/json, text/event-stream",
            "mcp-protocol-version": VERSION,
            "mcp-method": "tools/call",
            "mcp-name": TOOL,
        }
        self._connection.request("POST", "/mcp", body, headers)
        *notes, answer = messages(self._connection.getresponse().read())
        self.notifications += sum(note.get("method") == "notifications/progress" for note in notes)
        if "result" not in answer:
            raise RuntimeError(f"calling {TOOL}: {answer}")
        return answer["result"]


def messages(answer: bytes) -> Iterator[dict[str, Any]]:
    """Yield the messages of an answer, which is JSON or a stream of events."""
    if answer.startswith(b"{"):
        yield json.loads(answer)
        return
    for line in answer.splitlines():
        if line.startswith(b"data:") and line[5:].strip():
            yield json.loads(line[5:])


def main(path: str, folder: str) -> None:
    """Serve in this thread and call from another; the answer goes to stdout, all else to stderr."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    tracer = Tracer()
    port = free_port()
    probing = threading.Thread(target=probe, args=(tracer, port, out), daemon=True)
    probing.start()
    sys.setprofile(tracer.note)
    sys.argv = ["afoot", *arguments(path, Path(folder), port)]
    runpy.run_module("afoot", run_name="__main__", alter_sys=True)


def arguments(path: str, folder: Path, port: int) -> list[str]:
    """Write the tools and the settings of a gateway; return its command line."""
    folder.mkdir(parents=True, exist_ok=True)
    tools = folder / "tools.py"
    tools.write_text(TOOLS)
    config = folder / "afoot.toml"
    config.write_text("progress_hz = 0\n")
    if path != "own":
        command = [sys.executable, "-m", "afoot", "serve", str(tools), "--stdio"]
        home = {"AFOOT_HOME": str(folder / "behind"), "AFOOT_PROGRESS_HZ": "0"}
        env = ", ".join(f"{key} = {json.dumps(value)}" for key, value in home.items())
        approval = "ask" if path == "approved" else "auto"
        server = f"command = {json.dumps(command[0])}\nargs = {json.dumps(command[1:])}\nenv = {{ {env} }}\n"
        config.write_text(f'progress_hz = 0\n[servers.behind]\n{server}approval = "{approval}"\n')
    os.environ["AFOOT_HOME"] = str(folder / "home")
    store = str(folder / "calls.db")
    own = (str(tools),) if path == "own" else ()
    return ["serve", *own, "--http", f"127.0.0.1:{port}", "--store", store, "--config", str(config)]


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def probe(tracer: Tracer, port: int, out: Any) -> None:
    """Call until everything is warm, then under the tracer; say what most of those calls crossed.

    Most, not all: a timer of the gateway's may fire within one of them, whatever is called.
    """
    try:
        caller = Caller(port)
        until_it_serves(caller)
        for _ in range(WARM):
            caller.call()
        crossed: collections.Counter[str] = collections.Counter()
        for _ in range(TRACED):
            time.sleep(REST_S)
            tracer.crossed.clear()
            tracer.is_on = True
            caller.call()
            time.sleep(REST_S)
            tracer.is_on = False
            crossed.update(tracer.crossed)
        found = {
            "crossed": sorted(name for name, times in crossed.items() if times > TRACED // 2),
            "notifications": caller.notifications,
            "rounds": caller.rounds,
            "packages": sorted({name.partition(".")[0] for name in sys.modules}),
        }
        print(json.dumps(found), file=out, flush=True)
    finally:
        os.kill(os.getpid(), signal.SIGTERM)


def until_it_serves(caller: Caller) -> None:
    """Return after the first call that succeeds: a server behind the gateway may take a moment longer."""
    deadline = time.monotonic() + START_S
    while True:
        try:
            caller.call()
            return
        except (OSError, RuntimeError, http.client.HTTPException):
            caller.close()
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


if __name__ == "__main__":
    main(*sys.argv[1:])
