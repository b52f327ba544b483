"""`afoot allow` lists the allowlist, adds entries and revokes them."""

import json as json_module
from typing import Annotated, Any

from cyclopts import App, Parameter

from afoot.cli.client import USAGE, CliError, connect, path_segment
from afoot.cli.options import AtOption, JsonOption
from afoot.cli.terminal.listing import output_width, to_json_line
from afoot.cli.terminal.questions.prompts import parse_duration_option
from afoot.cli.terminal.text import format_time, truncate
from afoot.engine.approval.question import EVER

allow_app = App(
    "allow", default_parameter=Parameter(negative=(), show_default=False), help_format="plaintext"
)


@allow_app.default
@allow_app.command(name="list")
def list_allowed(*, at: AtOption = "", json: JsonOption = False) -> int:
    """List the tools that may run without asking."""
    found: list[dict[str, Any]] = connect(at).get("/api/allow")["allowed"]
    if json:
        for one in found:
            print(to_json_line(one))
        return 0
    if not found:
        print("nothing is allowed without asking, but for what the settings say")
    for one in found:
        print(truncate(_entry_line(one), output_width()))
    return 0


@allow_app.command
def add(
    what: str,
    /,
    *,
    lasts: Annotated[str, Parameter(name="--for", help="ever, or a number of seconds")] = "ever",
    args: Annotated[str, Parameter(help="allow only exactly these arguments, a JSON object")] = "",
    at: AtOption = "",
    json: JsonOption = False,
) -> int:
    """Allow a tool to run without asking. If its definition changes, it is asked about again.

    Args:
        what: the tool's name, SERVER/TOOL, or SERVER/* for every tool that a server has now
    """
    body: dict[str, object] = {"for": parse_duration_option(lasts, (EVER,))}  # a command has no connection
    if what.endswith("/*"):
        body["server"] = what.removesuffix("/*")
    else:
        body["tool"] = what
    if args:
        body["arguments"] = _parse_arguments(args)
    _print_entry(connect(at).post("/api/allow", body), json)
    return 0


@allow_app.command
def revoke(entry: str, /, *, at: AtOption = "", json: JsonOption = False) -> int:
    """Revoke an entry: its tools are asked about again.

    Args:
        entry: the id that `afoot allow` shows
    """
    reply = connect(at).delete(f"/api/allow/{path_segment(entry)}")
    print(
        to_json_line(reply) if json else f"revoked {reply['id']}: {truncate(reply['words'], output_width())}"
    )
    return 0


def _print_entry(one: dict[str, Any], as_json: bool) -> None:
    print(to_json_line(one) if as_json else truncate(_entry_line(one), output_width()))


def _entry_line(one: dict[str, Any]) -> str:
    until = f", until {format_time(one['until'])}" if one["until"] else ""
    changed = f"; changed since, so asked again: {', '.join(one['changed'])}" if one["changed"] else ""
    return f"{one['id']}  {one['words']}{until}{changed}  (since {format_time(one['since'])}, by {one['by']})"


def _parse_arguments(text: str) -> object:
    try:
        found = json_module.loads(text)
    except ValueError as error:
        raise CliError(USAGE, f"--args: not JSON: {error}") from None
    if not isinstance(found, dict):
        raise CliError(USAGE, "--args: must be a JSON object")
    return found
