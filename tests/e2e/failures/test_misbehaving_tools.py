"""Tools that misbehave: a clean error to the caller, everything in the history, and nobody else notices."""

import time
from collections.abc import Callable

import pytest

from afoot.core.facts import Fact, Finished, Logged, Reported
from tests.e2e import history
from tests.e2e.gateway import Gateway, until
from tests.e2e.raw_client import Http, Message, Pipe, call, frames, last

THROWING = ("throw", "throw_in_task", "throw_in_task_of_own_loop", "throw_in_thread")


def ran(http: Http, tool: str, arguments: Message | None = None) -> Message:
    """What a tool's call came to."""
    result: Message = http.ask(call(tool, arguments))["result"]
    return result


def told(gateway: Gateway, result: Message) -> list[Fact]:
    """The history of the call that this is the result of."""
    return history.facts(gateway.store, result["_meta"]["dev.afoot/call"])


def text(result: Message) -> str:
    """The first text of a result."""
    return str(result["content"][0]["text"])


def test_a_crash_is_a_failed_call_and_its_trace_stays_at_home(gateway: Gateway) -> None:
    """E3: a clean message; the trace is in the log and in the history."""
    with Http(gateway.url) as http:
        result = ran(http, "fail", {"how": "crash"})
    assert result["isError"] and "KeyError" in text(result) and "Traceback" not in str(result)
    (end,) = history.of_type(Finished, told(gateway, result))
    assert end.failure is not None and "Traceback" in end.failure.trace
    assert "tool fail crashed" in gateway.said()


def test_a_result_that_cannot_be_encoded_is_a_clean_error(gateway: Gateway) -> None:
    """E3: it says what was wrong, and with which tool."""
    with Http(gateway.url) as http:
        result = ran(http, "return_rubbish")
    assert result["isError"] and "object" in text(result) and "Traceback" not in str(result)
    (end,) = history.of_type(Finished, told(gateway, result))
    assert end.outcome == "failed"


def test_a_signal_for_a_process_that_a_tool_forked_reaches_no_gateway(gateway: Gateway) -> None:
    """E3, G1: `multiprocessing.Pool` ends its processes by SIGTERM, which must not stop the gateway."""
    with Http(gateway.url) as http:
        for number in ("SIGTERM", "SIGINT", "SIGHUP"):
            result = ran(http, "end_forked", {"number": number})
            assert result["structuredContent"] == {"result": True}, number
        assert ran(http, "add", {"a": 1, "b": 1})["structuredContent"] == {"sum": 2}
    assert "stopping" not in gateway.said() and gateway.process.poll() is None


@pytest.mark.parametrize("tool", ["leave", "leave_from_a_thread"])
def test_a_tool_that_exits_ends_only_its_call(gateway: Gateway, tool: str) -> None:
    """E3: sys.exit is a failed call; the gateway stays."""
    with Http(gateway.url) as http:
        result = ran(http, tool)
        assert result["isError"] and "exit" in text(result)
        assert ran(http, "add", {"a": 1, "b": 1})["structuredContent"] == {"sum": 2}
    assert gateway.process.poll() is None


@pytest.mark.parametrize(
    "what", ["KeyboardInterrupt", "SystemExit", "GeneratorExit", "BaseException", "CancelledError"]
)
def test_whatever_a_tool_raises_ends_only_its_call(gateway: Gateway, what: str) -> None:
    """E3: on the loop, in a task of its own, on a loop of its own, in a thread; the gateway stays."""
    with Http(gateway.url) as http:
        for tool in THROWING:
            result = ran(http, tool, {"what": what})
            (end,) = history.of_type(Finished, told(gateway, result))
            assert (tool, end.outcome) == (tool, "failed") and result["isError"]
            assert ran(http, "add", {"a": 1, "b": 1})["structuredContent"] == {"sum": 2}
    assert gateway.process.poll() is None


def test_nonsense_reports_are_repaired(gateway: Gateway) -> None:
    """P4: finite numbers that rise, the tool's own words, and the repair is in the history."""
    with Http(gateway.url) as http:
        *progress, end = frames(http.post(call("report_nonsense", progressToken=1)))
    numbers = [one["params"]["progress"] for one in progress]
    assert numbers == sorted(set(numbers)) and numbers[0] == 5 and 8 in numbers and numbers[-1] < 10
    assert [one["params"]["message"] for one in progress][1] == "said nan"
    assert end["result"]["content"][0]["text"] == "reported"
    lines = [fact.text for fact in history.of_type(Logged, told(gateway, end["result"]))]
    assert any("no finite number" in line for line in lines)


def test_reports_after_the_end_reach_nobody(gateway: Gateway, fresh: Callable[[], str]) -> None:
    """P4, C7: nothing follows the result; what came late is in the history, marked late."""
    tag = fresh()
    with Http(gateway.url) as http:
        *progress, end = frames(http.post(call("report_after_the_end", {"tag": tag}, progressToken=1)))
        gateway.until_marked(tag, "reported late")
        assert ran(http, "add", {"a": 1, "b": 1})["structuredContent"] == {"sum": 2}
    assert [one["params"]["message"] for one in progress] == ["in time"]
    late = history.of_type(Reported, told(gateway, end["result"]))
    assert late and all(fact.late for fact in late)


def test_a_tool_that_blocks_the_loop_is_named_and_moved_away(gateway: Gateway) -> None:
    """G4: the log names tool and line, other calls go on after it, and the next time they do not notice."""
    with Http(gateway.url) as blocked, Http(gateway.url) as other:
        blocked.put(call("block", {"sleep_s": 0.7}))
        other.put(call("count_up", {"n": 3}))
        result = last(blocked.take())["result"]
        assert text(result) == "blocked"
        assert text(last(other.take())["result"]) == "counted to 3"
        until(lambda: "tool block blocks the loop" in gateway.said(), "the watchdog's word")
        assert "time.sleep(sleep_s)" in gateway.said()
        lines = [fact.text for fact in history.of_type(Logged, told(gateway, result))]
        assert any("blocks the loop" in line for line in lines)
        blocked.put(call("block", {"sleep_s": 1.5}))
        began = time.monotonic()
        assert ran(other, "add", {"a": 1, "b": 1})["structuredContent"] == {"sum": 2}
        assert time.monotonic() - began < 1.0
        assert text(last(blocked.take())["result"]) == "blocked"


def test_what_a_tool_prints_is_history_and_no_part_of_a_pipe(gateway: Gateway) -> None:
    """P12: prints, by Python or past it, never reach stdout of a gateway on stdio."""
    own = Gateway(gateway.folder / "prints")
    with Pipe(own) as pipe:
        for number in range(3):
            pipe.put(call("chatter", id=number))
            answer = pipe.take()
            assert (answer["id"], text(answer["result"])) == (number, "chattered")
        assert pipe.close() == 0
    lines = [fact.text for fact in history.of_type(Logged, told(own, answer["result"]))]
    assert {"printed", "printed to stderr"} <= set(lines)
    assert "written to descriptor 1" in own.said()


def test_a_tool_that_exits_or_crashes_leaves_the_pipe_alone(gateway: Gateway) -> None:
    """E3: on stdio as on HTTP."""
    own = Gateway(gateway.folder / "exits")
    with Pipe(own) as pipe:
        for tool in ("leave", "leave_from_a_thread", "return_rubbish"):
            assert pipe.ask(call(tool, id=tool))["result"]["isError"]
        assert text(pipe.ask(call("nap", id="nap"))["result"]) == "slept"
        assert pipe.close() == 0
