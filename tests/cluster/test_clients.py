"""Official clients of both eras behind a load balancer that sends every request to another gateway."""

import asyncio
import json
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import Any, Final, Literal

import mcp_types as types
import pytest
from mcp import Client
from mcp.client.extension import ClaimContext, ClientExtension, ResultClaim

from tests.cluster.redis_server import RedisServer
from tests.cluster.round_robin import RoundRobin, round_robin
from tests.cluster.test_gateways import gateway
from tests.e2e.clients.test_tasks import TASK_TOOLS, TASKS, typescript
from tests.e2e.clients.test_typescript_1 import RUN_S, modules, node
from tests.e2e.gateway import Gateway, until
from tests.e2e.npm import package
from tests.e2e.official_client import ERAS, Peers, Seen, accept, peers, text

TYPESCRIPT_ERAS: Final = {"auto": "2026-07-28", "legacy": "2025-11-25"}
ANSWERS: Final = {"What is your name?": {"name": "Ann"}, "How old are you?": {"age": 40}}
_numbers = count(1)

pytestmark = pytest.mark.timeout(90)


class Behind:
    """Two gateways, and the balancer before them."""

    def __init__(self, gateways: Sequence[Gateway], balancer: RoundRobin, folder: Path) -> None:
        self.gateways = gateways
        self.balancer = balancer
        self.front = Gateway(folder)  # as clients know it: nothing but an address
        self.front.url = balancer.url

    def until_marked(self, tag: str, text: str) -> None:
        """Wait for a mark of a tool, at whichever gateway it runs."""
        until(lambda: any(line.startswith(text) for line in self.marks(tag)), f"{tag}: {text}")

    def marks(self, tag: str) -> list[str]:
        """The marks of a tool at all gateways."""
        return [line for one in self.gateways for line in one.marks(tag)]

    def has_shared_out(self, at_least: int) -> bool:
        """Whether every request went to another gateway than the one before."""
        sent = self.balancer.sent()
        counts = [sent[f"all/gateway{number}"] for number in range(len(self.gateways))]
        return sum(counts) >= at_least and max(counts) - min(counts) <= 1


@pytest.fixture(scope="module")
def behind(redis: RedisServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Behind]:
    """Two gateways of one cluster, which clients reach through a balancer alone."""
    folder = tmp_path_factory.mktemp("behind")
    with ExitStack() as stack:
        gateways = list[Gateway]()
        for number in (1, 2):
            gateways.append(gateway(folder, redis, number, TASK_TOOLS))
            stack.callback(gateways[-1].stop)
        balancer = stack.enter_context(round_robin(folder, gateways))
        yield Behind(gateways, balancer, folder / "front")


@pytest.fixture(scope="module")
def clients(behind: Behind) -> Iterator[Peers]:
    """Python clients of both eras."""
    with peers({"http": behind.front}) as found:
        yield found


@pytest.fixture
def tag() -> str:
    """A tag that no other test uses."""
    return f"tag{next(_numbers)}"


@pytest.fixture(params=ERAS)
def era(request: pytest.FixtureRequest) -> str:
    """One of both."""
    return str(request.param)


def test_progress_comes_in_order(era: str, clients: Peers, behind: Behind) -> None:
    """D1, P6: all of it, whichever gateway the call is sent to."""
    peer = clients("http", era)
    for _ in range(4):
        seen: Seen = []
        assert text(peer.call("count_up", seen, n=6)) == "counted to 6"
        numbers = [one[0] for one in seen]  # under load a reading may replace the one before it
        assert numbers == sorted(set(numbers)) and set(numbers) <= {1, 2, 3, 4, 5, 6} and len(seen) >= 3
    assert behind.has_shared_out(4)


def test_questions_are_answered_at_another_gateway(
    era: str, clients: Peers, behind: Behind, tag: str
) -> None:
    """D1, Q1: the answer is a request of its own, or a retry; the tool runs once."""
    peer = clients("http", era)
    peer.reply = lambda message: accept(**ANSWERS[message])
    for turn in range(3):
        result = peer.call("ask_two_in_turn", tag=f"{tag}-{turn}")
        assert "Ann" in text(result) and "40" in text(result), result
        assert peer.asked == list(ANSWERS) and behind.marks(f"{tag}-{turn}").count("ran") == 1
    assert behind.has_shared_out(9)


def test_a_cancel_reaches_the_gateway_of_its_call(era: str, clients: Peers, behind: Behind, tag: str) -> None:
    """D1, X1: it closes the stream of its request, or comes as a message of its own to the other gateway."""
    peer = clients("http", era)

    async def cancel_at_first_report(number: int) -> None:
        started = asyncio.Event()

        async def noted(progress: float, total: float | None, message: str | None) -> None:
            started.set()

        arguments = {"tag": f"{tag}-{number}"}
        call = asyncio.create_task(peer.client.call_tool("linger", arguments, progress_callback=noted))
        await started.wait()
        call.cancel()
        await asyncio.wait([call])

    for number in range(3):
        peer.run(lambda number=number: cancel_at_first_report(number))
        behind.until_marked(f"{tag}-{number}", "cancelled: ")


