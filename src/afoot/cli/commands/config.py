"""`afoot config` prints every setting with its source; `afoot init` writes a first config and tools file."""

import json as json_module
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from afoot.cli.client import USAGE, CliError
from afoot.cli.options import JsonOption

if TYPE_CHECKING:
    from afoot.core.redaction import Redactor


# One line of help per setting; a test checks that every setting has one.
SETTING_HELP = {
    "http": "where to listen; only loopback, port 0 picks a free one",
    "store": 'the file of the history; empty: calls.db in the state folder; ":memory:" keeps nothing',
    "targets": "files and modules of tools; files are named from this file's folder",
    "idle_s": "seconds without a report after which a call ends",
    "ceiling_s": "seconds on the clock after which a call ends in any case",
    "answer_s": "seconds a question waits for its answer",
    "queue_limit_s": "seconds a call waits for a free slot",
    "start_limit_s": "seconds a server has to start",
    "cancel_grace_s": "seconds a cancelled tool has to stop by itself",
    "max_idle_s": "no tool gets a longer idle limit than this",
    "max_ceiling_s": "no tool gets a higher ceiling than this",
    "server_concurrency": "calls at once on one server; 0: no limit",
    "drain_s": "seconds that calls have to finish when the gateway is told to stop",
    "caller_limits": "seconds that clients wait at most, by their names",
    "caller_limit_s": "seconds that all other clients wait at most",
    "linger_s": "seconds that a gateway started by `afoot connect` stays when nobody needs it",
    "task_after_s": "seconds; a call that takes longer becomes a task for callers that can; 0: none",
    "task_ttl_s": "seconds after its end that a task can be asked for",
    "approval": "auto, or ask: the default for all tools; empty: as each tool is",
    "policy": "empty, or careful: everything is asked about but what is known to be read-only",
    "ask_by": "caller, operator or both: who is asked; empty: the caller if it can be asked",
    "unanswerable": "refuse, or wait: what a call does that nobody can be asked about",
    "max_attempts": "how often a call that is safe to repeat is run, if what it runs on dies",
    "restart_limit": "how often in a row a server that died is started again",
    "progress_hz": "progress notifications a second a call; 0: every one",
    "data_hz": "reports with data a second a call; more are left out, and counted; 0: all are sent",
    "notice_s": "seconds of silence after which the gateway says that a call still lives",
    "sse_after_s": "seconds after which a response becomes a stream",
    "keepalive_s": "seconds between signs of life on a silent stream",
    "stuck_s": "seconds after which a stream that accepts nothing is closed",
    "lifecycle": "off, or stages: progress also for tools that report none",
    "app": "own, all or off: the calls that hosts with MCP Apps show live",
    "max_body_bytes": "the longest request",
    "max_arguments_bytes": "the longest arguments of a call",
    "max_result_bytes": "the longest result of a call",
    "max_unread_bytes": "results that one caller has not read yet, in memory; more wait on disk",
    "max_message_chars": "the longest message of a report",
    "max_data_bytes": "the longest data of a report",
    "max_questions": "questions in one call",
    "history": "best-effort, or required: no new calls while it cannot be written",
    "durable": "normal, or full: survives a power cut, and is slower",
    "retain": "how long calls are kept, as a [retain] table with days, calls, bytes",
    "record_wire": "true keeps what is said on the wires of the newest calls, without secrets",
    "redact": "what counts as a secret, as a [redact] table with names, keep, values",
    "mcp_token": "a secret that MCP clients must send; empty: none is needed on loopback",
    "allow_origins": "web origins that may speak to /mcp",
    "allow_hosts": "further Host headers that mean this gateway",
    "tool_headers": "headers of a caller's HTTP request that tools may see, as ctx.headers",
    "access": "who else may come in, as an [access] table with required, tls_cert, public_url, issuer, …",
    "connections": "bounds for everybody, as a [connections] table with head_bytes, head_s, per_peer, …",
    "mcp_servers": "files of other hosts with MCP servers in them, as mcp.json",
    "hooks": "what is run before, while and after calls, as [[hooks]] tables",
    "metrics": "whether /metrics serves the figures for Prometheus",
    "otel": "telemetry by OpenTelemetry, as an [otel] table with endpoint, headers, service_name",
    "browser": "browser tabs as tools, as a [browser] table with cdp, plugins, link_grace_s, …",
    "isolation": "child processes for isolated tools, as an [isolation] table with cpu_s, memory_bytes, …",
    "cluster": "several gateways as one, as a [cluster] table with redis and name",
    "quota": "what callers may use, as [quota.CALLER] tables with calls, cpu_s, per_s, concurrent",
    "servers": "MCP servers, as [servers.NAME] tables with command or url; and limits by server",
    "tools": "limits and approval by tool, as [tools.NAME] tables with idle_s, approval, …",
}
_SECRET_TABLES = ("env", "headers")  # tables whose values are secrets
_PLAIN_KEYS = ("auth", "tls_key")  # the kind of a login, and the path of a file

