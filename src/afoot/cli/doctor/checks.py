"""The checks of `afoot doctor`: packages, config, folders, store, port, clock, hosts, extension and servers.

They change nothing. `check_servers` makes a handshake with every configured server, some at the same
time, each with a time limit.
"""

import asyncio
import os
import re
import socket
import sqlite3
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from email.message import Message
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Raw

from afoot.cli.doctor.findings import Finding, fail, ok, warn
from afoot.config.settings import ConfigError, LoadedSettings, home, load_settings
from afoot.config.state_folder import (
    exposed_files,
    link_key,
    operator_token,
    running_demo,
    running_gateway,
    sealing_key,
)
from afoot.core.ports import Tool, Work
from afoot.errors import AfootError, StoreError
from afoot.store.lock import StoreInUse, StoreLock

if TYPE_CHECKING:
    from afoot.config.settings import LoadedSettings, Settings
    from afoot.providers.upstream.configured_servers import Roster, ServerEntry


REINSTALL_HINT = "install afoot again: pip install --upgrade afoot"
CLOCK_WATCH_S = 0.2  # how long the two clocks are compared
MAX_SKEW_S = 2.0  # file systems keep whole seconds
HANDSHAKE_S = 20.0  # the longest handshake with a server
CLOSE_S = 5.0
CONCURRENT_HANDSHAKES = 4
_REQUIREMENT = re.compile(r"([A-Za-z0-9._-]+)\s*([^;]*)(?:;\s*(.*))?")
_BOUND = re.compile(r"(>=|<=|==|!=|<|>|~=)\s*([0-9.]+)")


def check_python() -> Finding:
    """The Python version against the range that afoot requires."""
    version = ".".join(map(str, sys.version_info[:3]))
    wanted = _package_metadata().get("Requires-Python") or ""
    if not version_fits(version, wanted):
        return fail("python", f"{version}, needs {wanted}", "run afoot with another Python")
    return ok("python", f"{version} ({sys.executable})")


def check_packages() -> Iterator[Finding]:
    """Every required package against its version range."""
    found = list[str]()
    for text in _package_metadata().get_all("Requires-Dist") or ():
        parts = _REQUIREMENT.match(text)
        if parts is None or "extra" in (parts[3] or ""):
            continue
        name = parts[1]
        wanted = parts[2].strip(" ()")
        is_optional = bool(parts[3])
        try:
            version = metadata.version(name)
        except metadata.PackageNotFoundError:
            if not is_optional:
                yield fail(f"package {name}", f"missing, needs {wanted or 'any'}", REINSTALL_HINT)
            continue
        if not version_fits(version, wanted):
            yield fail(f"package {name}", f"{version}, needs {wanted}", REINSTALL_HINT)
        found.append(f"{name} {version}")
    yield (
        ok("packages", ", ".join(found))
        if found
        else fail("packages", "afoot is not installed", REINSTALL_HINT)
    )


def version_fits(version: str, wanted: str) -> bool:
    """Whether a version is in a range such as `<6,>=5.4`."""
    have = _version_numbers(version)
    for sign, text in _BOUND.findall(wanted):
        bound = _version_numbers(text)
        size = max(len(have), len(bound))
        left, right = (have + (0,) * size)[:size], (bound + (0,) * size)[:size]
        checks = {
            ">=": left >= right, "<=": left <= right, "<": left < right, ">": left > right,
            "==": left == right, "!=": left != right,
            "~=": left >= right and left[: len(bound) - 1] == right[: len(bound) - 1],
        }  # fmt: skip
        if not checks[sign]:
            return False
    return True


def check_config(file: Path | None) -> tuple[Finding, LoadedSettings | None]:
    """The settings that a gateway would use; an error is reported with file, line and key."""
    try:
        loaded = load_settings(file)
    except ConfigError as error:
        return fail(
            "config", str(error), "mend it; `afoot init FOLDER` writes every setting into a file"
        ), None
    except AfootError as error:
        return fail("config", str(error), "mend it, or name another with --config"), None
    set_here = sum(origin != "default" for origin in loaded.origin.values())
    if loaded.file is None:
        return ok(
            "config", f"no file, {set_here} settings from the environment; `afoot init` writes one"
        ), loaded
    return ok("config", f"{loaded.file}, {set_here} settings"), loaded


