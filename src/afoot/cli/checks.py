"""The checks of `afoot doctor` that only look: packages, config, folders, store, port, hosts, clock."""

import os
import re
import socket
import sqlite3
import sys
import tempfile
import time
from collections.abc import Iterator
from email.message import Message
from importlib import metadata
from pathlib import Path

from afoot.cli.finding import Finding, fail, ok, warn
from afoot.config import ConfigError, Loaded, home, load
from afoot.errors import AfootError, StoreError
from afoot.state import running
from afoot.store.lock import StoreLock, StoreTaken

REINSTALL = "install afoot again: pip install --upgrade afoot"
LOOK_S = 0.2
SKEW_S = 2.0  # file systems keep whole seconds
_REQUIREMENT = re.compile(r"([A-Za-z0-9._-]+)\s*([^;]*)(?:;\s*(.*))?")
_BOUND = re.compile(r"(>=|<=|==|!=|<|>|~=)\s*([0-9.]+)")


def python() -> Finding:
    """The interpreter, against what this package asks for."""
    version = ".".join(map(str, sys.version_info[:3]))
    wanted = _asked().get("Requires-Python") or ""
    if not fits(version, wanted):
        return fail("python", f"{version}, needs {wanted}", "run afoot with another Python")
    return ok("python", f"{version} ({sys.executable})")


def packages() -> Iterator[Finding]:
    """Every package that this one needs, against its range."""
    found = list[str]()
    for text in _asked().get_all("Requires-Dist") or ():
        parts = _REQUIREMENT.match(text)
        if parts is None or "extra" in (parts[3] or ""):
            continue
        name, wanted, is_optional = parts[1], parts[2].strip(" ()"), bool(parts[3])
        try:
            version = metadata.version(name)
        except metadata.PackageNotFoundError:
            if not is_optional:
                yield fail(f"package {name}", f"missing, needs {wanted or 'any'}", REINSTALL)
            continue
        if not fits(version, wanted):
            yield fail(f"package {name}", f"{version}, needs {wanted}", REINSTALL)
        found.append(f"{name} {version}")
    yield ok("packages", ", ".join(found)) if found else fail("packages", "afoot is not installed", REINSTALL)


def fits(version: str, wanted: str) -> bool:
    """Whether a version is in a range such as `<6,>=5.4`."""
    have = _numbers(version)
    for sign, text in _BOUND.findall(wanted):
        bound = _numbers(text)
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


def config(file: Path | None) -> tuple[Finding, Loaded | None]:
    """The settings that would be in force; a file with an error is named with line and key."""
    try:
        loaded = load(file)
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


def folder() -> Finding:
    """The state folder: there, ours alone, and with secrets nobody else reads."""
    place = home()
    try:
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=place):
            pass
    except OSError as error:
        return fail("state folder", f"{place}: {error.strerror}", "set AFOOT_HOME to a folder of yours")
    open_files = [name for name in ("token", "key", "link.key", "secrets.json") if _is_open(place / name)]
    if open_files:
        names = ", ".join(open_files)
        return fail(
            "state folder", f"others may read {names} in {place}", f"chmod 600 {place}/{open_files[0]}"
        )
    return ok("state folder", str(place))


def store(named: str) -> Finding:
    """The history: who has it, or whether it could be written."""
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
    except StoreTaken as taken:
        who = f"process {taken.pid}" if taken.pid else "a gateway that is just starting"
        return ok("store", f"{path}, held by {who}" + (f" at {taken.url}" if taken.url else ""))
    except (StoreError, sqlite3.Error, OSError) as error:
        return fail("store", f"{path}: {error}", "name another file with store, or mend its permissions")
    return ok("store", f"{path}, free")


def port(address: str) -> Finding:
    """Where a gateway listens, or would."""
    host, _, number = address.rpartition(":")
    host = host.strip("[]") or "127.0.0.1"
    fix = "set http to another address, or its port to 0 for any"
    known = running()
    try:
        with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host, int(number)))
    except (OSError, ValueError, OverflowError) as error:
        if known is not None and f":{number}/" in known.mcp:
            return ok("port", f"{address}, ours (process {known.pid})")
        return fail("port", f"{address}: {error}", fix)
    if known is not None:
        return ok("port", f"{address}, free; a gateway runs at {known.mcp} (process {known.pid})")
    return ok("port", f"{address}, free")


