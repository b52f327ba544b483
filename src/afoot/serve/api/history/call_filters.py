"""`read_filters` reads the filters of a query for calls; the list, the summary and the export share it."""

from collections.abc import Mapping

from afoot.core.names import own_name
from afoot.core.ports import CallQuery
from afoot.observe.eta import MIDDLE, MIN_RUNS, quantile
from afoot.serve.api.request import ApiError, ApiRequest, read_choice, read_number
from afoot.serve.gateway_state import GatewayState

OUTCOMES = ("ok", "failed", "refused", "cancelled", "timed_out", "lost", "uncertain")
FAILED_OUTCOMES = ("failed", "timed_out", "lost", "uncertain")  # a refused call failed at nothing
# Filters of calls that have ended: the values of live calls are not known, or change.
ENDED_FILTERS = ("asked", "slower")
FILTERS = ("q", "tool", "server", "caller", "outcome", "parent", "since", "until", "roots", *ENDED_FILTERS)
SLOWER_TIMES = 2.0  # slower than usual: more than so many times the middle of the tool's newest runs
SLOWER_S = 1.0  # and at least so much longer
LAST_TIME = 1e12


def read_filters(request: ApiRequest, given: Mapping[str, str]) -> CallQuery:
    """The calls that a query wants; raises ApiError."""
    return CallQuery(
        given.get("q", ""),
        given.get("tool", ""),
        given.get("server", ""),
        outcome=_outcomes(given.get("outcome", "")),
        caller=_caller(request, given.get("caller", "")),
        before=read_time(given, "until"),
        parent=given.get("parent", ""),
        since=read_time(given, "since"),
        is_root=read_flag(given, "roots"),
        is_asked=read_flag(given, "asked"),
        slower_than=slow_durations(request.gateway) if read_flag(given, "slower") else None,
    )


def read_time(given: Mapping[str, str], name: str) -> float | None:
    """A time in the query, if it is there; raises ApiError."""
    return read_number(given[name], name, 0, LAST_TIME) if name in given else None


def read_flag(given: Mapping[str, str], name: str) -> bool:
    """A yes or no in the query; raises ApiError."""
    return read_choice(given.get(name, ""), name, ("true", "false")) == "true"


def slow_durations(gateway: GatewayState) -> dict[tuple[str, str], float]:
    """Map server and tool to the seconds on the clock beyond which a run is slower than usual.

    Tools with few runs are left out, because their usual duration is not known.
    """
    found: dict[tuple[str, str], float] = {}
    durations = gateway.engine.durations
    for tool in gateway.engine.catalog:
        runs = durations.of(f"{tool.server}/{own_name(tool)}")
        if len(runs) < MIN_RUNS:
            continue
        usual_s = quantile(runs, MIDDLE)
        for name in (tool.name, own_name(tool)):
            found[tool.server, name] = max(SLOWER_TIMES * usual_s, usual_s + SLOWER_S)
    return found


def _outcomes(text: str) -> str:
    for one in text.split(","):
        read_choice(one, "outcome", OUTCOMES)
    return text


def _caller(request: ApiRequest, wanted: str) -> str:
    if wanted and not request.may_see(wanted):
        raise ApiError(
            403, f"caller: the calls of {wanted!r} are not yours to see", "auth", fields=["caller"]
        )
    return request.only_caller or wanted
