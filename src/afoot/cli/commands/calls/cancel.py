"""`afoot cancel` asks a call to stop."""

from afoot.cli.client import connect, path_segment
from afoot.cli.options import AtOption, JsonOption
from afoot.cli.terminal import text as terminal
from afoot.cli.terminal.listing import to_json_line


def cancel(call: str, /, *, reason: str = "", at: AtOption = "", json: JsonOption = False) -> int:
    """Ask a call to stop.

    Args:
        call: the call's id, or its last characters
        reason: the reason, for the tool and its caller
    """
    body = {"reason": reason} if reason else {}
    reply = connect(at).post(f"/api/calls/{path_segment(call)}/cancel", body)
    print(
        to_json_line(reply)
        if json
        else f"{terminal.clean(reply['tool'])} {terminal.short_id(reply['id'])}: {reply['state']}"
    )
    return 0
