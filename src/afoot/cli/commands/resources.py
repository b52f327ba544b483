"""`afoot resources` and `afoot prompts` list what is offered besides tools; `read` and `prompt` use it.

A resource or prompt of the gateway's own functions is a call: it is followed as `afoot call` follows a tool.
"""

import sys
from base64 import b64decode
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from afoot.cli.client import USAGE, CliError, GatewayClient, connect
from afoot.cli.commands.calls.call import TerminalFollower
from afoot.cli.options import AtOption, JsonOption
from afoot.cli.terminal.call_backend import GatewayBackend
from afoot.cli.terminal.call_output import choose_output, closing_output
from afoot.cli.terminal.fact_text import content_text
from afoot.cli.terminal.listing import output_width, to_json_line
from afoot.cli.terminal.text import clean, truncate

LOOKUP_S = 600.0  # a server may have to be started, and may take its time


def resources(*, at: AtOption = "", json: JsonOption = False) -> int:
    """List all resources and templates, and say what could not be offered."""
    found = connect(at).get("/api/resources")
    entries = [*found["resources"], *found["templates"]]
    for one in entries:
        print(to_json_line(one) if json else _line(str(one.get("uri") or one.get("uriTemplate")), one))
    if not entries and not json:
        print("no resources")
    for problem in found["problems"]:
        print(clean(problem), file=sys.stderr)
    return 0


def read(
    uri: str,
    /,
    *,
    output: Annotated[str, Parameter(help="write the contents to this file, as they are")] = "",
    at: AtOption = "",
    json: JsonOption = False,
) -> int:
    """Read a resource and print its contents. Ctrl-C cancels the read.

    Args:
        uri: the resource
    """
    if output and json:
        raise CliError(USAGE, "--output and --json exclude each other")
    client = connect(at)
    if output:
        found = client.post("/api/resources/read", {"uri": uri}, LOOKUP_S)
        Path(output).write_bytes(b"".join(_bytes(one) for one in found["contents"]))
        return 0
    return _look_up(client, "/api/resources/read", {"uri": uri}, json)


def prompts(*, at: AtOption = "", json: JsonOption = False) -> int:
    """List all prompts with their arguments."""
    found = connect(at).get("/api/prompts")["prompts"]
    for one in found:
        print(to_json_line(one) if json else _line(_usage(one), one))
    if not found and not json:
        print("no prompts")
    return 0


def prompt(name: str, /, *words: str, at: AtOption = "", json: JsonOption = False) -> int:
    """Fill in a prompt and print its messages. Ctrl-C cancels it.

    Args:
        name: the prompt's name
        words: its arguments as key=value
    """
    given: dict[str, str] = {}
    for word in words:
        key, sign, value = word.partition("=")
        if not sign or not key:
            raise CliError(USAGE, f"{word!r}: arguments are written key=value")
        given[key] = value
    return _look_up(connect(at), "/api/prompts/get", {"name": name, "arguments": given}, json)


def _look_up(client: GatewayClient, path: str, body: dict[str, Any], as_json: bool) -> int:
    """Print the answer; one that is a call of the gateway is followed until its end."""
    if as_json:
        print(to_json_line(client.post(path, body, LOOKUP_S)))
        return 0
    found = client.post(path, body, LOOKUP_S, prefer="respond-async")
    if "id" in found:
        backend = GatewayBackend(client)
        with closing_output(choose_output(False)) as output:
            follower = TerminalFollower(backend, output, sys.stdin.isatty())
            return follower.run(backend.follow(found["id"]))
    blocks = [{"type": "resource", "resource": one} for one in found.get("contents", ())]
    blocks += [one["content"] for one in found.get("messages", ())]
    for block in blocks:
        print(content_text(block))
    return 0


def _bytes(content: dict[str, Any]) -> bytes:
    return b64decode(content["blob"]) if "blob" in content else str(content.get("text", "")).encode()


def _usage(one: dict[str, Any]) -> str:
    arguments = one.get("arguments") or ()
    words = [f"{arg['name']}=…" if arg.get("required") else f"[{arg['name']}=…]" for arg in arguments]
    return " ".join([str(one["name"]), *words])


def _line(subject: str, one: dict[str, Any]) -> str:
    what = str(one.get("description") or one.get("title") or "").split("\n")[0]
    server = "" if one["server"] == "local" else f"  ({one['server']})"
    return truncate(clean(f"{subject}  {what}{server}").rstrip(), output_width())
