"""Settings: file, environment and flags, where each came from, and what a wrong one is told."""

import os
from pathlib import Path

import pytest

from afoot.config.settings import ConfigError, Server, Settings, find_config, home, load_settings

TABLES = (
    "tools", "servers", "hooks", "browser", "otel", "caller_limits", "redact", "retain", "quota", "isolation",
    "access", "connections", "cluster",
)  # fmt: skip
CHOSEN = {
    "lifecycle": "stages",
    "app": "all",
    "history": "required",
    "durable": "full",
    "approval": "ask",
    "policy": "careful",
    "ask_by": "both",
    "unanswerable": "wait",
    "record_wire": "true",
    "metrics": "true",
}


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A folder with nothing in it, and no setting in the environment."""
    for name in [name for name in os.environ if name.startswith(("AFOOT_", "XDG_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path


def test_headers_that_prove_who_somebody_is_reach_no_tool(alone: Path) -> None:
    """F1, S4: others are known by their names in lower case."""
    given = load_settings(written(alone / "work", 'tool_headers = ["X-Tenant"]')).settings
    assert given.tool_headers == ["x-tenant"]
    for name in ("Authorization", "cookie", "Mcp-Session-Id"):
        with pytest.raises(ConfigError, match=f"{name} never reaches a tool"):
            load_settings(written(alone / "work", f'tool_headers = ["x-ok", "{name}"]'))
    with pytest.raises(ConfigError, match="'a b' is no name of a header"):
        load_settings(written(alone / "work", 'tool_headers = ["a b"]'))


def written(folder: Path, text: str) -> Path:
    """A config file."""
    file = folder / "afoot.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def refused(file: Path | None = None, **flags: object) -> str:
    """Why these settings are not taken."""
    with pytest.raises(ConfigError) as caught:
        load_settings(file, flags)
    return str(caught.value)


def test_without_anything_the_defaults_hold() -> None:
    """C1: the number in the docs is the number in force."""
    loaded = load_settings()
    assert loaded.settings == Settings() and loaded.file is None
    assert set(loaded.origin.values()) == {"default"}
    found = loaded.settings
    assert (found.idle_s, found.ceiling_s, found.answer_s, found.queue_limit_s) == (30, 300, 600, 60)


def test_a_flag_wins_over_the_environment_and_that_over_the_file(
    alone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C3: and each value says where it came from."""
    file = written(alone, "idle_s = 1\nceiling_s = 10\nanswer_s = 100\n")
    monkeypatch.setenv("AFOOT_CEILING_S", "20")
    monkeypatch.setenv("AFOOT_ANSWER_S", "200")
    loaded = load_settings(file, {"answer_s": 300})
    found, origin = loaded.settings, loaded.origin
    assert (found.idle_s, found.ceiling_s, found.answer_s) == (1, 20, 300)
    assert (origin["idle_s"], origin["ceiling_s"], origin["answer_s"]) == (
        str(file),
        "AFOOT_CEILING_S",
        "flag",
    )
    assert origin["queue_limit_s"] == "default"


