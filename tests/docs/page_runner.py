"""Where the blocks of one page are run, in order: a folder, an environment, maybe a gateway beside it."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, Final
from urllib.request import Request, urlopen

import yaml

from afoot.cli import COMMANDS
from afoot.config import mcp_json, settings
from afoot.providers.functions.loading import load_file
from tests.docs.background_programs import Beside
from tests.docs.page import ROOT, Block

ADDRESS: Final = "127.0.0.1:23668"  # the default, which stands in the pages
LIMIT_S: Final = 60.0  # of one block; only a machine that is very busy comes near it
PROGRAMS: Final = {
    "afoot",
    "cd",
    "chromium",
    "docker",
    "git",
    "install",
    "pip",
    "python3",
    "scripts/bench",
    "scripts/serve",
    "scripts/test",
    "systemctl",
}


class Desk:
    """Runs blocks. What a `bash` block printed is what a `text` block behind it must show."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "here"
        self.folder.mkdir()
        self._home = folder / "home"
        self._printed = ""
        self._gateway: subprocess.Popen[str] | None = None
        self._module = ModuleType("docs_page")
        self._run: dict[str, Callable[[Block], None]] = {
            "python": self._python, "bash": self._bash, "text": self._text, "console": self._console,
            "json": self._json, "toml": self._toml, "yaml": self._yaml, "mermaid": lambda _: None,
            "html": self._file, "javascript": self._file,
        }  # fmt: skip
        self._beside = Beside(self.folder)

    def run(self, block: Block) -> None:
        """Run one block; a language nobody can check is a fault of the page."""
        assert block.language in self._run, f"{block.where}: name a language of {', '.join(self._run)}"
        sys.modules[self._module.__name__] = self._module
        self._run[block.language](block)

    def close(self) -> None:
        """Stop what still runs, and forget what was imported from here."""
        self._beside.close()
        self._stop()
        for name, module in list(sys.modules.items()):
            origin = getattr(module, "__file__", None) or ""
            if module is self._module or origin.startswith(f"{self.folder}{os.sep}"):
                del sys.modules[name]

    def _python(self, block: Block) -> None:
        """With a file's name it is that file, and has tools or tests in it; without, it is run here.

        `server` behind the name: a program or an object that the page starts, and no tools of ours.
        """
        code = compile("\n" * block.line + self._addressed(block.text), str(ROOT / block.page), "exec")
        if not block.words:
            exec(code, self._module.__dict__)
            return
        file = self.folder / block.words[0]
        file.write_text(block.text)
        if not file.name.startswith("test_") and "server" not in block.words:
            load_file(file)

    def _bash(self, block: Block) -> None:
        if {"background", "restart"} & {*block.words}:
            self._serve(block)
            return
        if "beside" in block.words:
            self._printed = self._beside.start(self._addressed(block.text), self._environment())
            return
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", self._addressed(block.text)],
            env=self._environment(), cwd=self.folder, timeout=LIMIT_S, text=True, check=False,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        wanted = next((int(word.removeprefix("exit=")) for word in block.words), 0)
        assert done.returncode == wanted, f"{block.where}: exit {done.returncode}\n{done.stdout}"
        self._printed = done.stdout

    def _serve(self, block: Block) -> None:
        """Start the gateway that the block starts; `restart`: in place of the one that runs."""
        self._stop()
        gateway = self._gateway = subprocess.Popen(
            ["bash", "-c", f"exec {block.text}"], env=self._environment(), cwd=self.folder, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        until = time.monotonic() + LIMIT_S
        while not self._is_up():
            assert gateway.poll() is None and time.monotonic() < until, f"{block.where}: it does not serve"
            time.sleep(0.02)

    def _file(self, block: Block) -> None:
        """A file that the reader makes; without a name it is a part of an example's script."""
        if block.words:
            (self.folder / block.words[0]).write_text(block.text)
            return
        found = [
            *(ROOT / "examples").glob("*/*.js"),
            *(ROOT / "src/afoot/providers/browser/example").glob("*.js"),
        ]
        scripts = [path.read_text() for path in found]
        lines = [line.strip() for line in block.text.splitlines()]
        is_there = any(all(line in script for line in lines) for script in scripts)
        assert is_there, f"{block.where}: name the file, or show an example as it is"

    def _is_up(self) -> bool:
        """Whether it serves, and every server behind it has said what it offers or has failed."""
        file = self._home / "gateway.json"
        if not file.exists():
            return False
        told = json.loads(file.read_text())
        url = f"{told['mcp'].removesuffix('/mcp')}/api/servers"
        with urlopen(Request(url, headers={"Authorization": f"Bearer {told['token']}"})) as response:
            return all(one["state"] != "starting" for one in json.load(response)["servers"])

    def _stop(self) -> None:
        if self._gateway is not None:
            self._gateway.send_signal(signal.SIGTERM)
            self._gateway.wait(LIMIT_S)
            self._gateway = None

    def _text(self, block: Block) -> None:
        """The output of the block before; `…` stands for anything, alone in a line for any lines."""
        wanted = ""
        for line in self._beside.addressed(block.text).splitlines():
            # A number at the beginning may be longer, where the machine was busy, and stand further left.
            any_text = ".*".join(re.escape(part) for part in re.sub("^ +(?=…)", "", line.rstrip()).split("…"))
            wanted += "(?:.*\n)*?" if line.strip() == "…" else f"{any_text}[ ]*\n"
        assert re.fullmatch(wanted, self._printed), f"{block.where}: it printed\n{self._printed}"

    def _console(self, block: Block) -> None:
        """A transcript: it begins with a prompt, and each command is one that there is."""
        assert block.text.startswith("$ "), f"{block.where}: a transcript begins with a prompt"
        for line in block.text.splitlines():
            words = shlex.split(line[2:], comments=True) if line.startswith("$ ") else []
            words = [word for word in words if not re.match(r"[A-Z_]+=", word)]
            named = {words[0], Path(words[0]).name} if words else PROGRAMS
            assert named & PROGRAMS, f"{block.where}: {words[0]}?"
            assert words[:1] != ["afoot"] or words[1] in COMMANDS, f"{block.where}: afoot {words[1]}?"

    def _json(self, block: Block) -> None:
        """JSON; a host's list of servers starts ours in a way that there is.

        With a file's name it is a list of other servers, each of which can be taken.
        """
        told: Any = json.loads(block.text)
        if block.words:
            (file := self.folder / block.words[0]).write_text(block.text)
            found = mcp_json.read_host_file(file)
            assert not (found.unusable or found.notes), block.where
            return
        for server in told.get("mcpServers", {}).values():
            if "command" in server:
                assert server["command"].endswith("afoot"), block.where
                is_serving = server["args"][0] == "serve" and "--stdio" in server["args"]
                assert is_serving or server["args"] == ["connect"], block.where
            else:
                assert server["url"] == f"http://{ADDRESS}/mcp", block.where

    def _toml(self, block: Block) -> None:
        """A config file that is taken as it is."""
        file = self.folder / (block.words[0] if block.words else "some.toml")
        file.write_text(block.text)
        assert settings.load_settings(file).file == file

    def _yaml(self, block: Block) -> None:
        """A file of another program: here it only has to be YAML."""
        assert yaml.safe_load(block.text), f"{block.where}: it is empty"

    def _addressed(self, text: str) -> str:
        """The text with the address of the gateway that runs beside it."""
        text = self._beside.addressed(text)
        file = self._home / "gateway.json"
        if ADDRESS not in text or not file.exists():
            return text
        return text.replace(ADDRESS, json.loads(file.read_text())["mcp"].split("/")[2])

    def _environment(self) -> dict[str, str]:
        kept = {key: value for key, value in os.environ.items() if not key.startswith("AFOOT_")}
        return kept | {
            "AFOOT_HOME": str(self._home),
            "AFOOT_HTTP": "127.0.0.1:0",
            "PYTHONUNBUFFERED": "1",
            "XDG_CONFIG_HOME": str(self._home / "config"),
            "COLUMNS": "80",
        }
