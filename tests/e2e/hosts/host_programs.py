"""Real agent hosts from npm: how each is set up in a home of its own, started with a fake model, and stopped.

The environment of a host has nothing of this machine but a path to programs, and every address that a host is
told is on loopback. `afoot install` writes the entries of the hosts that it knows.
"""

import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from http import HTTPStatus
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from tests.e2e.clients.test_typescript_1 import node
from tests.e2e.gateway import DANGEROUS, TOOLS
from tests.e2e.hosts.fake_model import PROMPT, FakeModel
from tests.e2e.npm import package
from tests.e2e.transports.bridge_processes import Hall

HOST_TOOLS: Final = Path(__file__).parent / "host_tools.py"
END_S: Final = 180.0
POLL_S: Final = 0.05


class HostProgram(NamedTuple):
    """A host: its package, the name that it sends, and how it is set up and started."""

    name: str
    package: str
    client: str
    teacher: str  # of its limit: install, or its cancel; empty: progress moves its limit
    write_settings: Callable[["HostPlace", str, float], None]  # with the model's address, and its limit
    command: Callable[["HostPlace", str], list[str]]
    environment: Mapping[str, str]


class HostPlace(Hall):
    """A folder with a home of its own for hosts, and a gateway that their bridges share."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        targets = [str(one) for one in (TOOLS, DANGEROUS, HOST_TOOLS)]
        settings = {
            "targets": targets,
            "store": str(folder / "calls.db"),
            "http": "127.0.0.1:0",
        }
        lines = [f"{key} = {json.dumps(value)}" for key, value in settings.items()]
        self.config = folder / "afoot.toml"
        self.config.write_text("\n".join(lines) + "\n")
        self.user = folder / "user"
        self.work = folder / "work"
        for one in (self.user, self.work):
            one.mkdir()

    @property
    def bare_environment(self) -> dict[str, str]:
        """An environment that says nothing of this machine."""
        own = {"AFOOT_HOME": str(self.gateway.folder / "home"), "AFOOT_CONFIG": str(self.config)}
        return {"HOME": str(self.user), "PATH": "/usr/bin:/bin", "E2E_MARKS": str(self.gateway.folder), **own}

    @property
    def connect(self) -> list[str]:
        """The command of the bridge; what the tools need comes with it."""
        return [sys.executable, "-m", "afoot", "connect"]

    def install(self, host: str, change: Callable[[str], str] = str) -> None:
        """Write the host's entry with `afoot install`, then change its text."""
        command = [sys.executable, "-m", "afoot", "install", host, "--json"]
        done = subprocess.run(
            command, env=self.bare_environment, cwd=self.work, capture_output=True, check=True
        )
        file = Path(json.loads(done.stdout)["file"])
        file.write_text(change(file.read_text()))

    @contextmanager
    def operator(self, *kinds: str) -> Iterator[list[dict[str, Any]]]:
        """A person at the console who answers these kinds of questions: approvals with run, forms with Ada.

        Yields the questions that the person answered first; the host may have answered one just before.
        """
        answered = list[dict[str, Any]]()
        over = threading.Event()

        def work() -> None:
            while not over.wait(POLL_S):
                with suppress(OSError, ValueError, KeyError):
                    for asked in self._api("GET", "/api/questions")["questions"]:
                        if asked["kind"] not in kinds:
                            continue
                        content = {"decision": "run"} if asked["kind"] == "approval" else {"name": "Ada"}
                        self._api(
                            "POST",
                            f"/api/questions/{asked['id']}/answer",
                            {"action": "accept", "content": content},
                        )
                        answered.append(asked)

        thread = threading.Thread(target=work)
        thread.start()
        try:
            yield answered
        finally:
            over.set()
            thread.join()

    def calls(self, tool: str) -> list[dict[str, Any]]:
        """The calls of a tool, newest first."""
        return [one for one in self._api("GET", "/api/calls")["calls"] if one["tool"] == tool]

    def _api(self, method: str, path: str, body: object = None) -> Any:
        address = self.address
        connection = HTTPConnection(urlsplit(address["mcp"]).netloc, timeout=5)
        try:
            headers = {"authorization": f"Bearer {address['token']}", "content-type": "application/json"}
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            response = connection.getresponse()
            if response.status != HTTPStatus.OK:
                raise OSError(f"{method} {path} was answered with {response.status}")
            return json.loads(response.read())
        finally:
            connection.close()


