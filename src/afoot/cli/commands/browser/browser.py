"""`afoot browser` installs the extension's files, says how to load them, and shows the connected browsers."""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from afoot.cli.client import USAGE, CliError
from afoot.cli.options import JsonOption
from afoot.cli.terminal.listing import output_width, to_json_line
from afoot.cli.terminal.text import clean, format_time, truncate

if TYPE_CHECKING:
    from afoot.cli.client import GatewayClient
    from afoot.providers.browser.extension_files import ExtensionCopies

LOAD_STEPS = (
    'open chrome://extensions and turn on "Developer mode"',
    'press "Load unpacked" and choose {folder}',
    "on a page whose tools you want, click afoot in the toolbar and allow the site",
)
USER_SCRIPTS_STEP = 'turn on "Allow User Scripts" under "Details" of afoot on chrome://extensions'


@dataclass(frozen=True)
class BrowserOptions:
    """The options of `afoot browser`."""

    to: Annotated[Path | None, Parameter(help="the folder for the extension; default: ~/afoot-extension")] = (
        None
    )
    rotate: Annotated[bool, Parameter(help="make a new key; browsers reconnect with it")] = False
    trial: Annotated[
        bool, Parameter(name="--try", help="start a new browser with the extension and an example page")
    ] = False
    headless: Annotated[bool, Parameter(show=False)] = False
    json: JsonOption = False


def browser(
    page: str = "",
    /,
    *,
    options: Annotated[BrowserOptions, Parameter(name="*")] = BrowserOptions(),  # noqa: B008
) -> int:
    """Install the extension's files, say how to load them, and show the connected browsers.

    Args:
        page: with --try, the page to open instead of the example
    """
    if options.trial and (options.to is not None or options.rotate):
        raise CliError(USAGE, "--try has a folder and a key of its own: leave --to and --rotate out")
    if options.trial:
        from afoot.cli.commands.browser.trial import run_trial

        return run_trial(page, headless=options.headless, json=options.json)
    if page:
        raise CliError(USAGE, f"a page is opened only with --try: afoot browser --try {page}")
    from afoot.providers.browser.extension_files import ExtensionCopies

    folders, client = ExtensionCopies(), _running_gateway()
    copy = folders.make(options.to or _default_folder(folders))
    problems = _pair_folders(folders, client, options.rotate)
    seen = {"folder": copy.folder, "version": copy.version, "problems": problems, **_browser_status(client)}
    if options.json:
        print(to_json_line({**seen, "steps": [step.format(folder=copy.folder) for step in LOAD_STEPS]}))
        return 0
    print("\n".join(_status_lines(seen, options.rotate)))
    for problem in problems:
        print(clean(problem), file=sys.stderr)
    return 0


def _default_folder(folders: "ExtensionCopies") -> Path:
    """The folder of an earlier installation, or the default, which a file dialog finds easily."""
    from afoot.providers.browser.extension_files import DEFAULT_FOLDER

    known = folders.all()
    return Path(known[0].folder) if known else Path.home() / DEFAULT_FOLDER


def _running_gateway() -> "GatewayClient | None":
    """A client of the gateway on this machine: its state folder has the key of the extension."""
    from afoot.cli.client import GatewayClient
    from afoot.config.state_folder import running_gateway

    address = running_gateway()
    return None if address is None else GatewayClient(address.mcp, address.token)


def _pair_folders(folders: "ExtensionCopies", client: "GatewayClient | None", rotate: bool) -> list[str]:
    """Write the gateway's address and the key into every folder of the extension; returns the problems."""
    from afoot.config import state_folder
    from afoot.config.settings import load_settings
    from afoot.providers.browser.extension_files import link_url

    if client is None:
        where = load_settings(None).settings.http
        url = (
            "" if where.endswith(":0") else link_url(f"http://{where}")
        )  # a gateway writes its address when it starts
        return folders.write_pairings(
            url, state_folder.rotate_link_key() if rotate else state_folder.link_key()
        )
    if rotate:
        problems: list[str] = client.post("/api/extension/rotate", {})["problems"]
        return problems
    return folders.write_pairings(link_url(client.url), state_folder.link_key())


def _browser_status(client: "GatewayClient | None") -> dict[str, Any]:
    """Browsers, tabs and plugins that the gateway knows."""
    if client is None:
        return {"gateway": None, "browsers": [], "plugins": [], "cdp": "", "troubles": []}
    links = {one["profile"]: one for one in client.get("/api/extension")["links"]}
    known = client.get("/api/tabs")
    browsers = [
        {
            **links.get(one["profile"], {"version": None, "since": None}),
            **one,
            "tabs": [tab for tab in known["tabs"] if tab["profile"] == one["profile"]],
        }
        for one in known["browsers"]
    ]
    troubles = client.get("/healthz").get("problems", [])
    more = {"plugins": known["plugins"], "cdp": known["cdp"], "troubles": troubles}
    return {"gateway": client.url, "browsers": browsers, **more}


def _status_lines(seen: dict[str, Any], rotated: bool) -> Iterator[str]:
    """The output for a person: the folder, how to load the extension if no browser has it, the browsers."""
    connected = [one for one in seen["browsers"] if one["state"] == "connected"]
    yield f"extension {seen['version']} in {seen['folder']}"
    if rotated:
        yield "a new key is in force; browsers that were connected connect again by themselves"
    if not connected and not seen["cdp"]:
        yield "to load it into Chrome, Chromium or Edge:"
        yield from (f"  {n}. {step.format(folder=seen['folder'])}" for n, step in enumerate(LOAD_STEPS, 1))
        yield f"  for plugins also {USER_SCRIPTS_STEP}"
    yield f"gateway at {seen['gateway']}" if seen["gateway"] else "no gateway runs; start one: afoot serve"
    for one in connected:
        yield from _browser_lines(one, seen)
    if seen["gateway"] and not connected:
        where = f" at {seen['cdp']}" if seen["cdp"] else ""
        yield f"no browser is {'attached' if where else 'connected'}{where}"
    yield from (clean(f"  {one}") for one in seen["troubles"])
    for plugin in seen["plugins"]:
        why = f": {plugin['why']}" if plugin["why"] else ""
        yield clean(f"plugin {plugin['name']}: {plugin['state']}{why}")


def _browser_lines(one: dict[str, Any], seen: dict[str, Any]) -> Iterator[str]:
    how, version = "connected", seen["version"]
    if one["version"] is not None:  # connected by the extension
        how += f" since {format_time(one['since'])}, extension {one['version']}"
        how += f", not {version}" if one["version"] != version else ""
    yield clean(f"{one['name']}: {how}")
    if seen["plugins"] and not one["user_scripts"]:
        yield f"  plugins cannot run there: {USER_SCRIPTS_STEP}"
    for tab in one["tabs"]:
        tools = f"{tab['tools']} tool{'s' * (tab['tools'] != 1)}" if tab["state"] == "ready" else tab["why"]
        yield truncate(
            f"  {tab['key']:<4} {tab['state']:<12} {tools}  {tab['title'] or tab['url']}", output_width()
        )
    if not one["tabs"]:
        yield "  no tabs that it may see"