def check_state_folder() -> Finding:
    """The state folder: writable, and its secrets readable by nobody else."""
    place = home()
    try:
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=place):
            pass
    except OSError as error:
        return fail("state folder", f"{place}: {error.strerror}", "set AFOOT_HOME to a folder of yours")
    if exposed := exposed_files():
        names = ", ".join(str(one.relative_to(place)) if one != place else "the folder" for one in exposed)
        fix = f"chmod {700 if exposed[0].is_dir() else 600} {exposed[0]}; a gateway does it when it starts"
        return fail("state folder", f"{place}: others have rights to {names}", fix)
    for name, read in (("token", operator_token), ("key", sealing_key), ("link.key", link_key)):
        try:
            if (place / name).exists():
                read()
        except AfootError as error:
            message, _, fix = str(error).rpartition("; ")
            return fail("state folder", message, fix)
    return ok("state folder", str(place))


def check_store(named: str) -> Finding:
    """The history file: the process that holds it, or whether it can be written."""
    if named == ":memory:":
        return warn("store", "the history is kept in memory only", "set store to a file")
    path = Path(named) if named else home() / "calls.db"
    try:
        with StoreLock(path):
            if path.exists():
                with sqlite3.connect(path, timeout=2) as database:
                    database.execute("begin immediate")
                    database.rollback()
                database.close()
    except StoreInUse as taken:
        who = f"process {taken.pid}" if taken.pid else "a gateway that is just starting"
        return ok("store", f"{path}, held by {who}" + (f" at {taken.url}" if taken.url else ""))
    except (StoreError, sqlite3.Error, OSError) as error:
        return fail("store", f"{path}: {error}", "name another file with store, or mend its permissions")
    return ok("store", f"{path}, free")


def check_port(address: str) -> Finding:
    """The address on which a gateway listens or would listen."""
    host, _, number = address.rpartition(":")
    host = host.strip("[]") or "127.0.0.1"
    fix = "set http to another address, or its port to 0 for any"
    known = running_gateway()
    demo = running_demo()
    try:
        with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host, int(number)))
    except (OSError, ValueError, OverflowError) as error:
        if known is not None and f":{number}/" in known.mcp:
            return ok("port", f"{address}, ours (process {known.pid})")
        if demo is not None and f":{number}/" in demo.mcp:
            return ok("port", f"{address}, used by `afoot demo` (process {demo.pid}) until it ends")
        return fail("port", f"{address}: {error}", fix)
    if known is not None:
        return ok("port", f"{address}, free; a gateway runs at {known.mcp} (process {known.pid})")
    return ok("port", f"{address}, free")


def check_targets(loaded: LoadedSettings) -> Iterator[Finding]:
    """The tool and server files that the config names."""
    from afoot.providers.upstream.configured_servers import FILE_SUFFIXES

    files = [re.sub(r"\.py:.*", ".py", one) for one in loaded.settings.targets if "://" not in one]
    missing = [one for one in files if one.endswith((".py", *FILE_SUFFIXES)) and not Path(one).is_file()]
    for one in missing:
        yield fail("tools", f"{one} is not there", "mend targets in the config")


def check_clock() -> Finding:
    """The wall clock against the monotonic clock and against the file system's clock."""
    wall, steady = time.time(), time.monotonic()
    time.sleep(CLOCK_WATCH_S)
    drift = (time.time() - wall) - (time.monotonic() - steady)
    if abs(drift) > CLOCK_WATCH_S / 4:
        return warn(
            "clock", f"the wall clock went {drift:+.2f} s off in {CLOCK_WATCH_S:g} s", "see who sets it"
        )
    try:
        with tempfile.NamedTemporaryFile(dir=home()) as file:
            skew = os.stat(file.name).st_mtime - time.time()
    except OSError:
        skew = 0.0  # check_state_folder reports it
    if abs(skew) > MAX_SKEW_S:
        text = f"files in {home()} are dated {skew:+.1f} s off"
        return warn("clock", text, "set the clocks, or AFOOT_HOME to a local folder")
    return ok("clock", "wall, steady and file clocks agree")


