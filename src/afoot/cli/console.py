"""`afoot console`: a fresh link to the web console, and the browsers that used one."""

import os
import sys
import threading
import webbrowser
from typing import Annotated, Any

from cyclopts import App, Parameter

from afoot.cli.calls import At, Json, dumped, width
from afoot.cli.client import connect, part
from afoot.observe.terminal import at as moment
from afoot.observe.terminal import clean, cut

app = App("console", default_parameter=Parameter(negative=(), show_default=False), help_format="plaintext")
HOW_LONG = "it logs one browser in, once, within 10 minutes"


@app.default
def link(
    *,
    open: Annotated[bool, Parameter(help="open it in the browser at once")] = False,
    at: At = "",
    json: Json = False,
) -> int:
    """Print a fresh link to the web console: it logs one browser in, once, within 10 minutes."""
    client = connect(at)
    made: dict[str, Any] = client.post("/api/session/code", {})
    made["url"] = f"{client.url}/#login={made['code']}"  # as this gateway is called here
    if json:
        print(dumped(made))
    else:
        print(made["url"], flush=True)
        print(HOW_LONG, file=sys.stderr)
    if open and not show(made["url"]):
        print(NO_BROWSER, file=sys.stderr)
    return 0


@app.command(name="list")
def listed(*, at: At = "", json: Json = False) -> int:
    """List the browsers that are logged in."""
    found: list[dict[str, Any]] = connect(at).get("/api/session")["sessions"]
    for one in found:
        print(dumped(one) if json else cut(_line(one), width()))
    if not found and not json:
        print("no browser is logged in; a link: afoot console")
    return 0


@app.command
def revoke(session: str, /, *, at: At = "", json: Json = False) -> int:
    """Log a browser out.

    Args:
        session: the id that `afoot console list` shows
    """
    told = connect(at).delete(f"/api/session/{part(session)}")
    print(dumped(told) if json else f"logged out {told['id']}")
    return 0


NO_BROWSER = "no browser could be started here: open the link in one yourself"


def show(url: str, patience_s: float = 2.0) -> bool:
    """Open a link in the person's browser, waiting so long at most; False if there is none to open it in."""
    if sys.platform == "linux" and not any(
        os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
    ):
        return False  # what is found then would take over this terminal
    try:
        browser = webbrowser.get()
    except webbrowser.Error:
        return False
    opening = threading.Thread(target=browser.open, args=(url,), daemon=True)
    opening.start()
    opening.join(patience_s)
    return True


def _line(one: dict[str, Any]) -> str:
    seen = f", seen {moment(one['seen'])}" if one["seen"] else ""
    since, until = moment(one["since"]), moment(one["expires"])
    return f"{one['id']}  since {since}, until {until}{seen}  {clean(one['agent'])}".rstrip()
