"""`own_command` and `example_call` are commands that a person can paste into another terminal."""

import os
import shlex
import sys
from pathlib import Path
from typing import Any


def own_command() -> str:
    """The command line of this program, ready to be pasted into another terminal."""
    program = Path(sys.argv[0])
    if program.name == "__main__.py":
        words = [_shortest_path(Path(sys.executable)), "-m", "afoot"]
    else:
        words = [_shortest_path(program)]
    home = os.environ.get("AFOOT_HOME")
    prefix = f"AFOOT_HOME={shlex.quote(str(Path(home).absolute()))} " if home else ""
    return prefix + shlex.join(words)


def _shortest_path(program: Path) -> str:
    """The shortest path to a program from here; only its name if the shell finds it by name."""
    # A virtual environment that is active here is not active in another terminal.
    active = os.environ.get("VIRTUAL_ENV")
    is_ours = active is not None and program.is_relative_to(active)
    if not is_ours and any(Path(folder or ".") == program.parent for folder in os.get_exec_path()):
        return program.name
    try:
        return str(program.absolute().relative_to(Path.cwd()))
    except ValueError:
        return str(program)


def example_call(name: str, schema: dict[str, Any]) -> str:
    """A command that calls this tool, with a sample value for each required argument."""
    known: dict[str, Any] = schema.get("properties") or {}
    wanted = schema.get("required") or list(known)[:1]
    words = [f"{one}={_sample_value(known.get(one) or {})}" for one in wanted]
    return shlex.join(["call", name, *words])


def _sample_value(schema: dict[str, Any]) -> str:
    import json

    if "default" in schema or schema.get("enum"):
        value = schema["default"] if "default" in schema else schema["enum"][0]
        return value if isinstance(value, str) else json.dumps(value)
    samples = {"integer": "3", "number": "1.5", "boolean": "true", "array": "[]", "object": "{}"}
    return samples.get(str(schema.get("type")), "text")
