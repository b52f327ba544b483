"""The command line: one file a group of commands, each imported only when it runs."""

import sys

# Where each command lives, imported when it is typed; and what it does.
COMMANDS = {
    "serve": ("afoot.cli.serve:serve", "Serve tools over MCP, and keep the history of their calls."),
    "demo": ("afoot.cli.demo:demo", "Start a gateway with example tools and calls, to look around in."),
    "call": ("afoot.cli.call:call", "Call a tool and follow it to its end; Ctrl-C cancels the call."),
    "calls": ("afoot.cli.calls:calls", "List calls, the newest first."),
    "watch": ("afoot.cli.watch:watch", "Watch all calls live and answer what waits; or one to its end."),
    "log": ("afoot.cli.calls:log", "Print a call's story: how it stands or ended, and what happened when."),
    "cancel": ("afoot.cli.calls:cancel", "Ask a call to stop."),
    "purge": ("afoot.cli.purge:purge", "Have calls go from the history for good."),
    "export": ("afoot.cli.purge:export", "Print the history as lines of JSON, one call after another."),
    "answer": ("afoot.cli.answer:answer", "Answer the question that a call asks."),
    "allow": ("afoot.cli.allow:app", "List what may run without asking; add, revoke."),
    "tools": ("afoot.cli.tools:tools", "List the tools, or show one with its arguments."),
    "servers": ("afoot.cli.servers:app", "List the servers, or show one; add, reload, remove, logs, login."),
    "browser": (
        "afoot.cli.browser:browser",
        "Copy the extension for browsers, say how to load it, and show who is connected.",
    ),
    "new": ("afoot.cli.new:app", "Write a folder to start a plugin for tabs from; or its SDK."),
    "status": ("afoot.cli.tools:status", "Say whether a gateway runs, how it is, and what it is doing."),
    "console": ("afoot.cli.console:app", "Print a fresh link to the web console; list, revoke logins."),
    "tokens": ("afoot.cli.tokens:app", "List who else may use this gateway; add, revoke."),
    "connect": (
        "afoot.cli.connect:connect",
        "Bridge stdin and stdout to the running gateway; starts one if none runs.",
    ),
    "doctor": (
        "afoot.cli.doctor:doctor",
        "Check that everything is in place, and say how to mend what is not.",
    ),
    "config": ("afoot.cli.setup:config", "Print every setting, its value, and where the value came from."),
    "init": (
        "afoot.cli.setup:init",
        "Write an afoot.toml and a tools.py to start from; nothing is overwritten.",
    ),
    "install": (
        "afoot.cli.install:install",
        "Let a host (Claude Code, Cursor, VS Code, …) start afoot, or undo it.",
    ),
}


def main() -> None:
    """Run the command that was typed, and exit with its code."""
    from afoot.cli.ending import ending

    sys.exit(ending(_run, sys.argv[1:]))


def _run(words: list[str]) -> int:
    from cyclopts import App, CycloptsError, Parameter

    from afoot import __version__
    from afoot.cli.ending import Stop

    app = App(
        "afoot",
        help="Tool calls that keep running while they report, and that you can watch, answer and cancel.",
        version=__version__,
        default_parameter=Parameter(negative=(), show_default=False),
        help_format="plaintext",
        help_epilogue=(
            "Exit codes: 0 ok, 1 the tool failed, 2 wrong usage, 3 timed out, 4 cancelled, 5 refused,"
            " 6 lost or no gateway."
        ),
    )
    for order, (name, (place, text)) in enumerate(COMMANDS.items()):
        app.command(place, name=name, help=text, sort_key=order)
    try:
        code = app(words, exit_on_error=False, print_error=False, result_action="return_value")
    except CycloptsError as error:
        command = f" {words[0]}" if words and words[0] in COMMANDS else ""
        raise Stop(2, f"{_sentence(error)}; `afoot{command} --help` tells more") from None
    return code if isinstance(code, int) else 0


def _sentence(error: object) -> str:
    """A cyclopts error as one line in our style."""
    text = " ".join(str(error).partition("Available commands:")[0].split()).rstrip(".")
    return text[:1].lower() + text[1:]
