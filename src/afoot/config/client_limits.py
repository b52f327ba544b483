"""`ClientLimits` says how long a client waits for the answer to a call, by its name (H5, N2).

A limit comes from the settings, from what was learned here, or from the table of known hosts, in this order.
Two things teach: a cancel whose reason is a timeout of the client's SDK, and `afoot install`, which writes a
timeout into a host's file. Learned limits are in `client_limits.json` of the state folder.
"""

import logging
import re
import time
from collections.abc import Callable
from contextlib import nullcontext
from fnmatch import fnmatchcase
from functools import lru_cache
from math import inf

from msgspec import Struct

from afoot.config.settings import Settings
from afoot.config.state_folder import StoredList
from afoot.errors import CallerError

log = logging.getLogger("afoot")

# Hosts whose limit is not moved by progress, by the name they send; 0: none. Measured with a fake model, or
# read in their sources, 2026-11. `mcp`, the default name of the Python SDK, is not here: many programs with
# many limits have it.
KNOWN_LIMITS = {
    "codex-mcp-client": 300.0,
    "gemini-cli-mcp-client*": 600.0,
    "qwen-cli-mcp-client*": 600.0,
    "opencode": 0.0,
    "continue-cli-client": 60.0,
    "@cline/core": 60.0,
    "cline": 60.0,
    "roo?code": 60.0,
    "zed": 60.0,
    "claude-ai": 60.0,
    "goose*": 300.0,
}
SHARED_NAMES = ("", "mcp")  # names that say nothing about the program behind them
NAME_MAX = 100  # characters of a client's name that are looked at
MIN_LEARNED_S = 5.0  # shorter is the timeout of one call, and no limit of a host
LEARNED_FOR_S = 30 * 86_400.0  # after this the client may have become another
MAX_LEARNED = 100
FILE = "client_limits.json"
# The TypeScript SDK, Rust's and Python's. A person's Stop has another reason, or none. Codex gives the same
# reason for both ("MCP response future dropped"), so that only `afoot install` can teach its limit.
_TIMEOUT_REASON = re.compile(
    r"\brequest timed out\b|^request timeout\b|^timed out after [0-9.]+ ?s"
    r"|\bmaximum total timeout exceeded\b",
    re.IGNORECASE,
)


class LearnedLimit(Struct, frozen=True):
    """The limit of one client."""

    client: str  # its name in lower case; of an installed one, a pattern
    limit_s: float
    at: float  # when it was learned
    by: str = "cancel"  # or install


class ClientLimits:
    """The limits of all clients. Without a file, learned limits last as long as this object."""

    def __init__(
        self, file: StoredList[LearnedLimit] | None = None, now: Callable[[], float] = time.time
    ) -> None:
        self._file = file
        self._now = now
        self._learned: list[LearnedLimit] = []

    def limit_s(self, settings: Settings, client: str) -> float:
        """Seconds that this client waits for an answer; inf if nothing limits it."""
        name = _short(client)
        for pattern, seconds in settings.caller_limits.items():
            if fnmatchcase(name, pattern.lower()):
                return seconds or inf
        if (learned := self.learned_for(name)) is not None:
            return learned.limit_s
        known = _known_limit(name)
        return (settings.caller_limit_s if known is None else known) or inf

    def learned_for(self, client: str) -> LearnedLimit | None:
        """The newest limit that was learned for this client."""
        name = _short(client)
        found = [one for one in self.learned() if one.client == name or _is_pattern_of(one, name)]
        return max(found, key=lambda one: one.at, default=None)

    def learn_from_cancel(self, client: str, reason: str, waited_s: float) -> None:
        """Learn from a cancel after `waited_s`, if its reason is the client's timeout."""
        name = _short(client)
        if name in SHARED_NAMES or waited_s < MIN_LEARNED_S or not is_timeout_reason(reason):
            return
        log.info("client %s gave up after %.0f s; calls of it are handed over before that", name, waited_s)
        try:
            self._replace(name, "cancel", [LearnedLimit(name, round(waited_s, 1), self._now())])
        except CallerError as error:
            log.warning("the limit of client %s is not kept: %s", name, error)

    def learn_from_install(self, pattern: str, limit_s: float) -> None:
        """Learn the timeout that `afoot install` has written for a host; raises CallerError."""
        name = pattern.lower()
        if any((one.client, one.limit_s, one.by) == (name, limit_s, "install") for one in self.learned()):
            return
        self._replace(name, "install", [LearnedLimit(name, limit_s, self._now(), "install")])

    def forget_install(self, pattern: str) -> None:
        """Forget what an installation taught; raises CallerError."""
        if any((one.client, one.by) == (pattern.lower(), "install") for one in self.learned()):
            self._replace(pattern.lower(), "install", [])

    def learned(self) -> list[LearnedLimit]:
        """All limits that were learned and still count. A file that cannot be read counts as empty."""
        try:
            found = self._file.read() if self._file is not None else None
        except CallerError as error:
            log.warning("%s; learned limits of clients are not used", error)
            return []
        if found is not None:
            self._learned = found
        oldest = self._now() - LEARNED_FOR_S
        return [one for one in self._learned if one.by == "install" or one.at >= oldest]

    def _replace(self, client: str, by: str, new: list[LearnedLimit]) -> None:
        """Keep `new` in place of what this teacher taught of this client; raises CallerError."""
        with self._file.held() if self._file is not None else nullcontext():
            kept = [one for one in self.learned() if (one.client, one.by) != (client, by)]
            # Any program may teach by cancels under any name, so these make room for each other alone.
            lasting = [one for one in (*kept, *new) if one.by == "install"]
            others = sorted((one for one in (*kept, *new) if one.by != "install"), key=lambda one: one.at)
            self._learned = sorted([*lasting, *others[-MAX_LEARNED:]], key=lambda one: one.at)
            if self._file is not None:
                self._file.write(self._learned)


def stored_client_limits() -> ClientLimits:
    """The limits with those that are kept in the state folder."""
    return ClientLimits(StoredList(FILE, LearnedLimit))


def is_timeout_reason(reason: str) -> bool:
    """Whether a cancel was sent by an SDK whose time was over."""
    return _TIMEOUT_REASON.search(reason) is not None


@lru_cache(maxsize=64)  # each call that outlives a moment asks
def _known_limit(name: str) -> float | None:
    return next((seconds for pattern, seconds in KNOWN_LIMITS.items() if fnmatchcase(name, pattern)), None)


def _short(client: str) -> str:
    return client[:NAME_MAX].lower()


def _is_pattern_of(learned: LearnedLimit, name: str) -> bool:
    return learned.by == "install" and fnmatchcase(name, learned.client)
