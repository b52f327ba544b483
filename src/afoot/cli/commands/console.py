"""`afoot console` prints a login link to the web console, and lists the browsers that are logged in."""

import os
import sys
import threading
import webbrowser
from typing import Annotated, Any

from cyclopts import App, Parameter

from afoot.cli.client import connect, path_segment
from afoot.cli.options import AtOption, JsonOption
from afoot.cli.terminal.listing import output_width, to_json_line
from afoot.cli.terminal.text import clean, format_time, truncate

LOGIN_LINK_NOTE = "it logs one browser in, once, within 10 minutes"
NO_BROWSER = "no browser could be started here: open the link in one yourself"
console_app = App(
    "console", default_parameter=Parameter(negative=(), show_default=False), help_format="plaintext"
)


@console_app.default
def print_login_link(
    *,
    open: Annotated[bool, Parameter(help="open the link in the browser")] = False,
    at: AtOption = "",
    json: JsonOption = False,
) -> int:
    """Print a login link to the web console. It works once, for one browser, within 10 minutes."""
    client = connect(at)
    made: dict[str, Any] = client.post("/api/session/code", {})
    made["url"] = (
        f"{client.url}/#login={made['code']}"  # the address by which this command reached the gateway
    )
    if json:
        print(to_json_line(made))
    else:
        print(made["url"], flush=True)
        print(LOGIN_LINK_NOTE, file=sys.stderr)
    if open and not open_in_browser(made["url"]):
        print(NO_BROWSER, file=sys.stderr)
    return 0


@console_app.command(name="list")
def list_logins(*, at: AtOption = "", json: JsonOption = False) -> int:
    """List the browsers that are logged in."""
    found: list[dict[str, Any]] = connect(at).get("/api/session")["sessions"]
    for one in found:
        print(to_json_line(one) if json else truncate(_login_line(one), output_width()))
    if not found and not json:
        print("no browser is logged in; a link: afoot console")
    return 0


@console_app.command(name="revoke")
def revoke_login(session: str, /, *, at: AtOption = "", json: JsonOption = False) -> int:
    """Log a browser out.

    Args:
        session: the id that `afoot console list` shows
    """
    reply = connect(at).delete(f"/api/session/{path_segment(session)}")
    print(to_json_line(reply) if json else f"logged out {reply['id']}")
    return 0


def open_in_browser(url: str, wait_s: float = 2.0) -> bool:
    """Open a link in the person's browser and wait at most `wait_s`; False if there is no browser."""
    if sys.platform == "linux" and not any(
        os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
    ):
        return False  # webbrowser would find a text browser, which takes over this terminal
    try:
        browser = webbrowser.get()
    except webbrowser.Error:
        return False
    opening = threading.Thread(target=browser.open, args=(url,), daemon=True)
    opening.start()
    opening.join(wait_s)
    return True


def _login_line(one: dict[str, Any]) -> str:
    seen = f", seen {format_time(one['seen'])}" if one["seen"] else ""
    since, until = format_time(one["since"]), format_time(one["expires"])
    return f"{one['id']}  since {since}, until {until}{seen}  {clean(one['agent'])}".rstrip()
