"""How long clients wait: what is known of them, and what their cancels and installations teach."""

from math import inf
from pathlib import Path

import pytest

from afoot.config.client_limits import (
    FILE,
    LEARNED_FOR_S,
    MAX_LEARNED,
    ClientLimits,
    LearnedLimit,
    stored_client_limits,
)
from afoot.config.settings import Settings
from afoot.config.state_folder import StoredList

# The reasons of the TypeScript SDK (Gemini CLI, Continue), of Rust's (Codex) and of Python's.
TIMEOUTS = (
    "McpError: MCP error -32001: Request timed out",
    "Request timed out",
    "request timeout",
    "timed out after 60.0s",
    "MCP error -32001: Maximum total timeout exceeded",
)
STOPS = (
    "",
    "AbortError: This operation was aborted",
    "the user pressed Stop",
    "enough",
    "it timed out, I think",
)


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A state folder of its own."""
    monkeypatch.setenv("AFOOT_HOME", str(tmp_path / "state"))
    return tmp_path / "state"


@pytest.mark.parametrize(
    "client, limit_s",
    [
        ("codex-mcp-client", 300),
        ("gemini-cli-mcp-client", 600),
        ("qwen-cli-mcp-client-afoot", 600),
        ("opencode", inf),
        ("continue-cli-client", 60),
        ("@cline/core", 60),
        ("mcp", inf),
    ],
)
def test_the_limits_of_measured_hosts_are_known(client: str, limit_s: float) -> None:
    """N2, H5: by the names that they really send."""
    assert ClientLimits().limit_s(Settings(), client) == limit_s


@pytest.mark.parametrize("reason", TIMEOUTS)
def test_a_cancel_for_a_timeout_teaches_the_limit_of_its_client(reason: str) -> None:
    """N2: the next gateway knows it too, and no other client is meant."""
    stored_client_limits().learn_from_cancel("My-Agent", reason, 45.04)
    limits = stored_client_limits()
    assert limits.limit_s(Settings(), "my-agent") == 45.0
    assert limits.limit_s(Settings(), "my-agent-2") == inf
    assert limits.limit_s(Settings(caller_limits={"my*": 90.0}), "my-agent") == 90


@pytest.mark.parametrize("reason", STOPS)
def test_a_persons_stop_teaches_nothing(reason: str, folder: Path) -> None:
    """N2: nor does a model's."""
    stored_client_limits().learn_from_cancel("my-agent", reason, 45.0)
    assert not stored_client_limits().learned() and not (folder / FILE).exists()


@pytest.mark.parametrize("client, waited_s", [("mcp", 45.0), ("", 45.0), ("my-agent", 1.6)])
def test_shared_names_and_timeouts_of_single_calls_teach_nothing(client: str, waited_s: float) -> None:
    """N2: a limit that is not the host's would hand over calls that their callers can wait for."""
    limits = ClientLimits()
    limits.learn_from_cancel(client, TIMEOUTS[0], waited_s)
    assert not limits.learned()


def test_the_newest_lesson_counts_and_old_ones_are_forgotten() -> None:
    """N2: a host that was given a longer timeout is believed, and a month is enough."""
    now = [1000.0]
    limits = ClientLimits(StoredList(FILE, LearnedLimit), lambda: now[0])
    limits.learn_from_cancel("codex-mcp-client", "request timeout", 60.0)
    now[0] += 1
    limits.learn_from_cancel("codex-mcp-client", "request timeout", 120.0)
    assert limits.limit_s(Settings(), "codex-mcp-client") == 120
    now[0] += LEARNED_FOR_S + 1
    assert limits.limit_s(Settings(), "codex-mcp-client") == 300


def test_so_many_lessons_are_kept_and_no_more() -> None:
    """N2, S4: a client that changes its name fills no disk."""
    limits = stored_client_limits()
    for number in range(MAX_LEARNED + 5):
        limits.learn_from_cancel(f"agent {number}" + "x" * 500, TIMEOUTS[0], 45.0)
    assert len(limits.learned()) == MAX_LEARNED
    assert all(len(one.client) <= 100 for one in limits.learned())


def test_a_damaged_file_of_limits_stops_nothing(folder: Path) -> None:
    """N2: what is known of hosts still counts."""
    folder.mkdir()
    (folder / FILE).write_text("[{")
    limits = stored_client_limits()
    limits.learn_from_cancel("my-agent", TIMEOUTS[0], 45.0)
    assert limits.limit_s(Settings(), "zed") == 60 and (folder / FILE).read_text() == "[{"


def test_an_installation_teaches_the_timeout_that_it_wrote_until_it_is_undone() -> None:
    """N2: a pattern, as some hosts add the name of the server."""
    stored_client_limits().learn_from_install("qwen-cli-mcp-client*", 3600)
    assert stored_client_limits().limit_s(Settings(), "qwen-cli-mcp-client-afoot") == 3600
    stored_client_limits().forget_install("qwen-cli-mcp-client*")
    assert stored_client_limits().limit_s(Settings(), "qwen-cli-mcp-client-afoot") == 600


def test_cancels_under_many_names_push_out_no_installed_limit() -> None:
    """N2: any program may say that it has any name."""
    limits = stored_client_limits()
    limits.learn_from_install("my-host", 120.0)
    for number in range(MAX_LEARNED + 5):
        limits.learn_from_cancel(f"stranger-{number}", TIMEOUTS[0], 45.0)
    assert stored_client_limits().limit_s(Settings(), "my-host") == 120
    assert len(stored_client_limits().learned()) == MAX_LEARNED + 1
