"""`afoot browser`: the extension's folder, how it is loaded, and the browsers that it connects."""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from afoot.cli.calls import Json, dumped, width
from afoot.cli.ending import USAGE, Stop
from afoot.observe.terminal import at, clean, cut

if TYPE_CHECKING:
    from afoot.cli.client import Client
    from afoot.providers.browser.folder import Folders

STEPS = (
    'open chrome://extensions and turn on "Developer mode"',
    'press "Load unpacked" and choose {folder}',
    "on a page whose tools you want, click afoot in the toolbar and allow the site",
)
SWITCH = 'turn on "Allow User Scripts" under "Details" of afoot on chrome://extensions'


@dataclass(frozen=True)
class Options:
    """What is wanted of it."""

    to: Annotated[Path | None, Parameter(help="the folder for the extension; else ~/afoot-extension")] = None
    rotate: Annotated[bool, Parameter(help="make a new key; browsers connect again with it")] = False
    trial: Annotated[
        bool, Parameter(name="--try", help="start a browser of its own, with the extension and an example")
    ] = False
    headless: Annotated[bool, Parameter(show=False)] = False
    json: Json = False


def browser(page: str = "", /, *, options: Annotated[Options, Parameter(name="*")] = Options()) -> int:  # noqa: B008
    """Copy the extension to a folder, say how to load it, and show the browsers that it connects.

    Args:
        page: with --try, the page to open instead of the example
    """
    if options.trial and (options.to is not None or options.rotate):
        raise Stop(USAGE, "--try has a folder and a key of its own: leave --to and --rotate out")
    if options.trial:
        from afoot.cli.trial import try_out

        return try_out(page, headless=options.headless, json=options.json)
    if page:
        raise Stop(USAGE, f"a page is opened only with --try: afoot browser --try {page}")
    from afoot.providers.browser.folder import Folders

    folders, client = Folders(), _client()
    copy = folders.make(options.to or _usual(folders))
    problems = _paired(folders, client, options.rotate)
    seen = {"folder": copy.folder, "version": copy.version, "problems": problems, **_seen(client)}
    if options.json:
        print(dumped({**seen, "steps": [step.format(folder=copy.folder) for step in STEPS]}))
        return 0
    print("\n".join(_told(seen, options.rotate)))
    for problem in problems:
        print(clean(problem), file=sys.stderr)
    return 0


def _usual(folders: "Folders") -> Path:
    """The folder that is there already, or the one that a file dialog finds."""
    from afoot.providers.browser.folder import USUAL

    known = folders.all()
    return Path(known[0].folder) if known else Path.home() / USUAL


def _client() -> "Client | None":
    """The gateway that runs here; its state folder is the one with the key."""
    from afoot.cli.client import Client
    from afoot.state import running

    address = running()
    return None if address is None else Client(address.mcp, address.token)


def _paired(folders: "Folders", client: "Client | None", rotate: bool) -> list[str]:
    """Tell every folder where the gateway is, and the key; gives what went wrong."""
    from afoot import state
    from afoot.config import load
    from afoot.providers.browser.folder import link_url

    if client is None:
        where = load(None).settings.http
        url = "" if where.endswith(":0") else link_url(f"http://{where}")  # a gateway tells when it starts
        return folders.pair(url, state.rotate_link_key() if rotate else state.link_key())
    if rotate:
        problems: list[str] = client.post("/api/extension/rotate", {})["problems"]
        return problems
    return folders.pair(link_url(client.url), state.link_key())


def _seen(client: "Client | None") -> dict[str, Any]:
    """What the gateway knows of browsers."""
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
    told = {"plugins": known["plugins"], "cdp": known["cdp"], "troubles": troubles}
    return {"gateway": client.url, "browsers": browsers, **told}


def _told(seen: dict[str, Any], rotated: bool) -> Iterator[str]:
    """What a person is told: where it is, how to load it while nobody has, and who has."""
    connected = [one for one in seen["browsers"] if one["state"] == "connected"]
    yield f"extension {seen['version']} in {seen['folder']}"
    if rotated:
        yield "a new key is in force; browsers that were connected connect again by themselves"
    if not connected and not seen["cdp"]:
        yield "to load it into Chrome, Chromium or Edge:"
        yield from (f"  {n}. {step.format(folder=seen['folder'])}" for n, step in enumerate(STEPS, 1))
        yield f"  for plugins also {SWITCH}"
    yield f"gateway at {seen['gateway']}" if seen["gateway"] else "no gateway runs; start one: afoot serve"
    for one in connected:
        yield from _browser(one, seen)
    if seen["gateway"] and not connected:
        where = f" at {seen['cdp']}" if seen["cdp"] else ""
        yield f"no browser is {'attached' if where else 'connected'}{where}"
    yield from (clean(f"  {one}") for one in seen["troubles"])
    for plugin in seen["plugins"]:
        why = f": {plugin['why']}" if plugin["why"] else ""
        yield clean(f"plugin {plugin['name']}: {plugin['state']}{why}")


def _browser(one: dict[str, Any], seen: dict[str, Any]) -> Iterator[str]:
    how, version = "connected", seen["version"]
    if one["version"] is not None:  # by the extension
        how += f" since {at(one['since'])}, extension {one['version']}"
        how += f", not {version}" if one["version"] != version else ""
    yield clean(f"{one['name']}: {how}")
    if seen["plugins"] and not one["user_scripts"]:
        yield f"  plugins cannot run there: {SWITCH}"
    for tab in one["tabs"]:
        tools = f"{tab['tools']} tool{'s' * (tab['tools'] != 1)}" if tab["state"] == "ready" else tab["why"]
        yield cut(f"  {tab['key']:<4} {tab['state']:<12} {tools}  {tab['title'] or tab['url']}", width())
    if not one["tabs"]:
        yield "  no tabs that it may see"
