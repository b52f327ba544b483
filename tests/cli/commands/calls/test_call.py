"""`afoot call` in pipes: what it prints, what it takes, and how it ends."""

import json
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import pytest

from tests.cli.conftest import Run, program
from tests.e2e.gateway import Gateway, until
from tests.serve.api_client import Api

TOOLS = Path(__file__).parents[3] / "e2e" / "tools.py"


def lines(text: str) -> list[dict[str, Any]]:
    """JSON, one object a line."""
    return [json.loads(line) for line in text.splitlines()]


def test_in_a_pipe_progress_is_plain_lines_and_the_result_is_alone_on_stdout(run: Run) -> None:
    """V2: no bar, no colours; what a program wants is on stdout."""
    done = run("call", "count_up", "n=4", "step_s=0.2")
    assert (done.returncode, done.stdout) == (0, "counted to 4\n")
    assert "1/4 step 1" in done.stderr and "4/4 step 4" in done.stderr and "ok after" in done.stderr
    assert "\x1b" not in done.stderr + done.stdout


def test_long_arguments_are_cut_to_a_line(run: Run) -> None:
    """V2: what was given is known to whoever gave it; the history has all of it."""
    done = run("call", "add", "--args", json.dumps({"a": 1, "b": "x" * 100_000}))
    assert done.returncode == 2 and done.stderr.startswith("call ")
    assert len(done.stderr.splitlines()[0]) == 200 and done.stderr.splitlines()[0].endswith("…")


def test_json_is_one_call_a_line_and_the_last_has_the_result(run: Run) -> None:
    """V4: a call is the same object everywhere."""
    done = run("call", "count_up", "n=3", "step_s=0.06", "--json")
    told = lines(done.stdout)
    assert [one["event"] for one in told][:2] == ["opened", "started"]
    assert {"id", "tool", "server", "caller", "state", "progress", "elapsed_s"} <= set(told[0])
    assert [one["progress"] for one in told if one["event"] == "reading"][-1] == 3
    assert (told[-1]["event"], told[-1]["outcome"]) == ("finished", "ok")
    assert told[-1]["result"]["content"][0]["text"] == "counted to 3"


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("add", "a=1", "b=2"), 0, "ok"),
        (("fail", "how=explained"), 1, "too many requests"),
        (("fail", "how=crash"), 1, "crashed"),
        (("add", "a=x", "b=2"), 2, "a: must be a whole number, not 'x'"),
        (("add", "a=1"), 2, "add needs b"),
        (("add", "a=1", "b=2", "bb=3"), 2, "nearest: b"),
        (("add", "a", "b=2"), 2, "key=value"),
        (("add", "--args", "[1]"), 2, "--args: must be a JSON object"),
        (("add", "--args", "{"), 2, "--args: not JSON"),
        (("fail", "--args", '{"how": "nonsense"}'), 2, "how"),
        (("ad",), 2, "unknown tool 'ad'; nearest: add"),
        (("add", "a=1", "b=2", "--idle", "-1"), 2, "--idle"),
        (("add", "--colour"), 2, "afoot call --help"),
        (("paced", "pauses=[1.5]"), 3, "idle limit"),
    ],
    ids=lambda one: " ".join(one) if isinstance(one, tuple) else str(one),
)
def test_every_end_has_its_exit_code_and_its_words(
    run: Run, words: tuple[str, ...], code: int, said: str
) -> None:
    """V2, E5: ok, failed, wrong usage and timed out; the exit code, and a line that says why."""
    done = run("call", *words)
    assert (done.returncode, said in done.stderr) == (code, True), done.stderr
    assert "Traceback" not in done.stderr


def test_values_are_read_by_the_tools_schema(run: Run, tmp_path: Path) -> None:
    """V2: numbers, booleans, lists, JSON and text that looks like a number."""
    file = tmp_path / "kinds.py"
    file.write_text(
        "import afoot\n"
        "@afoot.tool\n"
        "def kinds(i: int, f: float, b: bool, s: str, l: list[int], d: dict[str, int], o: int | None = 3):\n"
        "    'Kinds.'\n"
        "    return dict(i=i, f=f, b=b, s=s, l=l, d=d, o=o)\n"
    )
    words = ("i=3", "f=2", "b=yes", "s=12", "l=1,2", 'd={"x": 1}', "o=null")
    done = run("call", "kinds", *words, "--target", str(file))
    assert json.loads(done.stdout) == {
        "i": 3, "f": 2.0, "b": True, "s": "12", "l": [1, 2], "d": {"x": 1}, "o": None,
    }  # fmt: skip


