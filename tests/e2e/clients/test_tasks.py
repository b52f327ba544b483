"""Tasks, and calls whose callers or gateways are killed, with the official clients and by hand."""

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final
from urllib.request import Request, urlopen

import pytest
from fastmcp import Client

from tests.e2e.clients.test_typescript_1 import RUN_S, modules, node
from tests.e2e.gateway import TOOLS, Gateway, revive, until
from tests.e2e.npm import package
from tests.e2e.raw_client import Http, Message, call, events, last, modern, request

TASK_TOOLS: Final = TOOLS.parent / "clients" / "task_tools.py"
TASKS: Final = "io.modelcontextprotocol/tasks"
ABLE: Final[Message] = {"elicitation": {}, "extensions": {TASKS: {}}}
KEY: Final = "dev.afoot/idempotency"
ERAS: Final = {"auto": "2026-07-28", "legacy": "2025-11-25"}
EXTENSION: Final = TOOLS.with_name("tasks.mjs")
OLDER: Final = TOOLS.with_name("tasks1.mjs")
RELATED: Final = "io.modelcontextprotocol/related-task"

pytestmark = pytest.mark.timeout(90)


@pytest.fixture
def mortal(tmp_path: Path) -> Iterator[Gateway]:
    """A gateway that a test may kill and start again, on the same port or another."""
    gateway = Gateway(tmp_path / "mortal", {"drain_s": 0.2}, [TASK_TOOLS])
    gateway.start()
    yield gateway
    if gateway.process.poll() is None:
        gateway.kill()


def typescript(gateway: Gateway, script: Path = EXTENSION, **plan: Any) -> Message:
    """What the TypeScript client saw; fails with what it said if it does not end well."""
    package("@modelcontextprotocol/ext-tasks")
    command = [node(), str(script), str(modules()), json.dumps({"url": gateway.url, **plan})]
    done = subprocess.run(command, capture_output=True, text=True, timeout=RUN_S, check=False)
    if done.returncode != 0 or not done.stdout.startswith("{"):
        pytest.fail(f"exit {done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}")
    found: Message = json.loads(done.stdout)
    return found


def get(http: Http, task: str) -> Message:
    """A task as it is, on 2026-07-28."""
    found: Message = http.ask(modern("tasks/get", {"taskId": task}, capabilities=ABLE))["result"]
    return found


def progress(task: Message) -> float:
    """How far it is, in numbers."""
    return float(task["_meta"]["dev.afoot/progress"].get("progress", 0))


@pytest.mark.parametrize("era", ERAS)
def test_the_typescript_client_runs_asks_and_cancels_tasks(
    era: str, mortal: Gateway, fresh: Callable[[], str]
) -> None:
    """H3: created, polled with live words, a question answered, cancelled; listed where the era has it."""
    tag = fresh()
    seen = typescript(mortal, era=era, do="all", tag=tag)
    assert seen["protocol"] == ERAS[era]
    marched = seen["marched"]
    assert (marched["kind"], marched["status"]) == ("task", "completed")
    assert marched["result"]["content"][0]["text"] == "marched 30"
    lines = [line for _, line, _ in marched["seen"] if line and "/30 · step " in line]
    assert len({line.partition("/")[0] for line in lines}) >= 2, marched["seen"]
    assert seen["asked"]["result"]["structuredContent"] == {"action": "accept", "content": {"side": "left"}}
    assert seen["questions"] == ["Left or right?"]
    assert seen["strolled"] == "cancelled"
    mortal.until_marked(f"{tag}-stroll", "cancelled")
    if era == "legacy":
        assert sorted(seen["listed"]) == ["cancelled", "completed", "completed"]


def test_the_older_typescript_client_hears_progress_by_the_token_of_its_request(
    mortal: Gateway, fresh: Callable[[], str]
) -> None:
    """H3: it has the tasks of 2025-11-25 itself; questions and results say their task."""
    seen = typescript(mortal, OLDER, tag=fresh())
    marched, answered = seen["marched"], seen["answered"]
    assert marched["result"]["content"][0]["text"] == "marched 30"
    numbers = [number for number, _ in marched["progress"]]
    assert len(numbers) >= 2 and numbers == sorted(set(numbers)) and numbers[-1] <= 30
    assert all(meta[RELATED]["taskId"] == marched["task"]["taskId"] for _, meta in marched["progress"])
    assert marched["task"]["ttl"] >= 60_000 and marched["statuses"][-1] == "completed"
    assert answered["result"]["structuredContent"]["content"] == {"side": "left"}
    assert [one["_meta"][RELATED]["taskId"] for one in seen["asked"]] == [answered["task"]["taskId"]]
    assert [one["taskId"] for one in seen["listed"]] == [
        answered["task"]["taskId"],
        marched["task"]["taskId"],
    ]