def check_host_files() -> Iterator[Finding]:
    """Each host's file: whether it has our entry, and whether the program of that entry exists."""
    from afoot.hosts.document import path_warnings
    from afoot.hosts.survey import check_hosts

    for one in check_hosts():
        name, where = f"host {one.title}", str(one.file)
        again = f"afoot install {one.host}"
        if one.state == "ours":
            doubt = "; ".join(path_warnings(one.command))
            yield (
                warn(name, f"{where}: {doubt}", f"{again} from a lasting place") if doubt else ok(name, where)
            )
        elif one.state == "missing":
            yield ok(name, f"{where} has no entry for afoot; `{again}` adds one")
        elif one.state == "gone":
            yield fail(name, f"{where} starts {one.command}, which is not there", again)
        elif one.state == "foreign":
            yield warn(
                name, f"{where}: its entry afoot starts something else", f"rename that one, then {again}"
            )
        else:
            yield fail(name, one.problem or f"{where} cannot be read", "mend the file")


def check_client_limits() -> Iterator[Finding]:
    """The limits of clients that were learned here, with their origin."""
    from afoot.config.client_limits import FILE, stored_client_limits

    learned = stored_client_limits().learned()
    if learned:
        texts = [f"{one.client} {one.limit_s:g} s (by {one.by})" for one in learned]
        yield ok("client limits", f"{', '.join(texts)}; from {home() / FILE}, caller_limits overrides them")


def check_extension() -> Iterator[Finding]:
    """The installed copies of the extension against the shipped version, and the connected browsers."""
    from afoot.providers.browser.extension_files import ExtensionCopies, shipped_manifest

    try:
        wanted, copies = shipped_manifest().version, ExtensionCopies().all()
    except AfootError as error:
        yield fail("extension", str(error), REINSTALL_HINT)
        return
    for copy in copies:
        if copy.version == wanted:
            yield ok("extension", f"{copy.folder}, version {wanted}")
        else:
            yield warn("extension", f"{copy.folder} has {copy.version}, {wanted} is here", "afoot browser")
    if not copies:
        yield ok("extension", f"version {wanted}, in no browser; `afoot browser` says how")
    yield from _check_browsers()


async def check_servers(loaded: "LoadedSettings | None") -> list[Finding]:
    """One finding per server, and one per problem of the files that configure servers."""
    if loaded is None:
        return []
    from afoot.config.settings import ConfigError
    from afoot.providers.upstream.configured_servers import gather_servers

    try:
        roster = gather_servers(loaded.settings, loaded.settings.targets, own_address=loaded.settings.http)
    except ConfigError as error:
        return [fail("servers", str(error), "mend that file")]
    turns = asyncio.Semaphore(CONCURRENT_HANDSHAKES)
    listed: dict[str, ListedTools] = {}
    found = await asyncio.gather(
        *(
            _check_server(name, wanted, turns, loaded.settings, listed)
            for name, wanted in roster.entries.items()
        )
    )
    return [*_roster_findings(roster), *found, *_name_findings(loaded, roster, listed)]


def check_resources() -> Iterator[Finding]:
    """Check for functions that could not be offered as resources or prompts, and resources that they hide."""
    for problem in _ask_gateway("/api/resources").get("problems", ()):
        yield warn("resources", problem, "give one of them another URI or name")


def _check_browsers() -> Iterator[Finding]:
    """The browsers that the running gateway knows; nothing if no gateway runs."""
    from afoot.cli.commands.browser.browser import USER_SCRIPTS_STEP

    found = _ask_gateway("/api/tabs")
    for one in found.get("browsers", ()):
        name, how = f"browser {one['name']}", f"{one['state']}, {one['tabs']} tabs"
        if one["state"] == "connected" and found["plugins"] and not one["user_scripts"]:
            yield warn(name, f"{how}; plugins cannot run there", USER_SCRIPTS_STEP)
        else:
            yield ok(name, how)


def _ask_gateway(path: str) -> dict[str, Any]:
    """The answer of the running gateway; empty if none answers, which `check_port` reports."""
    from afoot.cli.client import CliError, GatewayClient

    known = running_gateway()
    try:
        return {} if known is None else GatewayClient(known.mcp, known.token).get(path)
    except CliError:
        return {}


def _package_metadata() -> Message:
    """The metadata of the installed package; empty if it is not installed."""
    try:
        found = metadata.metadata("afoot")
    except metadata.PackageNotFoundError:
        return Message()
    assert isinstance(found, Message)
    return found


