"""Tools of the small server of our own that make a day worse."""

import os
import time
from typing import Any

from tests.providers.upstream.raw_server_rpc import fail, say, text, waiting


def pages(request: dict[str, Any], arguments: dict[str, Any]) -> None:
    """Wants the same page visited for ever."""
    page = {"mode": "url", "elicitationId": "e2", "url": "https://example.org/x", "message": "log in"}
    fail(request["id"], -32042, "log in first", {"elicitations": [page]})


def deaf(request: dict[str, Any], arguments: dict[str, Any]) -> None:
    """Lives on, but hears nothing any more."""
    text(request["id"], "what?")
    os.close(0)
    time.sleep(60)


def scream(request: dict[str, Any], arguments: dict[str, Any]) -> None:
    fail(request["id"], -32000, "\x1b[2J" + "no! " * 10_000)


def visit(request: dict[str, Any], arguments: dict[str, Any]) -> None:
    """Wants a page visited first, and tells when it was."""
    if waiting.pop("visited", False):
        text(request["id"], "visited")
        return
    waiting["visited"] = True
    page = {"mode": "url", "elicitationId": "e1", "url": "https://example.org/x", "message": "log in"}
    fail(request["id"], -32042, "log in first", {"elicitations": [page]})
    say("notifications/elicitation/complete", elicitationId="e1")