@pytest.mark.parametrize("key", [key for key in Settings.__struct_fields__ if key not in TABLES])
def test_every_setting_has_a_variable(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Design 5: AFOOT_<KEY>; tables are written in a file."""
    value = CHOSEN.get(key, "7")
    monkeypatch.setenv(f"AFOOT_{key.upper()}", value)
    loaded = load_settings()
    found = getattr(loaded.settings, key)
    assert loaded.origin[key] == f"AFOOT_{key.upper()}"
    assert found in (value, 7, ["7"], True)


def test_a_list_in_the_environment_is_cut_at_commas(monkeypatch: pytest.MonkeyPatch) -> None:
    """Design 5: empty parts are none."""
    monkeypatch.setenv("AFOOT_ALLOW_ORIGINS", "https://a.example,,https://b.example,")
    assert load_settings().settings.allow_origins == ["https://a.example", "https://b.example"]


def test_limits_of_tools_and_servers_are_tables(alone: Path) -> None:
    """C3: per server and per tool."""
    file = written(alone, "[tools.export]\nidle_s = 5\n[servers.local]\nceiling_s = 900\n")
    found = load_settings(file).settings
    assert found.tools["export"].limits() == {"idle_s": 5}
    assert found.servers["local"].limits() == {"ceiling_s": 900}


def test_the_nearest_file_upward_counts_then_the_users(alone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Design 5: AFOOT_CONFIG, afoot.toml upward, the user's config folder."""
    assert find_config() is None
    users = written(alone / "home" / ".config" / "afoot", "idle_s = 1\n")
    assert find_config() == users
    upward = written(alone, "idle_s = 2\n")
    assert find_config() == upward
    named = alone / "other.toml"
    named.write_text("idle_s = 3\n")
    monkeypatch.setenv("AFOOT_CONFIG", str(named))
    assert find_config() == named and load_settings().settings.idle_s == 3 and load_settings().file == named


def test_the_state_folder_can_be_moved(alone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Design 5: AFOOT_HOME, else the user's state folder."""
    assert home() == alone / "home" / ".local" / "state" / "afoot"
    monkeypatch.setenv("XDG_STATE_HOME", str(alone / "state"))
    assert home() == alone / "state" / "afoot"
    monkeypatch.setenv("AFOOT_HOME", str(alone / "afoot"))
    assert home() == alone / "afoot"


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ('idle_s = "soon"', "idle_s"),
        ("idle_s = -1", "idle_s"),
        ("idle_s = nan", "idle_s"),
        ("max_body_bytes = 1.5", "max_body_bytes"),
        ("[connections]\nhead_bytes = 0", "connections.head_bytes"),
        ("[connections]\nper_peer = -1", "connections.per_peer"),
        ('[cluster]\nredis = "http://a"', "cluster.redis"),
        ('[cluster]\nname = "{a}"', "cluster.name"),
        ("[cluster]\nlease_s = 0", "cluster.lease_s"),
        ("http = 5", "http"),
        ('lifecycle = "all"', "lifecycle"),
        ('history = "maybe"', "history"),
        ('durable = "very"', "durable"),
        ('allow_origins = "https://a.example"', "allow_origins"),
        ("allow_origins = [1]", "allow_origins"),
        ("tools = 5", "tools"),
        ("[tools.export]\nidle = 5", "tools.export.idle"),
        ('[tools.export]\nidle_s = "soon"', "tools"),
    ],
)
def test_a_wrong_value_is_told_with_file_and_key(alone: Path, text: str, key: str) -> None:
    """Bad input: what to change, and where."""
    file = written(alone, text + "\n")
    told = refused(file)
    assert f"setting {key}" in told and str(file) in told


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("idel_s = 5", "'idel_s'"),
        ("[tools.export]\nidle_s = -5", "tools.export.idle_s"),
        ('[tools.export]\nidle_s = "soon"', "tools.export.idle_s"),
    ],
)
def test_a_wrong_key_or_limit_is_told_with_file_and_whole_key(alone: Path, text: str, key: str) -> None:
    """Bad input: also unknown settings, and values inside tables."""
    file = written(alone, text + "\n")
    told = refused(file)
    assert key in told and str(file) in told


SERVERS = """# the servers
[servers.files]
command = "npx"
comand = "npx"
"""


