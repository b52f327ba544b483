"""What servers say of themselves, on a terminal: it is shown, and steers nothing."""

from typing import Any

import pytest
from msgspec import to_builtins

from afoot.cli.commands import servers, tools
from afoot.providers.functions.tool import FunctionProvider, tool
from afoot.serve.api.tools import tool_view
from tests.providers.isolation import isolated_tools

ESCAPE = "\x1b]0;owned\x07\x1b[2J"


def test_a_description_cannot_steer_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    """S1: nor a name, nor an argument's."""
    text = f"reads{ESCAPE}\nmore{ESCAPE}"
    schema = {"properties": {f"a{ESCAPE}": {"type": "string", "description": text}}}
    limits = {"idle_s": 30.0, "ceiling_s": 300.0, "answer_s": 600.0}
    tool: dict[str, Any] = {"name": f"n{ESCAPE}", "description": text, "inputSchema": schema}
    tools._print_tool({**tool, "limits": limits, "patient": True, "server": "s", "approval": "auto"})
    shown = capsys.readouterr().out
    assert "reads" in shown and "\n  more" in shown
    assert "\x1b" not in shown and "\x07" not in shown


def test_a_server_cannot_steer_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    """S1: neither by its version nor by how it died."""
    told: dict[str, Any] = dict.fromkeys(("pid", "in_use", "tools", "resources", "prompts"), 0)
    told |= {"name": "s", "state": "failed", "login": "", "target": "x", "transport": "stdio", "origin": "a"}
    told |= {"error": f"died{ESCAPE}", "version": f"1{ESCAPE}", "era": "", "counted": {}}
    servers._print_server(told, False)
    shown = capsys.readouterr().out
    assert "died" in shown and "\x1b" not in shown and "\x07" not in shown


def test_what_an_isolated_tool_may_use_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    """G1, V2: as its author wrote it; nothing of one that runs in the gateway."""

    @tool(name="plain")
    def plain() -> None: ...

    provider = FunctionProvider([isolated_tools.greedy, plain])
    for offer in provider.tools():
        tools._print_tool(to_builtins(tool_view(offer)))
    provider.close()
    isolated, _, rest = capsys.readouterr().out.partition("plain\n")
    assert "isolated, in a child process: cpu 300 s, memory 400 MB, open_files 1024, processes 64" in isolated
    assert "isolated" not in rest and "server: local" in rest