class _Task(types.Result):
    """The result that creates a task on 2026-07-28."""

    result_type: Literal["task"] = "task"
    task_id: str


class _State(types.Result):
    """A task as it is polled."""

    status: str
    result: dict[str, Any] | None = None


class _Tasks(ClientExtension):
    """The extension for tasks: it polls until they end."""

    identifier = TASKS

    def claims(self) -> Sequence[ResultClaim[Any]]:
        return [ResultClaim(result_type="task", model=_Task, resolve=self._follow)]

    async def _follow(self, task: _Task, context: ClaimContext) -> types.CallToolResult:
        state = await poll(context.session, task.task_id)
        return types.CallToolResult.model_validate(state.result)


class _GetTask(types.Request[dict[str, Any], Literal["tasks/get"]]):
    """The request that polls a task, which is named in a header, too."""

    name_param = "taskId"

    method: Literal["tasks/get"] = "tasks/get"
    params: dict[str, Any]


async def poll(session: Any, task: str) -> _State:
    """Ask for a task until it has ended; raises AssertionError where it fails."""
    while True:
        state: _State = await session.send_request(_GetTask(params={"taskId": task}), _State)
        if state.status not in ("working", "input_required"):
            assert state.status == "completed", state
            return state
        await asyncio.sleep(0.1)


async def test_a_task_is_polled_at_every_gateway(behind: Behind, tag: str) -> None:
    """D1, D2: it is created at one of them, and asked for at all. This client has no tasks of 2025-11-25."""
    async with Client(behind.front.url, mode="2026-07-28", extensions=[_Tasks()]) as client:
        result = await client.call_tool("march", {"steps": 8, "tag": tag})
    assert text(result) == "marched 8" and behind.marks(tag) == ["started", "done"]
    assert behind.has_shared_out(5)


@pytest.mark.parametrize("era", TYPESCRIPT_ERAS)
def test_the_typescript_client_sees_no_difference(era: str, behind: Behind, tag: str) -> None:
    """D1, P6, Q1, X1: progress, questions and cancels, while every request goes to another gateway."""
    seen = run_typescript(behind, era, tag)
    assert seen["protocol"] == TYPESCRIPT_ERAS[era] and "linger" in seen["tools"]
    for counted in seen["counted"]:
        shown = counted["progress"]
        assert counted["result"]["content"][0]["text"] == "counted to 8"
        # Under load a reading may replace the one before it, and this client drops progress that stands in
        # one chunk with the result.
        numbers = [n for n, *_ in shown]
        assert numbers == sorted(set(numbers)) and len(numbers) >= 4
        assert shown == [[n, 8, f"step {n}"] for n in numbers]
    for turn, asked in enumerate(seen["asked"], 1):
        told = json.dumps(asked["result"])
        assert "Ann" in told and "40" in told and behind.marks(f"{tag}-ask-{turn}").count("ran") == 1
    assert seen["questions"] == [*ANSWERS, *ANSWERS]
    for turn, aborted in enumerate(seen["aborted"], 1):
        assert "enough" in aborted["message"]
        behind.until_marked(f"{tag}-abort-{turn}", "cancelled: ")
    assert behind.has_shared_out(12)


@pytest.mark.parametrize("era", TYPESCRIPT_ERAS)
def test_the_typescript_client_runs_tasks(era: str, behind: Behind, tag: str) -> None:
    """D1, D2, H3: a task is created, polled, asked, answered and cancelled, each at another gateway."""
    seen = typescript(behind.front, era=era, do="all", tag=tag)
    assert seen["protocol"] == TYPESCRIPT_ERAS[era]
    assert (seen["marched"]["kind"], seen["marched"]["status"]) == ("task", "completed")
    assert seen["marched"]["result"]["content"][0]["text"] == "marched 30"
    assert seen["asked"]["result"]["structuredContent"] == {"action": "accept", "content": {"side": "left"}}
    assert seen["questions"] == ["Left or right?"] and seen["strolled"] == "cancelled"
    behind.until_marked(f"{tag}-stroll", "cancelled")
    assert behind.marks(tag) == ["started", "done"] and behind.has_shared_out(10)


def run_typescript(behind: Behind, era: str, tag: str) -> dict[str, Any]:
    """Run the TypeScript client once; fails with what it said if it does not end well."""
    package("@modelcontextprotocol/client")
    plan = {"url": behind.front.url, "era": era, "tag": tag}
    script = Path(__file__).with_name("clients.mjs")
    done = subprocess.run(
        [node(), str(script), str(modules()), json.dumps(plan)],
        capture_output=True, text=True, timeout=2 * RUN_S, check=False,
    )  # fmt: skip
    if done.returncode != 0 or not done.stdout.startswith("{"):
        pytest.fail(f"{era}: exit {done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found
