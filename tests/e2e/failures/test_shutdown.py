"""Being told to stop: no new calls, time to drain, then a cancel with a reason, and an end in time."""

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.e2e.gateway import Gateway
from tests.e2e.raw_client import Http, Message, Pipe, call, events, last, modern, request


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Gateway]]:
    """Starts gateways with these settings."""
    with ExitStack() as stack:

        def started(**settings: object) -> Gateway:
            gateway = Gateway(tmp_path / "gateway", settings)
            gateway.start()
            stack.callback(lambda: gateway.process.poll() is None and gateway.kill())
            return gateway

        yield started


def test_calls_in_flight_finish_and_new_ones_are_refused(
    start: Callable[..., Gateway], fresh: Callable[[], str]
) -> None:
    """X1: after SIGTERM what runs has `drain_s` to end well; what is new is refused, saying why."""
    gateway, tag = start(drain_s=8), fresh()
    with Http(gateway.url) as running, Http(gateway.url) as late:
        assert "result" in late.ask(call("add", {"a": 1, "b": 1}))
        running.put(call("nap", {"tag": tag, "sleep_s": 1.0}))
        gateway.until_marked(tag, "started")
        gateway.process.send_signal(signal.SIGTERM)
        refused = last(late.post(call("nap", {"sleep_s": 0.2})))
        while "error" not in refused:  # the signal is on its way
            refused = last(late.post(call("nap", {"sleep_s": 0.01})))
        assert "SIGTERM" in refused["error"]["message"]
        assert last(running.take())["result"]["content"][0]["text"] == "slept"
    assert gateway.wait(5) == 0


def test_what_does_not_end_is_cancelled_with_a_reason(
    start: Callable[..., Gateway], fresh: Callable[[], str]
) -> None:
    """X1, E2: after `drain_s` the tool is cancelled, and its caller told why and how far it was."""
    gateway, tag = start(drain_s=0.2), fresh()
    with Http(gateway.url) as http:
        http.put(call("linger", {"tag": tag}))
        gateway.until_marked(tag, "started")
        gateway.process.send_signal(signal.SIGTERM)
        result = last(http.take())["result"]
    assert gateway.wait(5) == 0
    told = result["_meta"]["dev.afoot/error"]
    assert (told["category"], told["last"]["message"]) == ("cancelled", "lingering")
    assert "SIGTERM" in result["content"][0]["text"]
    assert "SIGTERM" in gateway.marks(tag)[-1]


@pytest.mark.parametrize("tool", ["never_stop", "never_stop_in_executor", "never_stop_in_thread"])
def test_a_tool_that_does_not_stop_never_holds_the_end(
    start: Callable[..., Gateway], fresh: Callable[[], str], tool: str
) -> None:
    """X1, C7: neither a coroutine that swallows its cancel nor a thread, of its own or of the loop's pool."""
    gateway, tag = start(drain_s=0.2, cancel_grace_s=0.5), fresh()
    with Http(gateway.url) as http:
        http.put(call(tool, {"tag": tag}))
        gateway.until_marked(tag, "started")
        began = time.monotonic()
        gateway.process.send_signal(signal.SIGTERM)
        result = last(http.take())["result"]
        assert gateway.wait(10) == 0
    assert result["_meta"]["dev.afoot/error"]["category"] == "cancelled"
    assert time.monotonic() - began < 5


def test_open_streams_never_hold_the_end(start: Callable[..., Gateway], fresh: Callable[[], str]) -> None:
    """X1: a listener, a session's stream, a reader that reads nothing, an idle connection, a parked call."""
    gateway, tag = start(drain_s=0.2, cancel_grace_s=0.5, progress_hz=0), fresh()
    with ExitStack() as stack:
        idle, listener, session, stuck, parked = (
            stack.enter_context(Http(gateway.url, receive_bytes=4096)) for _ in range(5)
        )
        assert "result" in idle.ask(call("add", {"a": 1, "b": 1}))
        stream = listener.post(
            modern("subscriptions/listen", {"notifications": {"toolsListChanged": True}}, "l")
        )
        assert next(events(stream))
        session.shake_hands()
        session.put(request("tools/call", {"name": "linger", "arguments": {"tag": tag}}))
        gateway.until_marked(tag, "started")
        parked.ask(call("ask_name", {"tag": tag + "-parked"}))
        flooded = {"n": 20_000, "tag": tag + "-stuck", "size": 900, "linger_on": True}
        stuck.put(call("flood", flooded, progressToken=1))
        gateway.until_marked(tag + "-stuck", "")
        began = time.monotonic()
        gateway.process.send_signal(signal.SIGTERM)
        assert gateway.wait(8) == 0
        assert time.monotonic() - began < 6
        rest = [event for event in events(stream) if isinstance(event, dict)]
    assert rest[-1]["id"] == "l" and rest[-1]["result"]["resultType"] == "complete"


def test_a_tool_that_will_not_stop_does_not_hold_the_end(
    start: Callable[..., Gateway], fresh: Callable[[], str]
) -> None:
    """C7: a thread cannot be killed; after its grace the gateway goes without it."""
    gateway, tag = start(drain_s=0.2, cancel_grace_s=0.5), fresh()
    with Http(gateway.url) as http:
        http.put(call("ignore_everything", {"tag": tag}))
        gateway.until_marked(tag, "started")
        gateway.process.send_signal(signal.SIGTERM)
        assert gateway.wait(6) == 0
        assert "SIGTERM" in last(http.take())["result"]["content"][0]["text"]


@pytest.mark.parametrize("era", ["2026-07-28", "handshake"])
def test_a_pipe_that_closes_ends_its_calls_and_the_process(
    tmp_path: Path, era: str, fresh: Callable[[], str]
) -> None:
    """X1: the client's end of stdin is the end of its calls; the process goes by itself."""
    gateway, tag = Gateway(tmp_path / "pipe"), fresh()
    with Pipe(gateway) as pipe:
        begin(pipe, era, tag)
        gateway.until_marked(tag, "started")
        assert pipe.close() == 0
    gateway.until_marked(tag, "cancelled: the client closed its end")


def test_a_pipe_is_told_to_stop_like_any_other(tmp_path: Path, fresh: Callable[[], str]) -> None:
    """X1: SIGTERM on stdio: drained, cancelled with a reason, and the caller told."""
    gateway, tag = Gateway(tmp_path / "pipe", {"drain_s": 0.2}), fresh()
    with Pipe(gateway) as pipe:
        begin(pipe, "2026-07-28", tag)
        gateway.until_marked(tag, "started")
        pipe.process.send_signal(signal.SIGTERM)
        assert "SIGTERM" in pipe.take()["result"]["content"][0]["text"]
        assert pipe.process.wait(5) == 0


def begin(pipe: Pipe, era: str, tag: str) -> None:
    """Start a call that lingers."""
    if era == "handshake":
        pipe.shake_hands()
        pipe.put(request("tools/call", {"name": "linger", "arguments": {"tag": tag}}))
    else:
        wanted: Message = call("linger", {"tag": tag})
        pipe.put(wanted)
