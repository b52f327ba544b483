"""The command line: one file a group of commands, each imported only when it runs."""

import sys


def main() -> None:
    """Run the command that was typed."""
    from afoot.cli.serve import quick

    quick(sys.argv[1:])
