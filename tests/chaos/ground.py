"""A gateway whose process, children and servers are killed, and what is found afterwards."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tests.e2e.front import Front, python
from tests.e2e.gateway import until
from tests.serve.api import Api

TOOLS = Path(__file__).parent / "tools.py"
ENDED_S = 30.0


class Ground:
    """One gateway after the other on one store."""

    def __init__(self, folder: Path) -> None:
        far = python("tests.chaos.far", E2E_MARKS=str(folder))
        tables = {"tools": {"far_safe": {"idempotent": True}}, "retain": {"bytes": 0}}
        self.front = Front(folder, {"far": far}, {"restart_limit": 100, **tables}, own=(TOOLS,))

    @property
    def api(self) -> Api:
        """The API of the gateway that runs now."""
        return Api(self.front)

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

    def restart(self) -> None:
        """Kill the gateway, and start the next."""
        self.front.kill()
        self.front.start()

    def kill(self, process: int) -> None:
        """Kill a process of it."""
        assert process != os.getpid()
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)

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

    def _answer(self, call: str, content: dict[str, str]) -> None:
        question = self.api.asked(call)
        said = {"action": "accept", "content": content, "digest": question["digest"]}
        answer = self.api.post(f"/api/questions/{question['id']}/answer", said)
        assert answer.status == 200, answer


@contextmanager
def ground(folder: Path) -> Iterator[Ground]:
    """Where things are killed; nothing is left of it."""
    one = Ground(folder)
    one.front.start()
    try:
        yield one
    finally:
        if one.front.process.poll() is None:
            one.front.kill()