def test_key_value_goes_over_args(run: Run) -> None:
    """V2: --args first, words over it."""
    done = run("call", "add", "--args", '{"a": 1, "b": 1}', "b=41")
    assert json.loads(done.stdout) == {"sum": 42}


def test_limits_are_passed_on(run: Run) -> None:
    """C3: --idle lowers the limit of this call."""
    done = run("call", "linger", f"tag={uuid4().hex}", "--idle", "0.3")
    assert done.returncode == 3 and "0.3 s" in done.stderr


def test_a_cancelled_call_ends_with_four(run: Run, gateway: Gateway, api: Api) -> None:
    """X1, V2: cancelled from elsewhere, with its reason."""
    mark = uuid4().hex
    with _started(gateway, "call", "linger", f"tag={mark}") as calling:
        call = until(lambda: [one["id"] for one in api.get(f"/api/calls?q={mark}").body["calls"]], "a call")[
            0
        ]
        gateway.until_marked(mark, "started")
        done = run("cancel", call[-8:], "--reason", "seen enough")
        assert done.returncode == 0 and "cancelling" in done.stdout
        _, said = calling.communicate(timeout=15)
    assert calling.returncode == 4 and "seen enough" in said
    assert gateway.marks(mark)[-1] == "cancelled: seen enough"


def test_being_told_to_stop_cancels_the_call(gateway: Gateway) -> None:
    """X1: SIGTERM to the command cancels the call, as Ctrl-C does."""
    mark = uuid4().hex
    with _started(gateway, "call", "linger", f"tag={mark}") as calling:
        gateway.until_marked(mark, "started")
        assert calling.stderr is not None
        err = calling.stderr
        until(lambda: "lingering" in err.readline(), "a report")
        calling.send_signal(signal.SIGTERM)
        calling.communicate(timeout=15)
    assert calling.returncode == 4
    assert gateway.marks(mark)[-1] == "cancelled: the command that called it was told to stop (SIGTERM)"


def test_two_interrupts_at_once_cancel_the_call_too(gateway: Gateway) -> None:
    """X1: it says that the call was told to stop, so it was."""
    mark = uuid4().hex
    with _started(gateway, "call", "linger", f"tag={mark}") as calling:
        gateway.until_marked(mark, "started")
        assert calling.stderr is not None
        err = calling.stderr
        until(lambda: "lingering" in err.readline(), "a report")
        calling.send_signal(signal.SIGSTOP)  # so that both are there when it goes on
        calling.send_signal(signal.SIGINT)
        calling.send_signal(signal.SIGTERM)
        calling.send_signal(signal.SIGCONT)
        calling.communicate(timeout=15)
    assert calling.returncode == 4
    gateway.until_marked(mark, "cancelled")


def test_a_gateway_that_dies_loses_the_call_with_six(tmp_path: Path) -> None:
    """U4, V2: exit 6 when nobody tells of the call any more."""
    lost = Gateway(tmp_path)
    lost.start()
    mark = uuid4().hex
    with _started(lost, "call", "linger", f"tag={mark}") as calling:
        lost.until_marked(mark, "started")
        lost.kill()
        _, said = calling.communicate(timeout=20)
    assert calling.returncode == 6 and "does not answer" in said


@pytest.mark.parametrize("how", ["words", "json"])
def test_a_lost_call_is_told_with_its_id_how_far_it_was_and_what_to_do(tmp_path: Path, how: str) -> None:
    """E2, V2: the gateway died; whoever called is not left with "start one"."""
    lost = Gateway(tmp_path)
    lost.start()
    mark = uuid4().hex
    words = ("--json",) if how == "json" else ()
    with _started(lost, "call", "linger", f"tag={mark}", *words) as calling:
        lost.until_marked(mark, "started")
        [call] = until(
            lambda: [one["id"] for one in Api(lost).get(f"/api/calls?q={mark}").body["calls"]], "it"
        )
        read = calling.stdout if how == "json" else calling.stderr
        assert read is not None
        until(lambda: "lingering" in read.readline(), "a report")
        lost.kill()
        out, said = calling.communicate(timeout=20)
    assert calling.returncode == 6
    told = " ".join(said.split())
    assert f"lost call {call[-8:]} (linger)" in told and "lingering" in told and "side effects" in told
    assert f"start the gateway again, then afoot log {call[-8:]}" in told
    if how == "json":
        error = json.loads(out.splitlines()[-1])["error"]
        assert (error["call"], error["last"]["message"], error["exit"]) == (call, "lingering", 6)