class HostRun:
    """A host that runs, and its output."""

    def __init__(self, host: HostProgram, place: HostPlace, model: FakeModel, limit_s: float) -> None:
        host.write_settings(place, model.url, limit_s)
        self._output = place.work / f"{host.name}.log"
        with self._output.open("wb") as output:
            self._process = subprocess.Popen(
                host.command(place, model.url),
                env={
                    **place.bare_environment,
                    **host.environment,
                    **_KEYS,
                    **_NO_WAY_OUT,
                    "GOOGLE_GEMINI_BASE_URL": model.url,
                },
                cwd=place.work,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    @property
    def said(self) -> str:
        """Its output so far."""
        return self._output.read_text(errors="replace")

    @property
    def is_alive(self) -> bool:
        """Whether it runs."""
        return self._process.poll() is None

    def wait(self) -> int:
        """Wait for its end, and give its exit code."""
        return self._process.wait(END_S)

    def interrupt(self) -> None:
        """Press Ctrl-C."""
        os.killpg(self._process.pid, signal.SIGINT)

    def kill(self) -> None:
        """End it and all that it started."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


@contextmanager
def running(host: HostProgram, place: HostPlace, model: FakeModel, limit_s: float) -> Iterator[HostRun]:
    """A host that is ended with the block."""
    run = HostRun(host, place, model, limit_s)
    try:
        yield run
    finally:
        run.kill()


def _set_up_codex(place: HostPlace, url: str, limit_s: float) -> None:
    place.install(
        "codex", lambda text: re.sub(r"tool_timeout_sec = \d+", f"tool_timeout_sec = {limit_s:g}", text)
    )
    place.install("codex")  # reads the timeout that a person chose


def _codex(place: HostPlace, url: str) -> list[str]:
    [program] = (package("@openai/codex") / "vendor").glob("*/bin/codex")
    provider = f'{{name="fake",base_url="{url}/v1",env_key="FAKE_KEY",wire_api="responses"}}'
    own = ["-c", "model_provider=fake", "-c", f"model_providers.fake={provider}", "-m", "fake-model"]
    return [str(program), "exec", "--skip-git-repo-check", *own, PROMPT]


def _set_up_gemini(place: HostPlace, url: str, limit_s: float) -> None:
    file = place.user / ".gemini" / "settings.json"
    if not file.exists():
        file.parent.mkdir()
        settings = {
            "security": {"auth": {"selectedType": "gemini-api-key"}},
            "privacy": {"usageStatisticsEnabled": False},
            "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False},
        }
        file.write_text(json.dumps(settings))
    place.install("gemini", lambda text: re.sub(r'"timeout": \d+', f'"timeout": {limit_s * 1000:.0f}', text))


def _gemini(place: HostPlace, url: str) -> list[str]:
    program = package("@google/gemini-cli") / "bundle" / "gemini.js"
    return [node(), str(program), "-m", "gemini-2.5-flash", "--yolo", "-p", PROMPT]


def _set_up_opencode(place: HostPlace, url: str, limit_s: float) -> None:
    model = {
        "name": "fake",
        "attachment": True,
        "modalities": {"input": ["text", "image"], "output": ["text"]},
    }
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": f"{url}/v1", "apiKey": "none"},
        "models": {"fake-model": model},
    }
    names = ("AFOOT_HOME", "AFOOT_CONFIG")
    environment = {key: value for key, value in place.bare_environment.items() if key in names}
    entry = {
        "type": "local",
        "command": place.connect,
        "environment": environment,
        "timeout": round(limit_s * 1000),
    }
    settings = {"provider": {"fake": provider}, "model": "fake/fake-model", "mcp": {"afoot": entry}}
    (place.work / "opencode.json").write_text(json.dumps(settings))


def _opencode(place: HostPlace, url: str) -> list[str]:
    return [str(package("opencode-linux-x64-baseline") / "bin" / "opencode"), "run", PROMPT]


_KEYS: Final = {"FAKE_KEY": "none", "GEMINI_API_KEY": "none"}
# Nothing listens there: an attempt to leave this machine fails at once.
_NO_WAY_OUT: Final = {
    "HTTP_PROXY": "http://127.0.0.1:9",
    "HTTPS_PROXY": "http://127.0.0.1:9",
    "NO_PROXY": "127.0.0.1,localhost",
}
CODEX: Final = HostProgram("codex", "@openai/codex", "codex-mcp-client", "install", _set_up_codex, _codex, {})
GEMINI: Final = HostProgram(
    "gemini", "@google/gemini-cli", "gemini-cli-mcp-client", "cancel", _set_up_gemini, _gemini,
    {"GEMINI_CLI_TRUST_WORKSPACE": "true"},
)  # fmt: skip
OPENCODE: Final = HostProgram(
    "opencode", "opencode-linux-x64-baseline", "opencode", "", _set_up_opencode, _opencode,
    {
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
        "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
        "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
    },
)  # fmt: skip