def targets(loaded: Loaded) -> Iterator[Finding]:
    """The files of tools and servers that the config names."""
    from afoot.providers.roster import FILES

    files = [re.sub(r"\.py:.*", ".py", one) for one in loaded.settings.targets if "://" not in one]
    missing = [one for one in files if one.endswith((".py", *FILES)) and not Path(one).is_file()]
    for one in missing:
        yield fail("tools", f"{one} is not there", "mend targets in the config")


def clock() -> Finding:
    """The wall clock against the one that never jumps, and against the file system's."""
    wall, steady = time.time(), time.monotonic()
    time.sleep(LOOK_S)
    drift = (time.time() - wall) - (time.monotonic() - steady)
    if abs(drift) > LOOK_S / 4:
        return warn("clock", f"the wall clock went {drift:+.2f} s off in {LOOK_S:g} s", "see who sets it")
    try:
        with tempfile.NamedTemporaryFile(dir=home()) as file:
            skew = os.stat(file.name).st_mtime - time.time()
    except OSError:
        skew = 0.0  # the state folder's own check tells
    if abs(skew) > SKEW_S:
        text = f"files in {home()} are dated {skew:+.1f} s off"
        return warn("clock", text, "set the clocks, or AFOOT_HOME to a local folder")
    return ok("clock", "wall, steady and file clocks agree")


def hosts() -> Iterator[Finding]:
    """Each host's file that is there: whether it has our entry, and whether what that starts is there."""
    from afoot.hosts.check import check
    from afoot.hosts.entry import doubts

    for one in check():
        name, where = f"host {one.title}", str(one.file)
        again = f"afoot install {one.host}"
        if one.state == "ours":
            doubt = "; ".join(doubts(one.command))
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


def browser() -> Iterator[Finding]:
    """The extension's copies against the one that is shipped, and the browsers that are connected."""
    from afoot.providers.browser.folder import Folders, shipped

    try:
        wanted, copies = shipped().version, Folders().all()
    except AfootError as error:
        yield fail("extension", str(error), REINSTALL)
        return
    for copy in copies:
        if copy.version == wanted:
            yield ok("extension", f"{copy.folder}, version {wanted}")
        else:
            yield warn("extension", f"{copy.folder} has {copy.version}, {wanted} is here", "afoot browser")
    if not copies:
        yield ok("extension", f"version {wanted}, in no browser; `afoot browser` says how")
    yield from _connected()


def _connected() -> Iterator[Finding]:
    """The browsers that the running gateway knows; without one nothing can be said."""
    from afoot.cli.browser import SWITCH
    from afoot.cli.client import Client
    from afoot.cli.ending import Stop

    known = running()
    try:
        found = {"browsers": []} if known is None else Client(known.mcp, known.token).get("/api/tabs")
    except Stop:
        return  # the port's own check tells
    for one in found["browsers"]:
        name, how = f"browser {one['name']}", f"{one['state']}, {one['tabs']} tabs"
        if one["state"] == "connected" and found["plugins"] and not one["user_scripts"]:
            yield warn(name, f"{how}; plugins cannot run there", SWITCH)
        else:
            yield ok(name, how)


def _asked() -> Message:
    """What the installed package says that it needs; nothing if it is not installed."""
    try:
        found = metadata.metadata("afoot")
    except metadata.PackageNotFoundError:
        return Message()
    assert isinstance(found, Message)
    return found


def _numbers(version: str) -> tuple[int, ...]:
    found = re.match(r"\d+(?:\.\d+)*", version)
    return tuple(map(int, found[0].split("."))) if found else ()


def _is_open(file: Path) -> bool:
    try:
        return bool(file.stat().st_mode & 0o077)
    except OSError:
        return False