@pytest.mark.parametrize(
    ("text", "line", "told"),
    [
        (SERVERS, 4, "setting servers.files.comand"),
        ('a = 1\n[servers."my files"]\nurl = "ftp://x"\n', 1, "unknown setting 'a'"),
        ('[servers."my files"]\n\nurl = "ftp://x"\n', 3, "setting servers.my files.url"),
        ('[servers.x]\ncommand = "x"\nurl = "https://x"\n', 3, "exactly one of command, url, module"),
        ('[servers.x]\ncommand = "x"\nmodule = "a:b"\n', 3, "exactly one of"),
        ("# none\n[servers.x]\nidle_s = 5\n", 2, "needs one of command, url, module"),
        ('[servers.local]\ncommand = "x"\n', 2, "your own functions"),
        ('[servers.x]\ncommand = "x"\nera = "2025"\n', 3, "must be one of auto, 2025-11-25, 2026-07-28"),
        ('[servers.x]\ncommand = "x"\napproval = "aks"\n', 3, "not 'aks'; nearest: ask"),
        ('[servers.x]\ncommand = "x"\nenv = { A = 5 }\n', 3, "setting servers.x.env.A"),
        ('[servers.x]\ncommand = "x"\n[servers.x.env]\nB = "b"\nA = 5\n', 5, "setting servers.x.env.A"),
        ('[servers.x]\nurl = "https://x"\nargs = ["a"]\n', 3, "goes with command"),
        ('servers.x.url = "https://x"\nservers.x.idle_s = -1\n', 2, "setting servers.x.idle_s"),
        ('[servers.x]\nmodule = "a.b"\n', 2, "package.module:name"),
        ('[tools."files/*"]\n\nread_only = "maybe"\n', 3, "setting tools.files/*.read_only"),
        ('[tools.x]\nlifecycle = "on"\n', 2, "must be one of"),
        ('[[hooks]]\non = "on_end"\ncommand = "x"\n[[hooks]]\non = "end"\n', 5, "setting hooks.1.on"),
        ('[[hooks]]\non = "on_end"\n', 1, "exactly one of command, python"),
        ('[[hooks]]\ncommand = "x"\n', 1, "`on` is missing"),
        ('[[hooks]]\non = "on_end"\npython = "a"\n', 3, "package.module:function"),
        ("hooks = 5\n", 1, "setting hooks"),
        ('[[hooks]]\non = "on_end"\ncommand = "x"\nrequired = true\n', 4, "only a before_call hook"),
        ('[[hooks]]\non = "before_question"\ncommand = "x"\nrequired = true\n', 4, "only a before_call hook"),
        ("\n[caller_limits]\ncursor = -1\n", 3, "setting caller_limits.cursor"),
        ('\napproval = "maybe"\n', 2, "setting approval"),
        ("max_attempts = 0\n", 1, "must be more than 0"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(alone: Path, text: str, line: int, told: str) -> None:
    """U2: file, line and key, and the nearest name of a typo."""
    file = written(alone, text)
    with pytest.raises(ConfigError) as caught:
        load_settings(file)
    assert f"({file}, line {line})" in str(caught.value) and told in str(caught.value)
    assert (caught.value.file, caught.value.line) == (file, line)


def test_a_typo_names_the_nearest_setting(alone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """E5: in the file, in its tables, and in the environment."""
    assert "nearest: idle_s" in refused(written(alone, "idel_s = 5\n"))
    assert "nearest: command" in refused(written(alone, SERVERS))
    (alone / "afoot.toml").unlink()
    monkeypatch.setenv("AFOOT_PROGRES_HZ", "5")
    assert refused() == "unknown variable AFOOT_PROGRES_HZ; nearest: AFOOT_PROGRESS_HZ"
    monkeypatch.delenv("AFOOT_PROGRES_HZ")
    for name in ("AFOOT_PORT", "AFOOT_SERVICE_HOST", "AFOOT_URL", "AFOOT_TOKEN"):
        monkeypatch.setenv(name, "x")  # ours, or a cluster's: neither is a setting
    assert load_settings().settings == Settings()


EVERYTHING = """
targets = ["tools.py", "package.module", "server.py:mcp", "https://x.example/mcp"]
mcp_servers = ["../mcp.json", "/etc/mcp.json"]
caller_limits = { cursor = 60 }
hooks = [{ on = "before_call", command = "check --now 'a b'" }]
[servers.files]
command = "npx"
args = ["-y", "fs"]
cwd = "data"
start_s = 5
[servers.web]
url = "https://x.example/mcp"
auth = "oauth"
[servers.notes]
module = "notes.py"
[tools."web/*"]
approval = "ask"
read_only = true
idle_s = 3
"""


def test_servers_tools_and_hooks_are_read(alone: Path) -> None:
    """U2: all that a table may have; files are named from the config's folder."""
    found = load_settings(written(alone, EVERYTHING)).settings
    assert found.targets == [str(alone / "tools.py"), "package.module", str(alone / "server.py:mcp"),
                             "https://x.example/mcp"]  # fmt: skip
    assert found.mcp_servers == [str(alone / "../mcp.json"), "/etc/mcp.json"]
    assert found.caller_limits == {"cursor": 60}
    assert found.hooks[0].words() == ["check", "--now", "a b"]
    files, web = found.servers["files"], found.servers["web"]
    assert (files.way(), files.cwd, files.limits()) == ("command", str(alone / "data"), {"start_s": 5})
    assert found.servers["notes"].module == str(alone / "notes.py")
    assert (web.way(), web.auth, web.limits()) == ("url", "oauth", {})
    assert (found.tools["web/*"].approval, found.tools["web/*"].limits()) == ("ask", {"idle_s": 3})


def test_a_table_may_add_to_a_server_from_elsewhere(alone: Path) -> None:
    """U2: where servers may come from a file or a target."""
    assert load_settings(
        written(alone, 'mcp_servers = ["mcp.json"]\n[servers.x]\nidle_s = 5\n')
    ).settings.servers
    file = written(alone, "[servers.x]\nidle_s = 5\n")
    assert load_settings(file, {"targets": ["mcp.json"]}).settings.servers["x"].way() == ""


def test_variables_are_filled_in_when_a_server_is_used() -> None:
    """U2: `${VAR}`, `${VAR:-default}`, `${secret:NAME}`; a missing one is named."""
    server = Server(
        command="${BIN}/x", args=["${A:-one}", "${EMPTY:-two}", "$HOME", "${1}"], env={"K": "${secret:KEY}"}
    )
    found = server.expanded({"BIN": "/bin", "EMPTY": "", "secret:KEY": "s"})
    assert (found.command, found.args, found.env) == ("/bin/x", ["one", "two", "$HOME", "${1}"], {"K": "s"})
    with pytest.raises(KeyError, match="BIN"):
        server.expanded({})
    assert Server(url="${U}", headers={"A": "Bearer ${T}"}).expanded({"U": "u", "T": ""}).headers == {
        "A": "Bearer "
    }


def test_a_wrong_value_in_the_environment_names_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bad input: and not the file."""
    monkeypatch.setenv("AFOOT_IDLE_S", "soon")
    assert "setting idle_s (AFOOT_IDLE_S)" in refused()


def test_a_wrong_flag_says_that_it_is_one() -> None:
    """Bad input: from the command line."""
    assert "setting ceiling_s (flag)" in refused(ceiling_s="never")


def test_a_file_that_cannot_be_read_is_named(alone: Path) -> None:
    """Bad input: missing, not TOML, not text."""
    missing = alone / "missing.toml"
    assert f"config {missing} cannot be read: No such file" in refused(missing)
    broken = written(alone, "idle_s = = 5\n")
    assert f"config {broken}: " in refused(broken) and "line 1" in refused(broken)
    broken.write_bytes(b"idle_s = '\xff'\n")
    assert f"config {broken}: " in refused(broken)


@pytest.mark.parametrize("value", ["[" * 5000 + "]" * 5000, "{a=" * 3000 + "1" + "}" * 3000, "1" * 5000])
def test_a_value_that_python_cannot_read_is_told(alone: Path, value: str) -> None:
    """S8: nested too deep, or a number without end; found by the fuzzer."""
    file = alone / "afoot.toml"
    file.write_text(f"idle_s = 5\ntargets = {value}\n")
    with pytest.raises(ConfigError, match=r"afoot\.toml: "):
        load_settings(file)


def test_a_home_folder_of_nobody_is_a_path_like_any_other(alone: Path) -> None:
    """S8: as in a shell; found by the fuzzer."""
    file = alone / "afoot.toml"
    for user in ("~no-such-user", r"~\u0000"):
        file.write_text(f'targets = ["{user}/a.py"]\n[servers.a]\ncommand = "x"\ncwd = "{user}/b"\n')
        found = load_settings(file).settings
        assert found.targets[0].startswith(f"{alone}/~") and found.servers["a"].cwd.endswith("/b")


@pytest.mark.timeout(20)
def test_a_line_of_blanks_takes_no_time(alone: Path) -> None:
    """S8: the line of a wrong setting was searched for in a time that grew with the cube of its length."""
    file = alone / "afoot.toml"
    file.write_text(" " * 30_000 + "\nidle_s = 'x'\n")
    with pytest.raises(ConfigError, match="line 2"):
        load_settings(file)


def test_the_address_of_a_trace_is_a_link_with_a_place_for_its_id(alone: Path) -> None:
    """V3: it is shown as a link, so it must be one."""
    given = 'otel.trace_url = "https://traces.example/{trace_id}?tab=1"'
    assert load_settings(written(alone, given)).settings.otel.trace_url.endswith("{trace_id}?tab=1")
    for bad in ("javascript:alert('{trace_id}')", "https://traces.example/"):
        assert "{trace_id}" in refused(written(alone, f'otel.trace_url = "{bad}"'))


def test_the_address_of_a_cluster_may_be_a_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    """D1: containers get it in this way."""
    monkeypatch.setenv("AFOOT_CLUSTER", "rediss://ann:secret@redis.example:6380/1")
    assert load_settings().settings.cluster.redis == "rediss://ann:secret@redis.example:6380/1"
