"""`afoot allow`: what may run without asking: listed, added, revoked."""

import json as json_module
from typing import Annotated, Any

from cyclopts import App, Parameter

from afoot.cli.calls import At, Json, dumped, width
from afoot.cli.client import connect, part
from afoot.cli.ending import USAGE, Stop
from afoot.cli.review import lasting_option
from afoot.engine.review import EVER
from afoot.observe.terminal import at as moment
from afoot.observe.terminal import cut

app = App("allow", default_parameter=Parameter(negative=(), show_default=False), help_format="plaintext")


@app.default
@app.command(name="list")
def listed(*, at: At = "", json: Json = False) -> int:
    """List what may run without asking."""
    found: list[dict[str, Any]] = connect(at).get("/api/allow")["allowed"]
    if json:
        for one in found:
            print(dumped(one))
        return 0
    if not found:
        print("nothing is allowed without asking, but for what the settings say")
    for one in found:
        print(cut(_line(one), width()))
    return 0


@app.command
def add(
    what: str,
    /,
    *,
    lasts: Annotated[str, Parameter(name="--for", help="ever, or a number of seconds")] = "ever",
    args: Annotated[str, Parameter(help="allow exactly these arguments, a JSON object")] = "",
    at: At = "",
    json: Json = False,
) -> int:
    """Allow a tool to run without asking, as it is defined now; if it changes, it is asked again.

    Args:
        what: the tool's name, SERVER/TOOL, or SERVER/* for every tool that a server has now
    """
    body: dict[str, object] = {"for": lasting_option(lasts, (EVER,))}  # no connection is meant here
    if what.endswith("/*"):
        body["server"] = what.removesuffix("/*")
    else:
        body["tool"] = what
    if args:
        body["arguments"] = _arguments(args)
    _tell(connect(at).post("/api/allow", body), json)
    return 0


@app.command
def revoke(entry: str, /, *, at: At = "", json: Json = False) -> int:
    """Have it asked again.

    Args:
        entry: the id that `afoot allow` shows
    """
    told = connect(at).delete(f"/api/allow/{part(entry)}")
    print(dumped(told) if json else f"revoked {told['id']}: {cut(told['words'], width())}")
    return 0


def _tell(one: dict[str, Any], as_json: bool) -> None:
    print(dumped(one) if as_json else cut(_line(one), width()))


def _line(one: dict[str, Any]) -> str:
    until = f", until {moment(one['until'])}" if one["until"] else ""
    changed = f"; changed since, so asked again: {', '.join(one['changed'])}" if one["changed"] else ""
    return f"{one['id']}  {one['words']}{until}{changed}  (since {moment(one['since'])}, by {one['by']})"


def _arguments(text: str) -> object:
    try:
        found = json_module.loads(text)
    except ValueError as error:
        raise Stop(USAGE, f"--args: not JSON: {error}") from None
    if not isinstance(found, dict):
        raise Stop(USAGE, "--args: must be a JSON object")
    return found
