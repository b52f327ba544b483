"""Tasks of a server, as a client sees them: the 2026-07-28 extension, and the tasks of 2025-11-25 (U9).

`ReceivedTask` is one state of a task. The eras differ in the names of fields, and in where results and
questions are: on 2026-07-28 they are in the task itself.
"""

from collections.abc import Mapping
from math import inf
from typing import Any

import msgspec
from msgspec import Raw, Struct, field

from afoot.core.facts import NOTHING
from afoot.wire import mcp_2025, mcp_2026
from afoot.wire.client.incoming import InputRequest, ReceivedProgressMeta
from afoot.wire.client.outgoing import Dialect
from afoot.wire.jsonrpc import PARSE_ERROR, Fault
from afoot.wire.passthrough import CAPABILITIES_KEY
from afoot.wire.results import TASKS_EXTENSION
from afoot.wire.tasks import RELATED_TASK

FINAL = ("completed", "failed", "cancelled")  # statuses that never change again
STATUS_NOTIFICATIONS = ("notifications/tasks", "notifications/tasks/status")  # of 2026-07-28, of 2025-11-25
DEFAULT_POLL_S = 1.0  # for a server that suggests no interval
POLL_BOUNDS_S = (0.02, 300.0)
TTL_MARGIN_S = 60.0  # for the way back

# The `_meta` of every request of 2026-07-28 about a task, and of a call that may become one.
DECLARED: dict[str, Any] = {CAPABILITIES_KEY: {"extensions": {TASKS_EXTENSION: {}}}}


class ReceivedTaskMeta(Struct):
    """The parts of a task's `_meta` that are used here; another afoot says more than the status."""

    details: ReceivedProgressMeta | None = field(name="dev.afoot/progress", default=None)


class ReceivedTask(Struct):
    """A task at one moment; undecoded parts stay as they came."""

    id: str = field(name="taskId")
    status: str = "working"
    message: str | None = field(name="statusMessage", default=None)
    poll_ms: float | None = field(name="pollIntervalMs", default=None)
    poll_ms_2025: float | None = field(name="pollInterval", default=None)
    input_requests: dict[str, InputRequest] | None = field(name="inputRequests", default=None)
    result: Raw = NOTHING
    error: Raw = NOTHING
    meta: Raw = field(name="_meta", default=NOTHING)

    @property
    def is_final(self) -> bool:
        """Whether the status cannot change any more."""
        return self.status in FINAL

    @property
    def poll_s(self) -> float:
        """The seconds to wait before the next request for the task, as the server suggests."""
        given = self.poll_ms if self.poll_ms is not None else self.poll_ms_2025
        least, most = POLL_BOUNDS_S
        return DEFAULT_POLL_S if given is None else min(most, max(least, given / 1000))

    @property
    def details(self) -> ReceivedProgressMeta | None:
        """The numbers that another afoot adds."""
        try:
            return msgspec.json.decode(self.meta or b"{}", type=ReceivedTaskMeta).details
        except (msgspec.DecodeError, RecursionError):
            return None


class _Created2025(Struct):
    task: ReceivedTask


class _RelatedMeta(Struct):
    related: dict[str, Any] = field(name=RELATED_TASK, default_factory=dict)


class _RelatedParams(Struct):
    meta: _RelatedMeta = field(name="_meta", default_factory=_RelatedMeta)


_task_decoder = msgspec.json.Decoder(ReceivedTask)
_created_decoder = msgspec.json.Decoder(_Created2025)
_related_decoder = msgspec.json.Decoder(_RelatedParams)


def runs_as_task_2025(support: str, dialect: Dialect, capabilities: Mapping[str, Any]) -> bool:
    """Whether a call must be sent as a task of 2025-11-25: its tool requires it, and its server has tasks."""
    if support != "required" or dialect.version != mcp_2025.LATEST:
        return False
    found: Any = capabilities
    for key in ("tasks", "requests", "tools", "call"):
        found = found.get(key) if isinstance(found, dict) else None
    return found is not None


def wish_2025(left_s: float) -> dict[str, Any]:
    """`params.task` of a call of 2025-11-25: the task is to be kept for as long as the call may take."""
    return {} if left_s == inf else {"ttl": round((left_s + TTL_MARGIN_S) * 1000)}


def with_tasks_declared(meta: Mapping[str, Any]) -> dict[str, Any]:
    """The `_meta` of a request of 2026-07-28 that declares tasks beside the caller's extensions."""
    declared = meta.get(CAPABILITIES_KEY, {})
    extensions: dict[str, Any] = {**declared.get("extensions", {}), TASKS_EXTENSION: {}}
    return {**meta, CAPABILITIES_KEY: {**declared, "extensions": extensions}}


def requires_tasks(fault: Fault) -> bool:
    """Whether a server of 2026-07-28 refuses a call because its client has not declared tasks."""
    if fault.code != mcp_2026.MISSING_CAPABILITY:
        return False
    required = fault.data.get("requiredCapabilities") if isinstance(fault.data, dict) else None
    extensions = required.get("extensions") if isinstance(required, dict) else None
    return isinstance(extensions, dict) and TASKS_EXTENSION in extensions


def read_task(body: Raw) -> ReceivedTask:
    """A task: the result of `tasks/get`, and on 2026-07-28 of a call; raises Fault if it is none."""
    try:
        return _task_decoder.decode(body)
    except (msgspec.DecodeError, RecursionError) as error:
        raise Fault(PARSE_ERROR, f"no task: {error}") from None


def read_created_2025(result: Raw) -> ReceivedTask | None:
    """The task in the result of a call of 2025-11-25; None if the result is that of the tool itself."""
    try:
        return _created_decoder.decode(result).task
    except (msgspec.DecodeError, RecursionError):
        return None


def related_task(params: Raw) -> str | None:
    """The id of the task that a message of 2025-11-25 belongs to, if it names one."""
    if RELATED_TASK.encode() not in bytes(params):
        return None
    try:
        found = _related_decoder.decode(params).meta.related.get("taskId")
    except (msgspec.DecodeError, RecursionError):
        return None
    return found if isinstance(found, str) else None
