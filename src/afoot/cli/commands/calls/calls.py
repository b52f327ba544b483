"""`afoot calls` lists calls, newest first."""

import sys
from dataclasses import dataclass
from typing import Annotated

from cyclopts import Parameter

from afoot.cli.client import connect
from afoot.cli.options import AtOption, JsonOption
from afoot.cli.terminal.listing import calls_table, output_width, to_json_line


@dataclass(frozen=True)
class CallFilter:
    """The filters of `afoot calls`."""

    tool: Annotated[str, Parameter(help="only calls of this tool")] = ""
    server: Annotated[str, Parameter(help="only calls on this server")] = ""
    state: Annotated[str, Parameter(help="live, waiting, queued, running, cancelling or finished")] = ""
    outcome: Annotated[str, Parameter(help="ok, failed, cancelled, timed_out, …")] = ""
    before: Annotated[float | None, Parameter(help="only calls opened before this time (seconds)")] = None
    limit: Annotated[int, Parameter(help="the largest number of calls to list")] = 20


def calls(
    text: str = "",
    /,
    *,
    which: Annotated[CallFilter, Parameter(name="*")] = CallFilter(),  # noqa: B008
    at: AtOption = "",
    json: JsonOption = False,
) -> int:
    """List calls, newest first.

    Args:
        text: only calls with this text in their id, tool, message or arguments
    """
    page = connect(at).get(
        "/api/calls", q=text, tool=which.tool, server=which.server, state=which.state,
        outcome=which.outcome, before=which.before, limit=which.limit,
    )  # fmt: skip
    if json:
        for call in page["calls"]:
            print(to_json_line(call))
        return 0
    for line in calls_table(page["calls"], output_width()):
        print(line)
    if page["next"] is not None:
        print(f"… older ones: --before {page['next']!r}", file=sys.stderr)
    return 0
