"""Writes the help of each command into reference/commands.md; run it after changing a command."""

import os
import re
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).parent / "reference" / "commands.md"
HELP = re.compile(r"```bash\nafoot (.*?)--help\n```\n\n```text\n.*?```", re.DOTALL)


def told(command: str) -> str:
    """The help of a command at the width of a page; an empty name is the whole program."""
    words = [sys.executable, "-m", "afoot", *command.split(), "--help"]
    done = subprocess.run(
        words, capture_output=True, text=True, check=True, env={**os.environ, "COLUMNS": "80"}
    )
    return "\n".join(line.rstrip() for line in done.stdout.strip().splitlines())


def drawn(page: str) -> str:
    """The page with the current help texts."""
    return HELP.sub(
        lambda found: f"```bash\nafoot {found[1]}--help\n```\n\n```text\n{told(found[1])}\n```", page
    )


if __name__ == "__main__":
    PAGE.write_text(drawn(PAGE.read_text()))
