"""`python -m afoot` is the command line."""

from afoot.cli import main

main()