def test_the_typescript_client_finds_a_task_again_after_a_crash(
    mortal: Gateway, fresh: Callable[[], str]
) -> None:
    """D2, H4: another process of it, another process of the gateway; the tool goes on from its checkpoint."""
    tag = fresh()
    started = typescript(mortal, era="auto", do="start", tag=tag)
    with Http(mortal.url) as http:
        until(lambda: progress(get(http, started["reference"]["taskId"])) >= 3, "some steps")
    revive(mortal)
    found = typescript(mortal, era="auto", do="find", tag=tag, reference=started["reference"])["steady"]
    assert found["result"]["content"][0]["text"] == "steady to 40"
    first, second = mortal.marks(tag)
    assert first == "from 0" and int(second.removeprefix("from ")) >= 2


def test_a_session_finds_its_task_again_after_a_crash(mortal: Gateway, fresh: Callable[[], str]) -> None:
    """D2, H4: in 2025-11-25, by the id of the session and that of the task."""
    tag = fresh()
    params: Message = {"name": "steady", "arguments": {"steps": 30, "tag": tag}, "task": {}}
    with Http(mortal.url) as http:
        http.shake_hands()
        task = {"taskId": http.ask(request("tools/call", params))["result"]["task"]["taskId"]}
        until(lambda: progress(http.ask(request("tasks/get", task))["result"]) >= 3, "some steps")
        session = http.session
    revive(mortal)
    with Http(mortal.url) as http:
        http.session = session
        result = http.ask(request("tasks/result", task))["result"]
        listed = http.ask(request("tasks/list"))["result"]["tasks"]
    assert [one["taskId"] for one in listed] == [task["taskId"]]
    assert result["content"][0]["text"] == "steady to 30" and len(mortal.marks(tag)) == 2


def test_a_session_that_was_ended_is_unknown_after_a_crash_too(mortal: Gateway) -> None:
    """D2, S3: 404, while one that was not ended goes on."""
    sessions: list[str] = []
    for _ in range(2):
        with Http(mortal.url) as http:
            http.shake_hands()
            assert http.session is not None
            sessions.append(http.session)
    ending = Request(mortal.url, method="DELETE", headers={"mcp-session-id": sessions[0]})
    with urlopen(ending, timeout=10) as response:
        assert response.status == 200
    revive(mortal)
    for session, status in zip(sessions, (404, 200), strict=True):
        with Http(mortal.url) as http:
            http.session = session
            assert http.post(request("ping")).status == status


def test_a_task_that_may_not_run_twice_says_so(mortal: Gateway, fresh: Callable[[], str]) -> None:
    """U4, H4, D2: failed, with what is known of it; and it did not run again."""
    tag = fresh()
    with Http(mortal.url) as http:
        made = http.ask(call("march", {"steps": 600, "tag": tag}, capabilities=ABLE))["result"]
        assert made["resultType"] == "task"
        until(lambda: progress(get(http, made["taskId"])) >= 3, "some steps")
    revive(mortal)
    with Http(mortal.url) as http:
        found = get(http, made["taskId"])
    assert found["status"] == "failed" and "the gateway died" in found["error"]["message"]
    assert found["error"]["data"]["dev.afoot/error"]["code"] == "uncertain"
    assert mortal.marks(tag) == ["started"]


CALLER = """
import asyncio, sys
from mcp import Client

async def main(url: str, tag: str) -> None:
    async with Client(url) as client:
        async def told(progress: float, total: float | None, message: str | None) -> None:
            print(progress, flush=True)
        await client.call_tool("march_on", {"tag": tag}, progress_callback=told)

asyncio.run(main(*sys.argv[1:]))
"""


