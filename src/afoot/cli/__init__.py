"""The command line: one file a group of commands, each imported only when it runs."""

import sys

# Where each command lives, and what it does; cyclopts imports it when it is typed.
COMMANDS = {
    "serve": ("afoot.cli.serve:serve", "serve tools over MCP, and keep their calls' history"),
    "call": ("afoot.cli.call:call", "call a tool and follow it to its end; Ctrl-C cancels"),
    "calls": ("afoot.cli.calls:calls", "list calls, the newest first"),
    "watch": ("afoot.cli.watch:watch", "watch everything live, or one call"),
    "log": ("afoot.cli.calls:log", "print a call's history"),
    "cancel": ("afoot.cli.calls:cancel", "ask a call to stop"),
    "answer": ("afoot.cli.answer:answer", "answer the question that a call asks"),
    "tools": ("afoot.cli.tools:tools", "list the tools, or show one"),
    "status": ("afoot.cli.tools:status", "say whether a gateway runs, and how it is"),
    "config": ("afoot.cli.setup:config", "print every setting and where it came from"),
    "init": ("afoot.cli.setup:init", "write an afoot.toml and a tools.py to start from"),
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
