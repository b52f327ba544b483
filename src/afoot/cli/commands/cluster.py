"""`afoot cluster` lists the gateways and workers of a cluster."""

import json as json_module
from typing import Any

from afoot.cli.client import connect
from afoot.cli.commands.history import AtOption, JsonOption, to_json_line
from afoot.cli.terminal.text import clean


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
