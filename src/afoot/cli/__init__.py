"""`main` runs the command line; each command's module is imported only when the command runs."""

import gc
import sys
from types import TracebackType

# Each command's function, imported when the command is typed, and its line in `afoot --help`.
COMMANDS = {
    "serve": ("afoot.cli.commands.serve:serve", "Serve tools over MCP and keep the history of their calls."),
    "worker": (
        "afoot.cli.commands.worker:worker",
        "Run functions for the gateways of a cluster.",
    ),
    "cluster": (
        "afoot.cli.commands.cluster:cluster_app",
        "List the gateways and workers of the cluster; drain them, take over the dead.",
    ),
    "demo": (
        "afoot.cli.commands.demo:demo",
        "Start a gateway with example tools and calls.",
    ),
    "call": (
        "afoot.cli.commands.calls.call:call",
        "Call a tool and follow it until it ends. Ctrl-C cancels the call.",
    ),
    "calls": ("afoot.cli.commands.calls.calls:calls", "List calls, newest first."),
    "watch": (
        "afoot.cli.commands.calls.watch:watch",
        "Watch all live calls and answer their questions, or watch one call until it ends.",
    ),
    "log": (
        "afoot.cli.commands.calls.log:log",
        "Print the state or outcome of a call, and its events in order.",
    ),
    "cancel": ("afoot.cli.commands.calls.cancel:cancel", "Ask a call to stop."),
    "purge": ("afoot.cli.commands.calls.purge_export:purge", "Delete calls from the history for good."),
    "export": (
        "afoot.cli.commands.calls.purge_export:export",
        "Print the history as lines of JSON, one call after another.",
    ),
    "answer": ("afoot.cli.commands.calls.answer:answer", "Answer a call's open question."),
    "allow": (
        "afoot.cli.commands.calls.allow:allow_app",
        "List the allowlist of tools that run without asking; add and revoke entries.",
    ),
    "tools": ("afoot.cli.commands.tools:tools", "List all tools, or show one tool with its arguments."),
    "resources": ("afoot.cli.commands.resources:resources", "List all resources and templates."),
    "read": ("afoot.cli.commands.resources:read", "Read a resource, and print or save its contents."),
    "prompts": ("afoot.cli.commands.resources:prompts", "List all prompts with their arguments."),
    "prompt": ("afoot.cli.commands.resources:prompt", "Fill in a prompt and print its messages."),
    "servers": (
        "afoot.cli.commands.servers:servers_app",
        "List all servers, or show one; add, reload, remove, logs, login.",
    ),
    "login": ("afoot.cli.commands.servers:login", "Log in to a server (OAuth) in the browser."),
    "logout": ("afoot.cli.commands.servers:logout", "Delete the tokens of a server, or of all."),
    "browser": (
        "afoot.cli.commands.browser.browser:browser",
        "Install the browser extension's files, and show the connected browsers.",
    ),
    "new": (
        "afoot.cli.commands.browser.new_plugin:app",
        "Write the first files of a browser plugin, or its SDK.",
    ),
    "status": (
        "afoot.cli.commands.status:status",
        "Show whether a gateway runs, its health, and its live calls.",
    ),
    "console": (
        "afoot.cli.commands.console:console_app",
        "Print a login link to the web console; list and revoke logins.",
    ),
    "tokens": (
        "afoot.cli.commands.tokens:tokens_app",
        "List the access tokens of this gateway; add and revoke tokens.",
    ),
    "connect": (
        "afoot.cli.commands.connect:connect",
        "Bridge stdin and stdout to the running gateway. Starts a gateway if none runs.",
    ),
    "doctor": (
        "afoot.cli.doctor:doctor",
        "Check the installation and say how to fix each problem.",
    ),
    "config": (
        "afoot.cli.commands.config:config",
        "Print every setting with its value and its source.",
    ),
    "init": (
        "afoot.cli.commands.config:init",
        "Write a first afoot.toml and tools.py. Existing files are not overwritten.",
    ),
    "install": (
        "afoot.cli.commands.install:install",
        "Add afoot to a host (Claude Code, Cursor, VS Code, …), or remove it.",
    ),
}


def main() -> None:
    """Run the command that was typed and exit with its code."""
    # Imports make many objects and little garbage. With Python's own threshold, a tenth of the processor time
    # that `afoot serve` takes to start is spent on collections (0.38 s instead of 0.35 s). A gateway sets its
    # own threshold later.
    gc.set_threshold(50_000, 20, 20)
    if sys.argv[1:] == ["connect"] and None not in (sys.stdin, sys.stdout, sys.stderr):
        sys.exit(_connect())
    from afoot.cli.client import run_command

    sys.excepthook = _print_crash
    sys.exit(run_command(_run, sys.argv[1:]))


def _connect() -> int:
    """Run `afoot connect` as a host's entry has it, without the parser of the command line.

    A host waits for the first answer, and the parser's imports take about as long as all others together.
    """
    from afoot import __version__
    from afoot.bridge.process import run_bridge
    from afoot.errors import CallerError

    try:
        run_bridge(None, "", __version__)
    except CallerError as error:
        from afoot.cli.client import LOST, CliError, print_error

        return print_error(CliError(LOST, str(error)), ["connect"])
    return 0


def _print_crash(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Print an error that nobody expected, without the secrets in its text (S7)."""
    from traceback import format_exception

    from afoot.core.redaction import DEFAULT_REDACTOR

    print(DEFAULT_REDACTOR.text("".join(format_exception(kind, error, trace))), end="", file=sys.stderr)


def _run(words: list[str]) -> int:
    from cyclopts import App, CycloptsError, Parameter

    from afoot import __version__
    from afoot.cli.client import CliError

    app = App(
        "afoot",
        help="Run tool calls with live progress, and watch, answer and cancel them.",
        version=__version__,
        default_parameter=Parameter(negative=(), show_default=False),
        help_format="plaintext",
        help_epilogue=(
            "Exit codes: 0 ok, 1 the tool failed, 2 wrong usage, 3 timed out, 4 cancelled, 5 refused,"
            " 6 lost, uncertain or no gateway."
        ),
    )
    for order, (name, (function, text)) in enumerate(COMMANDS.items()):
        app.command(function, name=name, help=text, sort_key=order)
    try:
        code = app(words, exit_on_error=False, print_error=False, result_action="return_value")
    except CycloptsError as error:
        command = f" {words[0]}" if words and words[0] in COMMANDS else ""
        raise CliError(2, f"{_sentence(error)}; see `afoot{command} --help`") from None
    return code if isinstance(code, int) else 0


def _sentence(error: object) -> str:
    """A cyclopts error as one line in the style of our messages."""
    text = " ".join(str(error).partition("Available commands:")[0].split()).rstrip(".")
    return text[:1].lower() + text[1:]
