"""What a tool was given is in no file of the gateway, whatever the tool does with it."""

from pathlib import Path
from typing import Final

from tests.e2e.gateway_with_servers import fronting
from tests.serve.api_client import Api

TOOL: Final = '''
import logging

import afoot


def _say(secret: str) -> None:
    logging.getLogger("bank").error("tried %r", secret)


@afoot.tool
async def pay(password: str) -> str:
    """Pays, and talks about it."""
    _say(password)
    raise RuntimeError(f"{password!r} is wrong")


@afoot.tool
def lend(password: str) -> str:
    """Lends, from a thread."""
    _say(password)
    return "done"
'''


def test_no_file_has_what_a_tool_was_given(tmp_path: Path) -> None:
    """S4: neither the history nor the log, which has the line itself."""
    file = tmp_path / "bank.py"
    file.write_text(TOOL)
    with fronting(tmp_path / "gate", {}, {}, (file,)) as gateway:
        api = Api(gateway)
        for tool in ("pay", "lend"):
            api.ended(api.start(tool, password='it\'s "hunter2"'))
        assert gateway.said().count("bank: tried") >= 2 and "[redacted]" in gateway.said()
    for one in (tmp_path / "gate").rglob("*"):
        assert not one.is_file() or b"hunter2" not in one.read_bytes(), one
