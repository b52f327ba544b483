"""How long a call still takes, on the bars of the terminal."""

import re
from pathlib import Path

from tests.cli.pseudo_terminal import Terminal, terminal
from tests.e2e.gateway import Gateway

TOOLS = str(Path(__file__).parents[2] / "e2e" / "tools.py")
CALL = ["call", "count_up", "n=1000", "step_s=0.05"]


def told(shown: Terminal) -> int:
    """The time left that stands on the screen, in seconds."""
    shown.until(" left")
    found = re.search(r"~(\d+):(\d\d) left", shown.text)
    assert found, shown.text
    return 60 * int(found[1]) + int(found[2])


def test_bars_show_how_long_it_still_takes(gateway: Gateway, lone: dict[str, str]) -> None:
    """P9, V2: of a call at the gateway, of one made right here, and of everything that is watched."""
    with (
        terminal(CALL, gateway.environment) as at_gateway,
        terminal([*CALL, "--target", TOOLS], {**lone, "E2E_MARKS": str(gateway.folder)}) as here,
        terminal(["watch"], gateway.environment) as watching,
    ):
        for shown in (at_gateway, here):
            assert 35 < told(shown) < 80  # 50 on a machine that is not busy
        watching.until(" left")
        for shown in (at_gateway, here):
            shown.type("\x03")
            assert shown.end() == 4
        watching.type("\x03")
        assert watching.end() == 0