def test_a_question_in_a_pipe_says_how_to_answer_it(run: Run, gateway: Gateway, api: Api) -> None:
    """Q4, V2: asked where nobody types, answered from another terminal."""
    with _started(gateway, "call", "ask_name", f"tag={uuid4().hex}") as calling:
        assert calling.stderr is not None
        hint = until(
            lambda: (line := calling.stderr.readline()).startswith("answer it with") and line, "a hint"
        )
        question, *words = hint.removeprefix("answer it with: afoot answer ").split()
        assert words == ["name=…"]
        assert re.fullmatch(r"[0-9a-f]{8}\.1", question), "the end of an id is what a terminal shows"
        wrong = run("answer", question, "nme=Ann")
        assert wrong.returncode == 2 and "nearest: name" in wrong.stderr
        done = run("answer", question, "name=Ann")
        assert done.returncode == 0
        out, _ = calling.communicate(timeout=15)
    assert calling.returncode == 0 and json.loads(out)["content"] == {"name": "Ann"}
    again = run("answer", question, "name=Bob")
    assert again.returncode == 2 and "already answered: accept, by operator" in again.stderr


def test_without_a_gateway_a_file_of_tools_runs_right_here(lone: dict[str, str]) -> None:
    """V2: --target needs no gateway and leaves none behind; its history is in memory."""
    done = program(("call", "count_up", "n=2", "--target", str(TOOLS)), lone)
    assert (done.returncode, done.stdout) == (0, "counted to 2\n")
    assert "2/2 step 2" in done.stderr
    failed = program(("call", "fail", "how=crash", "--target", str(TOOLS)), lone)
    assert failed.returncode == 1
    asked = program(
        ("call", "ask_name", "tag=x", "--target", str(TOOLS)), {**lone, "E2E_MARKS": lone["AFOOT_HOME"]}
    )
    assert "no terminal to answer in" in asked.stderr or asked.returncode == 1
    assert not list(Path(lone["AFOOT_HOME"]).glob("*.db")) if Path(lone["AFOOT_HOME"]).exists() else True


def test_a_target_may_be_a_gateway_at_the_address_of_the_settings(
    gateway: Gateway, lone: dict[str, str]
) -> None:
    """V2, U2: a call without a gateway listens nowhere, so no address is its own."""
    own = {**lone, "AFOOT_HTTP": urlsplit(gateway.url).netloc}
    done = program(("call", "count_up", "n=2", "--target", gateway.url), own)
    assert (done.returncode, done.stdout) == (0, "counted to 2\n"), done.stderr


def test_a_target_that_cannot_be_reached_says_so(lone: dict[str, str]) -> None:
    """V2, E5: an unknown tool is told with the reason for which its server offers none."""
    done = program(("call", "add", "--target", "http://127.0.0.1:9/mcp"), lone)
    assert done.returncode == 2 and "server 127-0-0-1-9 cannot be reached" in done.stderr


@pytest.mark.parametrize("target", ["nowhere.py", "no.such.module"])
def test_a_target_that_cannot_be_loaded_is_wrong_usage(lone: dict[str, str], target: str) -> None:
    """V2: one clear line, exit 2."""
    done = program(("call", "add", "--target", target), lone)
    assert done.returncode == 2 and target.split(".")[0] in done.stderr and len(done.stderr.splitlines()) == 1


def test_escape_sequences_of_a_tool_do_not_reach_the_terminal(run: Run, tmp_path: Path) -> None:
    """S1: what a tool says cannot steer the operator's terminal."""
    file = tmp_path / "evil.py"
    file.write_text(
        "import afoot\n"
        "@afoot.tool\n"
        "async def evil(ctx: afoot.Context) -> str:\n"
        "    'Evil.'\n"
        "    ctx.report(1, 2, 'a\\x1b]0;owned\\x07b')\n"
        "    return 'c\\x1b[31md'\n"
    )
    done = run("call", "evil", "--target", str(file))
    assert "\x1b" not in done.stdout + done.stderr and "\x07" not in done.stderr


def _started(gateway: Gateway, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "afoot", *words],
        env=gateway.environment, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
