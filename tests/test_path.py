"""The path of one call stays short: a budget of functions and files, kept by counting them."""

import json
import os
import subprocess
import sys
from pathlib import Path

PROBE = Path(__file__).parent / "path_probe.py"
TOOL = '''
import asyncio
import afoot

@afoot.tool
async def three(ctx: afoot.Context) -> str:
    """Report three times."""
    for n in range(3):
        ctx.report(n + 1, 3, "step")
        await asyncio.sleep(0)
    return "done"
'''


def test_one_call_with_three_reports_crosses_forty_functions_in_twelve_files(tmp_path: Path) -> None:
    """House: in, three reports, and out again, with the history on."""
    tools = tmp_path / "tools.py"
    tools.write_text(TOOL)
    ran = subprocess.run(
        [sys.executable, str(PROBE), str(tools), str(tmp_path / "calls.db")],
        env={**os.environ, "AFOOT_HOME": str(tmp_path / "home"), "AFOOT_PROGRESS_HZ": "0"},
        capture_output=True,
        timeout=25,
        check=False,
    )
    assert ran.stdout, ran.stderr.decode()
    found = json.loads(ran.stdout)
    files = {name.partition(":")[0] for name in found["crossed"]}
    assert found["notifications"] == 3
    assert "store/sqlite.py" in files and "core/rules.py" in files
    assert len(found["crossed"]) <= 40, "\n".join(found["crossed"])
    assert len(files) <= 12, sorted(files)
