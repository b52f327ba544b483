"""Programs from npm that nobody here wrote: where they are, in the versions that package.json names."""

import json
import shutil
from pathlib import Path
from typing import Any, Final

import pytest

from tests.e2e.clients.test_typescript_1 import modules, node
from tests.e2e.gateway_with_servers import ROOT

BROWSERS: Final = ("chromium", "google-chrome")


def package(name: str) -> Path:
    """A package's folder; it must be there, in the version that was asked for."""
    named = json.loads((ROOT / "package.json").read_text())
    wanted = (named["devDependencies"] | named["optionalDependencies"])[name]
    file = modules() / name / "package.json"
    found = json.loads(file.read_text())["version"] if file.is_file() else "missing"
    if found != wanted:
        pytest.fail(f"{name} is {found} in {modules()}, package.json names {wanted}: run scripts/test")
    return file.parent


def program(name: str, *arguments: str) -> list[str]:
    """The command that runs a package's program, the one that it names first."""
    folder = package(name)
    programs: dict[str, str] = json.loads((folder / "package.json").read_text())["bin"]
    return [node(), str(folder / next(iter(programs.values()))), *arguments]


def server(name: str, *arguments: str, **env: str) -> dict[str, Any]:
    """A package's program as a server on stdio."""
    command, *rest = program(name, *arguments)
    return {"command": command, "args": rest, "env": env}


def browser() -> str:
    """Chromium, or a browser that is as good."""
    found = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if found is None:
        pytest.fail("no Chromium: run scripts/test, or install the package chromium")
    return found
