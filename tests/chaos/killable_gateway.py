"""A gateway whose process, children and servers are killed, and what is found afterwards."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tests.e2e.gateway import until
from tests.e2e.gateway_with_servers import Front, python
from tests.serve.api_client import Api

TOOLS = Path(__file__).parent / "tools.py"
ENDED_S = 30.0
LATE_S = 3.0  # until a call becomes a task, if its caller knows tasks
SAFE = {"idempotent": True}
SERVERS = {
    "far": ("far_safe", "far_unsafe", "far_risky"),
    "asking": ("asking_safe", "asking_unsafe"),
    "slow": ("slow_unsafe",),
}


class Ground:
    """One gateway after the other on one store."""

    def __init__(self, folder: Path, *more: str) -> None:
        """`more`: servers besides the one that is always there."""
        names = {
            name: python("tests.chaos.marking_server", name, E2E_MARKS=str(folder)) for name in ("far", *more)
        }
        if "asking" in names:
            names["asking"]["era"] = "2025-11-25"  # in which a server asks while its tool waits
        tools = {"far/far_safe": SAFE, "asking/asking_safe": SAFE, "far/far_risky": {"approval": "ask"}}
        # Some tools say nothing until they are let go, which may take a busy machine long.
        settings = {
            "restart_limit": 100,
            "tools": tools,
            "retain": {"bytes": 0},
            "idle_s": 290,
            "task_after_s": LATE_S,
        }
        self.front = Front(folder, names, settings, own=(TOOLS,))
        self.let_go("slow")

    @property
    def api(self) -> Api:
        """The API of the gateway that runs now."""
        return Api(self.front)

    def offered(self) -> set[str]:
        """The tools that it knows of."""
        return {tool["name"] for tool in self.api.get("/api/tools").body["tools"]}

    def begun(self, tag: str) -> list[int]:
        """The processes in which a tool with this tag began."""
        return [int(line.split()[-1]) for line in self.front.marks(tag) if line.startswith("begun")]

    def until_begun(self, tag: str, times: int = 1) -> int:
        """Wait until it has begun so often; in which process it did last."""
        until(lambda: len(self.begun(tag)) >= times, f"{tag} to begin", ENDED_S)
        return self.begun(tag)[-1]

    def let_go(self, tag: str) -> None:
        """Its tools end."""
        (self.front.folder / f"{tag}.go").touch()

    def hold(self, tag: str) -> None:
        """They do not, from now on."""
        (self.front.folder / f"{tag}.go").unlink()

    def restart(self) -> None:
        """Kill the gateway, and start the next."""
        self.front.kill()
        self.front.start()

    def kill(self, process: int) -> None:
        """Kill a process of it."""
        assert process != os.getpid()
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)

    def until_missed(self, server: str, process: int) -> None:
        """Wait until the gateway knows that a server's process is dead.

        Until then a call is sent to it, and then nobody knows what became of that.
        """
        until(
            lambda: self.api.get(f"/api/servers/{server}").body.get("pid") != process,
            f"the death of {server} to be noticed",
            ENDED_S,
        )

    def ended(self, call: str) -> dict[str, Any]:
        """A call as soon as it is over."""
        api = self.api
        return until(lambda: found if (found := api.call(call))["outcome"] else {}, f"{call} to end", ENDED_S)

    def decide(self, call: str, decision: str = "run") -> None:
        """Answer the approval that a call waits for."""
        self._answer(call, {"decision": decision})

    def tell(self, call: str, name: str) -> None:
        """Answer the form that a call waits for."""
        self._answer(call, {"name": name})

    def asked(self, call: str) -> dict[str, Any]:
        """The question of a call, as soon as it asks."""
        api = self.api
        return until(lambda: api.question(call) or {}, f"{call} to ask", ENDED_S)

    def _answer(self, call: str, content: dict[str, str]) -> None:
        question = self.asked(call)
        said = {"action": "accept", "content": content, "digest": question["digest"]}
        answer = self.api.post(f"/api/questions/{question['id']}/answer", said)
        assert answer.status == 200, answer


@contextmanager
def ground(folder: Path, *more: str) -> Iterator[Ground]:
    """Where things are killed; nothing is left of it."""
    one = Ground(folder, *more)
    one.front.start()
    try:
        offered = {tool for name in ("far", *more) for tool in SERVERS[name]}
        until(lambda: offered <= one.offered(), "its servers to be known", ENDED_S)
        yield one
    finally:
        one.let_go("slow")
        if one.front.process.poll() is None:
            one.front.kill()
