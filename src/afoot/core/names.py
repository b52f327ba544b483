"""`ServerNames` says which tool names belong to which server, and gives tools names that hosts accept (U12).

A server chooses the names of its own tools and nothing else. Settings, hooks, the allowlist and the history
therefore know a tool by its server and its own name there. The name that a client sees is only for show:
`pattern_fits` and `pattern_trusts` never look at it.
"""

import re
from collections import Counter
from collections.abc import Iterable
from fnmatch import fnmatchcase
from hashlib import sha256

from afoot.core.ports import Tool

MAX_NAME_CHARS = 64  # characters of a name that every host takes
MAX_PREFIX_CHARS = 32  # of these for the server
DIGEST_CHARS = 8  # for a digest that tells names apart, also after a restart
OWN_PREFIX = "afoot_"  # of the gateway's own tools
SEPARATOR = "__"  # between a server and the name of its tool
# Names of calls that read a resource or fill in a prompt. No tool has such a name: hosts accept no spaces.
RESOURCE_PREFIX = "resource "
PROMPT_PREFIX = "prompt "

# What the bare own name of a tool, without its server, may set for it.
BARE_ANYTHING, BARE_STRICTER, BARE_NOTHING = "anything", "stricter", "nothing"

_ODD = re.compile(r"[^A-Za-z0-9_-]")
_ADDRESS = re.compile(r"([^/:]*://[^/]*|[^/]*)(?:/(.*))?", re.DOTALL)  # an origin, and a name there


class ServerNames:
    """The names of all servers that are configured, whether they are connected or not.

    Each has a prefix of its own. It depends on the names of the servers alone, so no order of connections
    changes it.
    """

    def __init__(self, servers: Iterable[str]) -> None:
        unique = sorted(set(servers))
        plain = {server: _ODD.sub("_", server) for server in unique}
        times = Counter(plain.values())
        self._prefixes = {
            server: _cut(name, server, MAX_PREFIX_CHARS, times[name] > 1 and name != server)
            for server, name in plain.items()
        }
        # The longest first: names of the server a__b are not those of the server a.
        self._owners = sorted(
            ((f"{prefix}{SEPARATOR}".lower(), server) for server, prefix in self._prefixes.items()),
            key=lambda one: -len(one[0]),
        )

    def owner(self, name: str) -> str | None:
        """The server to which a name SERVER__TOOL belongs; None if it is no such name."""
        lowered = name.lower()
        return next((server for prefix, server in self._owners if lowered.startswith(prefix)), None)

    def is_reserved(self, name: str, server: str) -> bool:
        """Whether this server may not use a name: the gateway or another server has it, or it has a slash."""
        return "/" in name or name.lower().startswith(OWN_PREFIX) or self.is_foreign(name, server)

    def is_foreign(self, name: str, server: str) -> bool:
        """Whether a name says that it is of another server than this, as SERVER__NAME or as SERVER/NAME."""
        is_addressed = any(name.startswith(f"{other}/") for other in self._prefixes if other != server)
        return is_addressed or self.owner(name) not in (None, server)

    def prefixed(self, server: str, own: str, *, is_marked: bool = False) -> str:
        """The name SERVER__TOOL of a tool; `is_marked`: with a digest, as another tool has that name."""
        prefix = self._prefixes.get(server) or _cut(_ODD.sub("_", server), server, MAX_PREFIX_CHARS, False)
        room = MAX_NAME_CHARS - len(prefix) - len(SEPARATOR)
        found = prefix + SEPARATOR + _cut(_ODD.sub("_", own), f"{server}/{own}", room, is_marked)
        if self.owner(found) in (None, server):
            return found
        return prefix + SEPARATOR + _cut(_single(own), f"{server}/{own}", room, True)

    def outside(self, name: str, source: str) -> str:
        """A name for the tool of a page that is in no server's range, with a digest of its source."""
        found = _cut(name, f"{source} {name}", MAX_NAME_CHARS, True)
        # The digest counts too: behind a name that ends with `_`, it makes SERVER__TOOL of it.
        if not self.is_reserved(name, "") and not self.is_reserved(found, ""):
            return found
        return _cut(f"page_{_single(name)}", f"{source} {name}", MAX_NAME_CHARS, True)