TABLE_EXAMPLES = {
    "servers": ('# command = "npx"', '# args = ["-y", "some-mcp-server"]'),
    "tools": ("# idle_s = 60.0",),
    "quota": ("# calls = 100",),
}
TOOLS_TEMPLATE = '''"""Tools to start from: `afoot serve tools.py`, then `afoot call count n=20`."""

import asyncio

import afoot
from afoot import Context


@afoot.tool(read_only=True)
async def count(n: int = 10, ctx: Context | None = None) -> dict[str, int]:
    """Count slowly, and say so.

    Args:
        n: how far to count
    """
    for number in range(1, n + 1):
        await asyncio.sleep(0.5)
        if ctx:
            ctx.report(number, n, f"counted to {number}")
    return {"counted": n}
'''


def config(
    *, file: Annotated[Path | None, Parameter(name="--config")] = None, json: JsonOption = False
) -> int:
    """Print every setting with its value and its source.

    Args:
        file: the config file; default: the nearest afoot.toml
    """
    from afoot.config.redactor import make_redactor
    from afoot.config.settings import home, load_settings

    loaded = load_settings(file)
    redactor = make_redactor(loaded.settings)
    for key, value in _values(loaded.settings).items():
        shown = _masked(redactor, key, value)
        if json:
            line = {"key": key, "value": shown, "from": loaded.origin[key], "help": SETTING_HELP.get(key, "")}
            print(json_module.dumps(line))
        else:
            print(f"{key} = {_toml_literal(shown)}  # {loaded.origin[key]}")
    if not json:
        where = loaded.file or "none found (afoot init writes one)"
        print(f"config file: {where}\nstate folder: {home()}", file=sys.stderr)
    return 0


def init(folder: Path = Path(), /, *, json: JsonOption = False) -> int:
    """Write an afoot.toml with every setting, and a first tools.py. Existing files are not overwritten.

    Args:
        folder: the folder to write to
    """
    written, kept = list[str](), list[str]()
    for name, text in (("afoot.toml", config_template()), ("tools.py", TOOLS_TEMPLATE)):
        path = folder / name
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with path.open("x", encoding="utf-8") as out:
                out.write(text)
            written.append(str(path))
        except FileExistsError:
            kept.append(str(path))
        except OSError as error:
            raise CliError(USAGE, f"{path} cannot be written: {error.strerror}") from None
    if json:
        print(json_module.dumps({"written": written, "kept": kept}))
    else:
        print(
            "\n".join([*(f"wrote {path}" for path in written), *(f"left {path} as it is" for path in kept)])
        )
        print(f"next: {_next_command(folder)}", file=sys.stderr)
    return 0


def config_template() -> str:
    """The text of an afoot.toml with every setting at its default, commented out."""
    from afoot.config.settings import Settings

    lines = [
        "# Settings of afoot. A line without # in front counts; AFOOT_<NAME> in the environment",
        "# goes over it.",
        "",
    ]
    for key, value in _values(Settings()).items():
        lines.append(f"# {SETTING_HELP.get(key, key)}")
        if key == "targets":
            lines += ['targets = ["tools.py"]', ""]
        elif key in TABLE_EXAMPLES:
            lines += [f"# [{key}.NAME]", *TABLE_EXAMPLES[key], ""]
        else:
            lines += [f"# {key} = {_toml_literal(value)}" if value is not None else f"# {key} = 600.0", ""]
    return "\n".join(lines)


def _next_command(folder: Path) -> str:
    from afoot.cli.shell_commands import own_command

    return f"{own_command()} serve" if folder == Path() else f"cd {folder} && {own_command()} serve"


def _masked(redactor: "Redactor", key: str, value: Any) -> Any:
    """A value with its secrets masked; the name of a variable is no secret."""
    if isinstance(value, dict):
        hidden = key in _SECRET_TABLES
        return {name: _mask(one) if hidden else _masked(redactor, name, one) for name, one in value.items()}
    if isinstance(value, list):
        return _masked_words(redactor, value)
    if not isinstance(value, str) or not value:
        return value
    if redactor.is_secret(key) and key not in _PLAIN_KEYS:
        return _mask(value)
    return redactor.prose(value)


def _masked_words(redactor: "Redactor", words: list[Any]) -> list[Any]:
    """A list with its secrets masked, also those behind a flag such as `--api-key`."""
    shown: list[Any] = []
    for number, one in enumerate(words):
        flag = words[number - 1] if number else ""
        is_value = isinstance(flag, str) and flag.startswith("-") and redactor.is_secret(flag.lstrip("-"))
        is_word = isinstance(one, str) and not one.startswith("-")
        shown.append(_mask(one) if is_value and is_word else _masked(redactor, "", one))
    return shown


def _mask(value: Any) -> str:
    text = str(value)
    return text if text.startswith("${") and text.endswith("}") else "(set)"


def _values(settings: Any) -> dict[str, Any]:
    from msgspec import to_builtins

    return {key: to_builtins(getattr(settings, key)) for key in settings.__struct_fields__}


def _toml_literal(value: object) -> str:
    if isinstance(value, dict):
        inner = ", ".join(f"{json_module.dumps(key)} = {_toml_literal(one)}" for key, one in value.items())
        return f"{{{inner}}}"
    if isinstance(value, list):
        return f"[{', '.join(_toml_literal(one) for one in value)}]"
    return "unset" if value is None else json_module.dumps(value)
