"""Tasks of the small server of our own, in the way of each era: `job` runs only as a task.

Its argument `steps` has the states of the task, one for each `tasks/get`; the last one stays. A state with
`input_required` stays until it is answered. The result says which requests there were.
"""

import sys
import time
from typing import Any

from tests.providers.upstream.raw_server_rpc import SURE, fail, give, progress, say, send, speaks, waiting

EXTENSION = "io.modelcontextprotocol/tasks"
RELATED = "io.modelcontextprotocol/related-task"
QUESTION: dict[str, Any] = {"message": "sure?", "requestedSchema": SURE}
task: dict[str, Any] = {}  # the only one
asked: list[tuple[str, float]] = []  # the requests about it, and when they came


def job(request: dict[str, Any], arguments: dict[str, Any]) -> None:
    """Make a task, or refuse to do without."""
    params, is_old = request["params"], speaks["era"] == "2025"
    can = params["_meta"].get("io.modelcontextprotocol/clientCapabilities", {})
    if is_old and "task" not in params:
        fail(request["id"], -32601, "tool job runs only as a task")
    elif not is_old and EXTENSION not in can.get("extensions", {}):
        needed: dict[str, Any] = {"requiredCapabilities": {"extensions": {EXTENSION: {}}}}
        fail(request["id"], -32021, "Missing required client capability", needed)
    else:
        task.update(arguments, request=request, steps=list(arguments["steps"]))
        asked.append(("tools/call", time.monotonic()))
        if is_old:
            send({"id": request["id"], "result": {"task": state()}})
            progress(request, 1, total=4, message="one")  # its token stays valid
        else:
            send({"id": request["id"], "result": {"resultType": "task", **state()}})


def tell_listener() -> None:
    """Tell of the task as soon as somebody listens."""
    if "push" in task:
        say("notifications/tasks", **{**state(), **task["push"]})


def about_task(request: dict[str, Any]) -> None:
    """Answer a request about the task."""
    method, id, params = request["method"], request["id"], request["params"]
    asked.append((method, time.monotonic()))
    if params["taskId"] != "t1" or task.get("forgotten"):
        fail(id, -32602, "no such task")
    elif method == "tasks/get":
        if len(task["steps"]) > 1 and task["steps"][0].get("status") != "input_required":
            task["steps"].pop(0)
        give(id, **state())
    elif method == "tasks/update":
        task["answers"] = params["inputResponses"]
        task["steps"].pop(0)
        give(id)
    elif method == "tasks/cancel":
        print("the task was cancelled", file=sys.stderr, flush=True)
        give(id)
    elif task["steps"][0].get("status") == "input_required":
        ask(id)
    else:
        give(id, **result())


def ask(id: Any) -> None:
    """Ask while `tasks/result` waits, and answer that when the answer is here."""

    def then(answer: Any) -> None:
        task["answers"] = answer
        task["steps"].pop(0)
        give(id, **result())

    waiting["task"] = then
    params = {**QUESTION, "_meta": {RELATED: {"taskId": "t1"}}}
    send({"id": "task", "method": "elicitation/create", "params": params})


def state() -> dict[str, Any]:
    """The task as it is now, with the parts that its status needs."""
    now: dict[str, Any] = {"status": "working", **task["steps"][0]}
    names = ("ttl", "pollInterval") if speaks["era"] == "2025" else ("ttlMs", "pollIntervalMs")
    fields = {"taskId": "t1", "createdAt": "", names[0]: None, names[1]: task.get("poll", 20), **now}
    if speaks["era"] != "2025" and now["status"] == "input_required":
        fields["inputRequests"] = {"q": {"method": "elicitation/create", "params": QUESTION}}
    elif speaks["era"] != "2025" and now["status"] == "completed":
        fields["result"] = result()
    elif speaks["era"] != "2025" and now["status"] == "failed":
        fields["error"] = {"code": -32603, "message": "the disk is full"}
    return fields


def result() -> dict[str, Any]:
    """The result of the call, with what was asked and answered on the way to it."""
    pauses = [round(b[1] - a[1], 3) for a, b in zip(asked, asked[1:], strict=False)]
    seen = {"asked": [method for method, _ in asked], "answers": task.get("answers"), "pauses": pauses}
    return {"content": [{"type": "text", "text": "done"}], "structuredContent": seen}
