"""The command line: one file a group of commands, each imported only when it runs."""

import sys

# Where each command lives; cyclopts imports it when it is typed, or to say what it does.
COMMANDS = {
    "serve": "afoot.cli.serve:serve",
    "call": "afoot.cli.call:call",
    "calls": "afoot.cli.calls:calls",
    "watch": "afoot.cli.watch:watch",
    "log": "afoot.cli.calls:log",
    "cancel": "afoot.cli.calls:cancel",
    "answer": "afoot.cli.answer:answer",
    "tools": "afoot.cli.tools:tools",
    "status": "afoot.cli.tools:status",
    "config": "afoot.cli.setup:config",
    "init": "afoot.cli.setup:init",
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
        default_parameter=Parameter(negative=()),
        help_format="plaintext",
    )
    for name, place in COMMANDS.items():
        app.command(place, name=name)
    try:
        code = app(words, exit_on_error=False, print_error=False, result_action="return_value")
    except CycloptsError as error:
        command = f" {words[0]}" if words and words[0] in COMMANDS else ""
        raise Stop(2, f"{_sentence(error)}; `afoot{command} --help` tells more") from None
    return code if isinstance(code, int) else 0


def _sentence(error: object) -> str:
    """A cyclopts error as one line in our style."""
    text = " ".join(str(error).split()).rstrip(".")
    return text[:1].lower() + text[1:]