def offered_name(own: str) -> str:
    """The name of an upstream's tool in characters that hosts accept; a long one is cut and gets a digest."""
    name = _ODD.sub("_", own)
    is_readable = bool(name.strip("_-"))
    return _cut(name if is_readable else "tool", own, MAX_NAME_CHARS, not is_readable)


def lookup_method(name: str) -> str:
    """The method of MCP that opens calls of this name, if these are no calls of a tool; else empty."""
    if name.startswith(RESOURCE_PREFIX):
        return "resources/read"
    return "prompts/get" if name.startswith(PROMPT_PREFIX) else ""


def titled(name: str) -> str:
    """A tool, a resource or a prompt in a sentence: `tool export`, `resource file:///x`."""
    return name if lookup_method(name) else f"tool {name}"


def own_name(tool: Tool) -> str:
    """The name of a tool at its server."""
    return tool.inner or tool.name


def full_name(tool: Tool) -> str:
    """A tool as settings, limits and the history know it: server/name, whatever it is called here."""
    return f"{tool.server}/{own_name(tool)}"


def pattern_fits(pattern: str, tool: Tool) -> bool:
    """Whether a name or pattern of the settings is for this tool: for its server first, then its own name."""
    own = own_name(tool)
    if tool.source:
        names = (tool.name, f"{tool.server}/{own}", tool.address)
        return pattern in names or _fits_page(pattern, tool, names)
    if "/" in pattern:
        return _fits_server(pattern, tool.server, own)
    # A pattern without a slash may also mean a server, as in "files*".
    names = (tool.alias, f"{tool.server}/{own}", *([own] if tool.bare != BARE_NOTHING else []))
    return any(fnmatchcase(name, pattern) for name in names if name)


def pattern_trusts(pattern: str, tool: Tool) -> bool:
    """Whether a pattern that fits may lower what is asked of this tool, or have it run more often.

    It must say whose tool it means: a stranger chooses the names of its tools as it likes (B7, U12).
    """
    if tool.source:
        # The first page to ask for a name here gets it, so that name says nothing of its origin.
        return pattern == f"{tool.server}/*" or pattern.startswith("plugin:") or "://" in pattern
    if "/" in pattern or pattern in ("*", tool.alias):
        return True
    if pattern.startswith(_ODD.sub("_", tool.server) + SEPARATOR) and fnmatchcase(tool.alias, pattern):
        return True
    return tool.bare == BARE_ANYTHING and fnmatchcase(own_name(tool), pattern)


def _fits_server(pattern: str, server: str, own: str) -> bool:
    """Whether server/name fits. A star ends at the slash: `*good/read` must not mean evil/good/read."""
    slashes = [at for at, char in enumerate(pattern) if char == "/"]
    return any(fnmatchcase(server, pattern[:at]) and fnmatchcase(own, pattern[at + 1 :]) for at in slashes)


def _fits_page(pattern: str, tool: Tool, names: Iterable[str]) -> bool:
    """Whether a pattern is for the tool of a page, which chose its name: a star in an origin ends there."""
    if "://" not in pattern:
        return any(fnmatchcase(name, pattern) for name in names)
    wanted, is_there = _ADDRESS.match(pattern), _ADDRESS.match(tool.address)
    assert wanted is not None and is_there is not None
    origin, name = is_there.groups(default="")
    return fnmatchcase(origin, wanted[1]) and fnmatchcase(name, wanted[2] or "*")


def _cut(name: str, whole: str, limit: int, is_marked: bool) -> str:
    """The name, with a digest of the whole if it is too long or must be told from another."""
    if len(name) <= limit and not is_marked:
        return name
    digest = sha256(whole.encode(errors="surrogatepass")).hexdigest()[:DIGEST_CHARS]
    return f"{name[: limit - DIGEST_CHARS - 1]}_{digest}"


def _single(name: str) -> str:
    """The name without anything that looks like the separator."""
    return re.sub("_{2,}", "_", _ODD.sub("_", name)).strip("_") or "tool"
