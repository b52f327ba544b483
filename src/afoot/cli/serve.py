"""`afoot serve`: tools offered over MCP until Ctrl-C."""

import logging
import os
import shlex
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

if TYPE_CHECKING:
    from collections.abc import Iterator

    from afoot.core.ports import Tool
    from afoot.providers.servers import Servers
    from afoot.serve.site import Site
    from afoot.state import Address

FLAGS = ("http", "store", "approval")


@dataclass(frozen=True)
class Options:
    """How to serve."""

    config: Annotated[Path | None, Parameter(help="the config file; else the nearest afoot.toml")] = None
    http: Annotated[str | None, Parameter(help="HOST:PORT to listen on; port 0 picks a free one")] = None
    stdio: Annotated[bool, Parameter(help="speak MCP on stdin and stdout instead of HTTP")] = False
    store: Annotated[str | None, Parameter(help="the file that keeps the history")] = None
    approval: Annotated[str | None, Parameter(help="auto or ask: whether calls are asked about")] = None
    cdp: Annotated[str | None, Parameter(help="http://127.0.0.1:PORT, a browser's debugging port")] = None
    reload: Annotated[bool, Parameter(help="read tool files again when they change")] = False
    open: Annotated[bool, Parameter(help="open the web console in the browser")] = False
    json: Annotated[bool, Parameter(help="print one line of JSON with address and token")] = False
    linger: Annotated[bool, Parameter(show=False)] = False  # as `afoot connect` starts it
    bare: Annotated[bool, Parameter(show=False)] = False  # as `afoot browser --try` starts it


def serve(*targets: str, options: Annotated[Options, Parameter(name="*")] = Options()) -> int:  # noqa: B008
    """Serve tools over MCP, and keep their calls' history.

    Args:
        targets: files or modules of tools, module:server, URLs of MCP servers, files with mcpServers
    """
    from afoot import app
    from afoot.config import load

    _log_to_stderr()
    flags: dict[str, object] = {
        name: value for name in FLAGS if (value := getattr(options, name)) is not None
    }
    if targets:
        flags["targets"] = list(targets)
    if options.cdp is not None:
        flags["browser"] = {"cdp": options.cdp}
    loaded = load(options.config, flags, upward=not options.linger)
    if "" not in sys.path and os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())  # modules are named from here
    plan = app.Plan(
        loaded.settings, tuple(loaded.settings.targets), options.stdio, options.reload,
        linger=options.linger, bare=options.bare, source=app.Source(loaded.file, flags),
    )  # fmt: skip

    app.run(plan, partial(_started, options))
    return 0


def _started(options: Options, address: "Address", site: "Site") -> None:
    from msgspec import json
    from msgspec.structs import replace

    # A code, not the token: what stands in a URL may be seen by others.
    address = replace(address, console=link(address, site))
    print(json.encode(address).decode() if options.json else welcome(address, site), flush=True)
    if options.open:
        _open(link(address, site))


def welcome(address: "Address", site: "Site") -> str:
    """What a person is told at the start: where it is, what is wrong, and what to type next."""
    tools = list(site.engine.catalog)
    names = ", ".join(tool.name for tool in tools)
    if len(names) > 60:
        names = f"{names[:60].rpartition(', ')[0]}, …"
    lines = [
        f"afoot serves {len(tools)} tool{'s' * (len(tools) != 1)}{': ' * bool(names)}{names}",
        *(_servers(site.servers) if site.servers is not None else ()),
        f"  MCP      {address.mcp}",
        f"  console  {address.console}",
        f"  pid      {address.pid}",
        *([f"  others   {site.public}/mcp"] if site.public not in ("", site.url) else []),
        "type in another terminal:",
        *(f"  {myself()} {line}" for line in ("tools", _example(tools[0]) if tools else "status", "watch")),
        "Ctrl-C stops it.",
    ]
    return "\n".join(lines)


def link(address: "Address", site: "Site") -> str:
    """A fresh link to the console: it logs one browser in, once."""
    assert site.admission is not None
    return f"{address.console.partition('#')[0]}#login={site.admission.code()[0]}"


def _open(url: str) -> None:
    from afoot.cli.console import NO_BROWSER, show

    if not show(url, 0.0):
        logging.getLogger("afoot").warning(NO_BROWSER)


def _servers(servers: "Servers") -> "Iterator[str]":
    listed = servers.list()
    if listed:
        starting = [one.name for one in listed if one.state == "starting"]
        more = f" (starting: {', '.join(starting)})" if starting else ""
        names = ", ".join(one.name for one in listed)
        yield f"  from {len(listed)} server{'s' * (len(listed) != 1)}: {names}{more}"
    yield from (f"  {one.name}: {one.error}" for one in listed if one.error)
    yield from (f"  {problem}" for problem in servers.problems)


def myself() -> str:
    """How this program is started, so that the line can be pasted into another terminal."""
    program = Path(sys.argv[0])
    if program.name == "__main__.py":
        words = [_near(Path(sys.executable)), "-m", "afoot"]
    else:
        words = [_near(program)]
    home = os.environ.get("AFOOT_HOME")
    prefix = f"AFOOT_HOME={shlex.quote(str(Path(home).absolute()))} " if home else ""
    return prefix + shlex.join(words)


def _near(program: Path) -> str:
    """The program's path as it is shortest from here; only its name if the shell finds it by that."""
    # An active virtual environment is active in this terminal only.
    active = os.environ.get("VIRTUAL_ENV")
    is_ours = active is not None and program.is_relative_to(active)
    if not is_ours and any(Path(folder or ".") == program.parent for folder in os.get_exec_path()):
        return program.name
    try:
        return str(program.absolute().relative_to(Path.cwd()))
    except ValueError:
        return str(program)


def _example(tool: "Tool") -> str:
    import msgspec

    return example(tool.name, msgspec.json.decode(tool.definition).get("inputSchema") or {})


def example(name: str, schema: dict[str, Any]) -> str:
    """A command that calls this tool, with something for each argument that it needs."""
    known: dict[str, Any] = schema.get("properties") or {}
    wanted = schema.get("required") or list(known)[:1]
    words = [f"{one}={_sample(known.get(one) or {})}" for one in wanted]
    return shlex.join(["call", name, *words])


def _sample(schema: dict[str, Any]) -> str:
    import json

    if "default" in schema or schema.get("enum"):
        value = schema["default"] if "default" in schema else schema["enum"][0]
        return value if isinstance(value, str) else json.dumps(value)
    samples = {"integer": "3", "number": "1.5", "boolean": "true", "array": "[]", "object": "{}"}
    return samples.get(str(schema.get("type")), "text")


def _log_to_stderr() -> None:
    logging.basicConfig(
        stream=sys.stderr, level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s"
    )
    logging.getLogger("afoot").setLevel(logging.INFO)
    for chatty in ("httpx2", "mcp"):  # a line for each request, addresses and all
        logging.getLogger(chatty).setLevel(logging.WARNING)