def _version_numbers(version: str) -> tuple[int, ...]:
    found = re.match(r"\d+(?:\.\d+)*", version)
    return tuple(map(int, found[0].split("."))) if found else ()


def _roster_findings(roster: "Roster") -> Iterator[Finding]:
    for problem in roster.problems:
        yield warn("servers", problem, "mend that file, or leave it out of mcp_servers")


def _name_findings(
    loaded: LoadedSettings, roster: "Roster", listed: dict[str, "ListedTools"]
) -> Iterator[Finding]:
    """The tools that a gateway would not offer, or not under the name that their server gives them (U12)."""
    from afoot.engine.catalog import Catalog, EffectiveSettings

    for name, found in sorted(listed.items()):
        for why in found.refused:
            yield warn(f"server {name}", f"a tool is not offered: {why}", "tell its authors")
    servers = {name: entry.server for name, entry in roster.entries.items()}
    catalog = Catalog(EffectiveSettings(loaded.settings.tools, {**loaded.settings.servers, **servers}))
    for _, found in sorted(listed.items()):
        catalog.put(found)
    for note in catalog.notes:
        yield (
            warn("tool names", str(note), "call it by that name, or as server/name")
            if note.is_problem
            else ok("tool names", str(note))
        )


class ListedTools:
    """The tools of a server as it listed them; nothing runs them."""

    def __init__(self, name: str, tools: Sequence[Tool], refused: Sequence[str]) -> None:
        self.name = name
        self.refused = refused
        self._tools = tools

    def tools(self) -> Sequence[Tool]:
        """Return its tools."""
        return self._tools

    def prepare(self, tool: str, arguments: Raw) -> Work:
        """Refuse: the doctor calls no tool of a server."""
        raise NotImplementedError

    def start(self, tool: str, caller: str) -> None:
        """Start nothing."""


async def _check_server(
    name: str,
    wanted: "ServerEntry",
    turns: asyncio.Semaphore,
    settings: "Settings",
    listed: dict[str, ListedTools],
) -> Finding:
    check = f"server {name}"
    if wanted.server.disabled:
        return ok(check, "disabled")
    if wanted.why:
        return fail(check, wanted.why, f"mend it in {wanted.origin}")
    async with turns:
        return await _handshake(check, name, wanted, settings, listed)


async def _handshake(
    check: str, name: str, wanted: "ServerEntry", settings: "Settings", listed: dict[str, ListedTools]
) -> Finding:
    from afoot.config.redactor import add_server_secrets, make_redactor
    from afoot.hosts.secrets_file import environment, read_all
    from afoot.providers.upstream.provider import ServerOptions, Upstream

    try:
        server = wanted.server.expanded(environment())
    except KeyError as missing:
        return fail(check, f"{missing.args[0]} is not set, and its settings use it", "set it")
    redactor = make_redactor(settings)
    add_server_secrets(redactor, server)
    redactor.add_secrets(read_all().values())
    options = ServerOptions(restart_limit=1, target=wanted.target, clean=redactor.text)
    upstream = Upstream(name, server, options=options)
    began = asyncio.get_running_loop().time()
    try:
        async with asyncio.timeout(HANDSHAKE_S):
            await upstream.open()
        took = asyncio.get_running_loop().time() - began
        listed[name] = ListedTools(name, upstream.tools(), upstream.refused)
        return ok(check, f"{upstream.era}, {len(upstream.tools())} tools, {took:.1f} s")
    except TimeoutError:
        return fail(check, f"no handshake within {HANDSHAKE_S:g} s", _server_hint(name, wanted))
    except (AfootError, OSError) as error:
        said = redactor.text(str(error)).removeprefix(f"server {name}").lstrip(": ")
        return fail(check, said, _server_hint(name, wanted))
    finally:
        with suppress(TimeoutError, AfootError, OSError):
            async with asyncio.timeout(CLOSE_S):
                await upstream.close()


def _server_hint(name: str, wanted: "ServerEntry") -> str:
    if wanted.server.auth == "oauth":
        return f"sign in: afoot servers login {name}"
    if wanted.server.command:  # its arguments may contain secrets
        return f"run {wanted.server.command.partition(' ')[0]} by hand, as {wanted.origin} has it"
    return "see that it runs"
