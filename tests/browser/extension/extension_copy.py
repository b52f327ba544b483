"""The extension as tests load it: copied and paired by the real program; one key of its manifest differs."""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import afoot

SOURCE: Final = Path(afoot.__file__).parent / "extension"
# Where test pages live: `localhost` is a secure context, `test` is not, and each name is another site.
HOSTS: Final = ["http://*.localhost/*", "http://*.test/*", "http://127.0.0.1/*", "http://127.0.0.2/*"]
LIMIT_S: Final = 60.0


def unpack(folder: Path, environment: Mapping[str, str]) -> None:
    """Have the program copy the extension into a folder and pair it, then permit the test hosts."""
    command = [sys.executable, "-m", "afoot", "browser", "--to", str(folder)]
    done = subprocess.run(
        command, env=dict(environment), capture_output=True, text=True, timeout=LIMIT_S, check=False
    )
    assert done.returncode == 0, done.stderr
    permit(folder)


def permit(folder: Path) -> None:
    """Grant what a person grants with a click, which no headless browser can be made to do."""
    file = folder / "manifest.json"
    file.write_text(json.dumps(permitted(json.loads(file.read_text())), indent=2))


def permitted(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """The manifest of the test copy."""
    return {**manifest, "host_permissions": HOSTS}