def test_the_progress_of_a_detached_call_is_watched_after_its_caller_was_killed(
    mortal: Gateway, fresh: Callable[[], str]
) -> None:
    """X3, H3: the official client is killed; a second one sees the numbers rise, and gets the result."""
    tag = fresh()
    caller = subprocess.Popen(
        [sys.executable, "-c", CALLER, mortal.url, tag], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    try:
        lines = caller.stdout
        assert lines is not None
        until(lambda: float(lines.readline()) >= 3, "some steps", 20)
    finally:
        caller.send_signal(signal.SIGKILL)
        caller.communicate()
    assert caller.returncode == -signal.SIGKILL  # it did not end by itself
    (task,) = [one["id"] for one in calls(mortal) if one["tool"] == "march_on"]
    with Http(mortal.url) as http:
        seen = [progress(get(http, task))]

        def look() -> bool:
            seen.append(progress(get(http, task)))
            return seen[-1] >= seen[0] + 5

        until(look, "more steps")
        assert seen == sorted(seen) and "/1000 · step " in get(http, task)["statusMessage"]
        (mortal.folder / f"{tag}-enough").touch()
        until(lambda: get(http, task)["status"] == "completed", "its end", 20)
        done = get(http, task)
    assert int(done["result"]["content"][0]["text"].removeprefix("marched ")) >= seen[-1]
    assert mortal.marks(tag) == ["started", "done"]


def calls(gateway: Gateway) -> list[Message]:
    """The calls that live, as the operator sees them."""
    done = subprocess.run(
        [sys.executable, "-m", "afoot", "calls", "--json"],
        env=gateway.environment, capture_output=True, text=True, timeout=30, check=True,
    )  # fmt: skip
    found: list[Message] = [json.loads(line) for line in done.stdout.splitlines() if line.strip()]
    return found


def test_the_same_key_is_the_same_call_also_after_a_crash(mortal: Gateway, fresh: Callable[[], str]) -> None:
    """D2: a repeat joins what runs, and after a crash it finds what was made of it."""
    tag, again = fresh(), {KEY: "once", "progressToken": "t"}
    with Http(mortal.url) as first, Http(mortal.url) as second:
        first.put(call("march", {"steps": 15, "tag": tag}, **again))
        mortal.until_marked(tag, "started")
        assert second.ask(call("march", {"steps": 15, "tag": tag}, **again))["result"]["content"]
        result = last(first.take())["result"]
    assert mortal.marks(tag) == ["started", "done"]
    revive(mortal)
    with Http(mortal.url) as http:
        third = http.ask(call("march", {"steps": 15, "tag": tag}, **again))["result"]
        other = http.ask(call("march", {"steps": 16, "tag": tag}, **again))
    assert third["_meta"]["dev.afoot/call"] == result["_meta"]["dev.afoot/call"]
    assert other["error"]["code"] == -32602 and mortal.marks(tag) == ["started", "done"]


def test_a_broken_stream_goes_on_at_the_next_gateway(mortal: Gateway, fresh: Callable[[], str]) -> None:
    """D2, H2: by the id of the event that came last; the call ran again, as it is safe."""
    tag = fresh()
    with Http(mortal.url) as http:
        http.shake_hands()
        params = {"name": "steady", "arguments": {"steps": 30, "tag": tag}, "_meta": {"progressToken": "t"}}
        http.put(request("tools/call", params, 7))
        place, count = "", 0
        stream = http.take()
        while count < 4:
            line = stream.readline().decode()
            place = line[4:].strip() if line.startswith("id: ") else place
            count += "notifications/progress" in line
        session = http.session
    revive(mortal)
    with Http(mortal.url) as http:
        http.session = session
        resumed = http.resume(place)
        assert resumed.status == 200
        frames = [one for one in events(resumed) if isinstance(one, dict)]
    assert frames[-1]["id"] == 7 and frames[-1]["result"]["content"][0]["text"] == "steady to 30"
    numbers = [one["params"]["progress"] for one in frames if one.get("method") == "notifications/progress"]
    assert numbers == sorted(set(numbers)) and len(mortal.marks(tag)) == 2


@pytest.mark.parametrize("mode", ["2026-07-28", "legacy"])
def test_clients_that_know_no_tasks_just_get_the_result(
    mode: str, mortal: Gateway, fresh: Callable[[], str]
) -> None:
    """H3: FastMCP's client, whose extension for tasks is another package."""

    async def scene() -> str:
        async with Client(mortal.url, mode=mode) as client:
            done = await client.call_tool("march", {"steps": 3, "tag": fresh()})
            return str(getattr(done.content[0], "text", ""))

    assert asyncio.run(scene()) == "marched 3"
