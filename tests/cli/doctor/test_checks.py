"""`afoot doctor`: every check when all is well, and what each says when it is not."""

import json
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest

from afoot.cli.doctor import checks
from afoot.cli.doctor.checks import version_fits
from afoot.config.client_limits import stored_client_limits
from tests.cli.commands.test_demo import demo
from tests.cli.conftest import program
from tests.e2e.gateway import Gateway

TINY: Final = str(Path(__file__).parents[1] / "small_server.py")
HOSTILE: Final = Path(__file__).parents[2] / "attack" / "upstream" / "hostile_server.py"
WELL: Final = f"""
http = "127.0.0.1:0"

[servers.tiny]
command = {json.dumps(sys.executable)}
args = [{json.dumps(TINY)}]

[servers.off]
command = "no-such-program"
disabled = true
"""
ILL: Final = f"""
http = "127.0.0.1:PORT"
targets = ["gone.py"]

[servers.missing]
command = "no-such-program"

[servers.unset]
command = {json.dumps(sys.executable)}
env = {{ KEY = "${{NOT_SET_ANYWHERE}}" }}

[servers.quits]
command = {json.dumps(sys.executable)}
args = ["-c", "raise SystemExit('no key')"]
"""
Finding = dict[str, Any]


@pytest.fixture
def place(tmp_path: Path, lone: dict[str, str]) -> tuple[Path, dict[str, str]]:
    """A folder, and an environment in which nothing of this machine is seen."""
    return tmp_path, {**lone, "HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path)}


def examined(place: tuple[Path, dict[str, str]], *words: str) -> tuple[int, dict[str, Finding]]:
    """The exit code, and what was found by check."""
    folder, environment = place
    done = program(("doctor", "--json", *words), environment, folder)
    assert done.stderr == ""
    found: list[Finding] = [json.loads(line) for line in done.stdout.splitlines()]
    return done.returncode, {one["check"]: one for one in found}


def test_when_all_is_well_every_check_says_so(place: tuple[Path, dict[str, str]]) -> None:
    """V2, U1: packages, config, store, port, real calls in both eras, a server's handshake; exit 0."""
    (place[0] / "afoot.toml").write_text(WELL)
    code, found = examined(place)
    assert code == 0 and {one["state"] for one in found.values()} == {"ok"}
    assert set(found) == {
        "python", "packages", "config", "state folder", "clock", "store", "port", "call, 2026-07-28",
        "call, handshake era", "server tiny", "server off", "extension",
    }  # fmt: skip
    assert "cancel" in found["call, 2026-07-28"]["text"]
    assert "tools" in found["server tiny"]["text"] and found["server off"]["text"] == "disabled"


def test_what_is_wrong_is_told_with_its_fix(place: tuple[Path, dict[str, str]]) -> None:
    """V2, U1, S1: each failure stands alone, and the rest is still checked; exit 1."""
    with socket.socket() as owner:
        owner.bind(("127.0.0.1", 0))
        owner.listen()
        number = str(owner.getsockname()[1])
        (place[0] / "other.toml").write_text(ILL.replace("PORT", number))
        (place[0] / ".cursor").mkdir()
        entry = {"mcpServers": {"afoot": {"command": "/gone/afoot", "args": ["connect"]}}}
        (place[0] / ".cursor" / "mcp.json").write_text(json.dumps(entry))
        code, found = examined(place, "--config", str(place[0] / "other.toml"))
    failed = {check: one for check, one in found.items() if one["state"] == "fail"}
    assert code == 1 and set(failed) == {
        "port", "tools", "server missing", "server unset", "server quits", "host Cursor",
    }  # fmt: skip
    assert all(one["fix"] for one in failed.values())
    assert number in failed["port"]["text"] and "gone.py" in failed["tools"]["text"]
    assert "NOT_SET_ANYWHERE" in failed["server unset"]["text"]
    assert "/gone/afoot" in failed["host Cursor"]["text"]
    assert failed["host Cursor"]["fix"] == "afoot install cursor"


def test_a_config_with_an_error_is_named_with_line_and_key(place: tuple[Path, dict[str, str]]) -> None:
    """V2: and what needs no config is still checked."""
    (place[0] / "afoot.toml").write_text("idle_s = 30\nceiling_s = 'long'\n")
    code, found = examined(place)
    told = found["config"]
    assert code == 1 and told["state"] == "fail"
    assert "ceiling_s" in told["text"] and "2" in told["text"] and "afoot.toml" in told["text"]
    assert found["call, 2026-07-28"]["state"] == "ok" and "store" not in found


def test_a_running_gateway_has_the_store_and_the_port(gateway: Gateway, tmp_path: Path) -> None:
    """V2: both are ours, so both are well."""
    own = {"AFOOT_STORE": str(gateway.store), "AFOOT_HTTP": gateway.url.split("/")[2], "HOME": str(tmp_path)}
    done = program(("doctor", "--json"), {**gateway.environment, **own}, tmp_path)
    found: dict[str, Finding] = {
        one["check"]: one for one in (json.loads(line) for line in done.stdout.splitlines())
    }
    assert f"process {gateway.process.pid}" in found["store"]["text"]
    assert found["port"]["text"].endswith(f"ours (process {gateway.process.pid})")
    assert done.returncode == 0


def test_the_port_of_a_demo_is_not_a_foreign_one(place: tuple[Path, dict[str, str]]) -> None:
    """V2: a demo takes the default port, and gives it back."""
    with demo({**place[1], "AFOOT_HTTP": "127.0.0.1:0"}, "--json") as process:
        assert process.stdout is not None
        address = json.loads(process.stdout.readline())["mcp"].split("/")[2]
        found = examined((place[0], {**place[1], "AFOOT_HTTP": address}))[1]["port"]
    assert found["state"] == "ok"
    assert found["text"] == f"{address}, used by `afoot demo` (process {process.pid}) until it ends"


def test_a_person_gets_a_line_a_check(place: tuple[Path, dict[str, str]]) -> None:
    """V2: its state first, then what, then what to do."""
    (place[0] / "afoot.toml").write_text("nonsense = 1\n")
    done = subprocess.run(
        [sys.executable, "-m", "afoot", "doctor"], env=place[1], cwd=place[0],
        capture_output=True, text=True, timeout=25,
    )  # fmt: skip
    lines = done.stdout.splitlines()
    assert done.returncode == 1 and all(line.startswith(("ok    ", "warn  ", "fail  ")) for line in lines)
    [told] = [line for line in lines if line.startswith("fail  config: ")]
    assert "nonsense" in told and "`afoot config`" not in told  # it would fail, too
    assert told.endswith("`afoot init FOLDER` writes every setting into a file")
    assert program(("init", "other"), place[1], place[0]).returncode == 0
    assert (place[0] / "other" / "afoot.toml").exists()


@pytest.mark.parametrize(
    ("version", "wanted", "is_fit"),
    [
        ("5.4.0", "<6,>=5.4", True),
        ("6.0", "<6,>=5.4", False),
        ("5.3.9", "<6,>=5.4", False),
        ("5.4", ">=5.4.0", True),
        ("3.11.7", ">=3.11", True),
        ("0.60.3rc1", ">=0.60,<1", True),
        ("2.2", "~=2.1", True),
        ("3.0", "~=2.1", False),
        ("1.0", "", True),
        ("1.0", "!=1.0", False),
    ],
)
def test_versions_are_compared_by_their_numbers(version: str, wanted: str, is_fit: bool) -> None:
    """V2: as ranges in a package's metadata say."""
    assert version_fits(version, wanted) is is_fit


def test_secrets_that_others_can_read_are_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """S1: a token is for its owner's eyes."""
    monkeypatch.setenv("AFOOT_HOME", str(tmp_path))
    assert checks.check_state_folder().state == "ok"
    (tmp_path / "token").write_text("t")
    (tmp_path / "token").chmod(0o644)
    found = checks.check_state_folder()
    assert found.state == "fail" and "chmod 600" in found.fix


def test_a_state_folder_that_cannot_be_written_is_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S1: with the variable that moves it."""
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("AFOOT_HOME", str(tmp_path / "file" / "home"))
    assert "AFOOT_HOME" in checks.check_state_folder().fix
    assert checks.check_clock().state == "ok"


def test_a_state_folder_that_others_may_read_is_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S6: any file in it, and the folder; and so is a key that is none."""
    monkeypatch.setenv("AFOOT_HOME", str(tmp_path / "home"))
    assert checks.check_state_folder().state == "ok"
    (tmp_path / "home" / "calls.db").touch(0o644)
    found = checks.check_state_folder()
    assert found.state == "fail" and "calls.db" in found.text and "chmod" in found.fix
    (tmp_path / "home" / "calls.db").chmod(0o600)
    (tmp_path / "home" / "key").touch(0o600)
    (tmp_path / "home" / "key").write_text("short")
    found = checks.check_state_folder()
    assert found.state == "fail" and "key is no key" in found.text and "move it away" in found.fix


def test_a_file_that_is_no_store_is_a_failure(tmp_path: Path) -> None:
    """H1: before a gateway finds out."""
    (tmp_path / "calls.db").write_text("this is no database, however long it is" * 100)
    found = checks.check_store(str(tmp_path / "calls.db"))
    assert found.state == "fail" and "store" in found.fix
    assert checks.check_store(":memory:").state == "warn"


def test_a_clock_that_jumps_is_seen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """C1: deadlines do not depend on it, dates do."""
    monkeypatch.setenv("AFOOT_HOME", str(tmp_path))
    monkeypatch.setattr(checks, "CLOCK_WATCH_S", 0.01)
    walls = iter([1000.0, 1005.0])
    monkeypatch.setattr(checks.time, "time", lambda: next(walls))
    assert checks.check_clock().state == "warn"


def test_learned_limits_of_clients_are_shown(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """N2, U2: with their origin; a gateway that has learned nothing says nothing."""
    monkeypatch.setenv("AFOOT_HOME", str(tmp_path))
    assert not list(checks.check_client_limits())
    stored_client_limits().learn_from_cancel("my-agent", "Request timed out", 45.0)
    stored_client_limits().learn_from_install("codex-mcp-client", 3600.0)
    [found] = checks.check_client_limits()
    assert found.state == "ok"
    assert "my-agent 45 s (by cancel), codex-mcp-client 3600 s (by install)" in found.text


def test_tools_that_are_renamed_or_refused_are_told(place: tuple[Path, dict[str, str]]) -> None:
    """V2, U12: a server that offers names of others; those two servers share are in order."""
    lines = ""
    for name, tools in {"evil": ["good__read", "list", "list", ""], "good": ["list"]}.items():
        folder = place[0] / name
        folder.mkdir()
        listed = [{"name": one, "inputSchema": {"type": "object"}} for one in tools]
        (folder / "tools.json").write_text(json.dumps(listed))
        args = json.dumps([str(HOSTILE), str(folder)])
        lines += f"[servers.{name}]\ncommand = {json.dumps(sys.executable)}\nargs = {args}\n"
    (place[0] / "afoot.toml").write_text(lines)
    done = program(("doctor",), place[1], place[0])
    told = [line for line in done.stdout.splitlines() if "offered" in line]
    assert told == [
        "warn  server evil: a tool is not offered: list stands twice in its list; the first counts; "
        "tell its authors",
        "warn  server evil: a tool is not offered: '' is no name for a tool; tell its authors",
        "warn  tool names: evil/good__read is offered as evil__good__read: names like that are those of "
        "server good; call it by that name, or as server/name",
        "ok    tool names: evil/list is offered as evil__list: another tool has that name",
        "ok    tool names: good/list is offered as good__list: another tool has that name",
    ]
