"""`afoot cluster` lists the members of a cluster, drains them, and takes over those that are gone."""

import json as json_module
import sys
import time
from typing import Annotated, Any

from cyclopts import App, Parameter

from afoot.cli.client import REFUSED, USAGE, CliError, GatewayClient, connect, path_segment
from afoot.cli.options import AtOption, JsonOption
from afoot.cli.terminal.listing import to_json_line
from afoot.cli.terminal.text import clean

LOOK_S = 0.5
cluster_app = App(default_parameter=Parameter(negative=(), show_default=False), help_format="plaintext")

WaitOption = Annotated[bool, Parameter(help="return when its last call has ended")]
ForceOption = Annotated[bool, Parameter(help="do not ask, and also where it lives")]


@cluster_app.default
def cluster(*, at: AtOption = "", json: JsonOption = False) -> int:
    """List the gateways and workers of the cluster, with their leases and their calls."""
    found = connect(at).get("/api/cluster")
    for one in found["members"]:
        if json:
            print(to_json_line({**one, "is_this": one["id"] == found["id"]}))
        else:
            print(_line(one, found["id"]))
    if not found["members"]:
        print(json_module.dumps({"id": ""}) if json else "this gateway is alone: cluster.redis is not set")
    return 0


@cluster_app.command
def drain(name: str = "", /, *, wait: WaitOption = False, at: AtOption = "", json: JsonOption = False) -> int:
    """Have a gateway or a worker take no new calls. Those that it has go on; `resume` ends it.

    Args:
        name: its id, the beginning of its id, its HOST:PORT or its machine; default: the gateway that answers
    """
    client = connect(at)
    id = name or _own_id(client)
    found = client.post(f"/api/cluster/{path_segment(id)}/drain", {})
    if wait:
        found = _wait_until_idle(client, found)
    _print(found, json)
    return 0


@cluster_app.command
def resume(name: str = "", /, *, at: AtOption = "", json: JsonOption = False) -> int:
    """Have a gateway or a worker that was drained take calls again.

    Args:
        name: its id, the beginning of its id, its HOST:PORT or its machine; default: the gateway that answers
    """
    client = connect(at)
    _print(client.delete(f"/api/cluster/{path_segment(name or _own_id(client))}/drain"), json)
    return 0


@cluster_app.command
def takeover(name: str, /, *, force: ForceOption = False, at: AtOption = "", json: JsonOption = False) -> int:
    """Declare a gateway or a worker dead. Others go on with its calls at once; if it lives, it ends.

    Args:
        name: its id, the beginning of its id, its HOST:PORT or its machine
    """
    client = connect(at)
    path = f"/api/cluster/{path_segment(name)}/takeover"
    try:
        reply = client.post(path, {"force": force})
    except CliError as error:
        if force or error.details.get("status") != 409 or not (sys.stdin.isatty() and sys.stderr.isatty()):
            raise
        print(f"afoot: {clean(error.message)}", file=sys.stderr)
        print("declare it dead? [y/N] ", end="", file=sys.stderr, flush=True)
        if sys.stdin.readline().strip().lower() not in ("y", "yes"):
            raise CliError(REFUSED, "nothing was changed") from None
        reply = client.post(path, {"force": True})
    if json:
        print(to_json_line(reply))
    else:
        member, calls = reply["member"], reply["calls"]
        told = f"{member['role']} {member['id']} is taken for dead"
        print(told + (f"; {calls} of its calls are here now" if member["role"] == "gateway" else ""))
    return 0


@cluster_app.command
def rotate_keys(*, at: AtOption = "", json: JsonOption = False) -> int:
    """Make a new key that seals request states and session ids. Older keys open until nothing needs them."""
    found = connect(at).post("/api/cluster/rotate-keys", {})
    if json:
        print(to_json_line(found))
    else:
        print(
            f"key {found['id']} seals in {found['seals_in_s']:.0f} s; {found['keys'] - 1} older keys open"
            f" for at most {found['old_expire_s'] / 86_400:.1f} days more"
        )
    return 0


def _own_id(client: GatewayClient) -> str:
    found = client.get("/api/cluster")["id"]
    if not found:
        raise CliError(USAGE, "this gateway is alone: cluster.redis is not set")
    return str(found)


def _wait_until_idle(client: GatewayClient, member: dict[str, Any]) -> dict[str, Any]:
    """The member once it has no calls any more, or as it was heard of last before it left."""
    while member["calls"]:
        time.sleep(LOOK_S)
        members = client.get("/api/cluster")["members"]
        found = next((one for one in members if one["id"] == member["id"]), None)
        if found is None:
            return {**member, "calls": 0}
        if found["left_s"] <= 0:
            raise CliError(
                REFUSED, f"{found['role']} {found['id']} is silent, and had {found['calls']} calls"
            )
        member = found
    return member


def _print(member: dict[str, Any], json: bool) -> None:
    print(to_json_line(member) if json else _line(member, ""))


def _line(one: dict[str, Any], here: str) -> str:
    lease = (
        f"lease {one['left_s']:.0f} s"
        if one["left_s"] > 0
        else f"silent, {-one['left_s']:.0f} s over its lease"
    )
    what = f"{one['calls']} calls" + (f" of {one['slots']} slots" if one["role"] == "worker" else "")
    more = ", takes no new calls" if one["draining"] else ""
    place = clean(one["url"] or f"{one['host']}, process {one['pid']}")
    mark = "*" if one["id"] == here else " "
    return f"{mark} {one['role']:<7} {one['id']}  {what}, {lease}{more}  {place}"
