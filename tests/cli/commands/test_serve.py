"""`afoot serve`: what it prints, what it refuses, and what it keeps off stdout."""

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.conftest import program
from tests.e2e.gateway import TOOLS, until


@contextmanager
def serve(
    words: list[str], environment: Mapping[str, str], folder: Path | None = None
) -> Iterator["subprocess.Popen[str]"]:
    """The program, serving until the block ends."""
    process = subprocess.Popen(
        [sys.executable, "-m", "afoot", "serve", *words],
        env={**environment, "AFOOT_DRAIN_S": "0.2"}, cwd=folder, stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        yield process
    finally:
        process.terminate()
        process.communicate(timeout=15)


def read(process: "subprocess.Popen[str]", word: str) -> list[str]:
    """What it prints, up to a line with this word."""
    assert process.stdout is not None
    lines = [process.stdout.readline()]
    while word not in lines[-1]:
        assert lines[-1], process.communicate()
        lines.append(process.stdout.readline())
    return [line.rstrip("\n") for line in lines]


def test_it_prints_the_address_and_commands_that_can_be_pasted(lone: dict[str, str], tmp_path: Path) -> None:
    """V2: the next command to type works as it stands, in another terminal."""
    with serve([str(TOOLS), "--http", "127.0.0.1:0"], lone, tmp_path) as serving:
        lines = read(serving, "Ctrl-C")
        assert any("http://127.0.0.1:" in line and line.endswith("/mcp") for line in lines)
        command = next(line for line in lines if " call " in line).strip()
        plain = {key: value for key, value in lone.items() if key != "AFOOT_HOME"}
        done = subprocess.run(
            ["bash", "-c", command], env=plain, cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done
        assert all(len(line) <= 80 or "AFOOT_HOME" in line for line in lines)


def test_json_is_one_line_first(lone: dict[str, str]) -> None:
    """V4: mcp, console, token, pid."""
    with serve([str(TOOLS), "--http", "127.0.0.1:0", "--json"], lone) as serving:
        told = json.loads(read(serving, "{")[0])
        assert set(told) == {"mcp", "console", "token", "pid"} and told["pid"] == serving.pid
        assert (Path(lone["AFOOT_HOME"]) / "gateway.json").stat().st_mode & 0o077 == 0
    assert not (Path(lone["AFOOT_HOME"]) / "gateway.json").exists()


def test_a_second_gateway_on_the_same_store_names_the_first(lone: dict[str, str], tmp_path: Path) -> None:
    """H1: exit 2 with pid and URL; also if the address is taken as well."""
    words = [str(TOOLS), "--http", "127.0.0.1:0", "--store", str(tmp_path / "calls.db")]
    with serve([*words, "--json"], lone) as serving:
        told = json.loads(read(serving, "{")[0])
        url = told["mcp"].removesuffix("/mcp")
        for address in ("127.0.0.1:0", url.removeprefix("http://")):
            words[2] = address
            second = program(("serve", *words), lone)
            assert second.returncode == 2
            assert str(told["pid"]) in second.stderr and url in second.stderr
            assert len(second.stderr.splitlines()) == 1
        words[2:] = [url.removeprefix("http://"), "--store", str(tmp_path / "other.db")]
        third = program(("serve", *words), lone)
        assert third.returncode == 2 and "cannot listen" in third.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "nothing to serve"),
        (("nowhere.py",), "nowhere.py"),
        (("broken.py",), "broken.py, line 2"),
        (("empty.py",), "@afoot.tool"),
        (("good.py", "--http", "0.0.0.0:0"), "afoot tokens add"),
        (("good.py", "--http", "127.0.0.1:x"), "127.0.0.1:x"),
        (("good.py", "--store", "folder"), "folder"),
        (("good.py", "--config", "nowhere.toml"), "nowhere.toml"),
        (("good.py", "--config", "wrong.toml"), "wrong.toml"),
        (("good.py", "--colour"), "--help"),
    ],
    ids=lambda one: " ".join(one) if isinstance(one, tuple) else one,
)
def test_what_cannot_be_served_is_one_clear_line(
    lone: dict[str, str], tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    """V2: target, address, store and config errors exit 2, without a trace."""
    (tmp_path / "broken.py").write_text("import afoot\n1 +\n")
    (tmp_path / "empty.py").write_text("")
    (tmp_path / "good.py").write_text(
        "import afoot\n@afoot.tool\ndef f() -> str:\n    'F.'\n    return 'f'\n"
    )
    (tmp_path / "folder").mkdir()
    (tmp_path / "wrong.toml").write_text("idle_s = [")
    done = program(("serve", *words), lone, tmp_path)
    assert done.returncode == 2 and said in done.stderr, done
    assert len(done.stderr.splitlines()) == 1 and done.stdout == ""


def test_targets_of_the_config_are_named_from_its_folder(lone: dict[str, str], tmp_path: Path) -> None:
    """V2: `afoot init`, then `afoot serve` from a folder below."""
    assert program(("init",), lone, tmp_path).returncode == 0
    below = tmp_path / "below"
    below.mkdir()
    with serve(["--http", "127.0.0.1:0"], lone, below) as serving:
        assert "1 tool: count" in read(serving, "Ctrl-C")[0]


def test_stdio_keeps_stdout_for_the_protocol(lone: dict[str, str]) -> None:
    """V4: nothing but JSON-RPC on stdout, whatever a tool prints."""
    store = Path(lone["AFOOT_HOME"]) / "calls.db"
    info = {
        "protocolVersion": "2025-11-25",
        "capabilities": dict[str, str](),
        "clientInfo": {"name": "t", "version": "1"},
    }
    messages: list[dict[str, object]] = [
        {"id": 1, "method": "initialize", "params": info},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": {"name": "chatter", "arguments": dict[str, str]()}},
    ]
    with serve([str(TOOLS), "--stdio", "--store", str(store)], lone) as serving:
        assert serving.stdin is not None and serving.stdout is not None
        for message in messages:
            serving.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
            serving.stdin.flush()
        answers = [json.loads(serving.stdout.readline())]
        while answers[-1].get("id") != 2:
            answers.append(json.loads(serving.stdout.readline()))
    assert answers[-1]["result"]["content"][0]["text"] == "chattered"
    assert all(one["jsonrpc"] == "2.0" for one in answers)


def test_reload_offers_changed_tools_and_keeps_the_old_ones_on_an_error(
    lone: dict[str, str], tmp_path: Path
) -> None:
    """V2: `serve --reload`."""
    file = tmp_path / "tools.py"
    text = "import afoot\n@afoot.tool\ndef {}() -> str:\n    'F.'\n    return 'f'\n"
    file.write_text(text.format("first"))
    with serve([str(file), "--http", "127.0.0.1:0", "--reload"], lone) as serving:
        read(serving, "Ctrl-C")
        assert "first" in program(("tools",), lone).stdout
        file.write_text(text.format("second"))
        until(lambda: "second" in program(("tools",), lone).stdout, "the new tool")
        file.write_text("1 +")
        assert "second" in program(("tools",), lone).stdout


NOISY = """
import afoot

@afoot.tool
async def shout() -> str:
    for _ in range(5000):
        print("x" * 99)
    return "said"
"""


def test_a_host_that_reads_no_stderr_gets_its_answers(lone: dict[str, str], tmp_path: Path) -> None:
    """X1, F4: prints and logs go to a pipe that is full; nobody waits for its reader."""
    (tmp_path / "noisy.py").write_text(NOISY)
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    params = {"name": "shout", "arguments": {}, "_meta": meta}
    with serve([str(tmp_path / "noisy.py"), "--stdio"], lone, tmp_path) as serving:
        assert serving.stdin is not None and serving.stdout is not None
        request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        serving.stdin.write(json.dumps(request) + "\n")
        serving.stdin.flush()
        answer = json.loads(serving.stdout.readline())
    assert answer["result"]["content"][0]["text"] == "said"


def test_names_of_an_mcp_json_steer_no_terminal(lone: dict[str, str], tmp_path: Path) -> None:
    """V2, S1: in the text at the start, and in the log: the file may be of a cloned project."""
    name = "evil\x1b[2J\u202e"
    servers = {name: {"command": "false"}, "other\x9b2J": {"url": "nowhere\x1b[2J"}}
    (tmp_path / ".mcp.json").write_text(json.dumps({"mcpServers": servers}))
    with serve([".mcp.json", "--http", "127.0.0.1:0"], lone, tmp_path) as serving:
        text = "\n".join(read(serving, "Ctrl-C"))
        serving.terminate()
        assert serving.stderr is not None
        text += serving.stderr.read()
    assert "evil" in text
    assert not {"\x1b", "\x9b", "\u202e"} & set(text)
