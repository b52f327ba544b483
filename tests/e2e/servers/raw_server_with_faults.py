"""The small server of the provider tests, with the habits that a file holds when it starts, if it is there.

Run as `python -m tests.e2e.servers.raw_server_with_faults FILE`. The mood `sleep` means that it does not
even begin.
"""

import runpy
import sys
import time
from pathlib import Path

SLEEP_S = 60.0

if __name__ == "__main__":
    file = Path(sys.argv[1])
    mood = file.read_text().split() if file.exists() else []
    if "sleep" in mood:
        time.sleep(SLEEP_S)
    sys.argv = [sys.argv[0], "2025", *mood]
    runpy.run_module("tests.providers.upstream.raw_server", run_name="__main__")
