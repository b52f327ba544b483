"""The command line in a pseudo-terminal: the live bar, forms, Ctrl-C."""

import re
from pathlib import Path
from uuid import uuid4

import pytest

from tests.cli.conftest import Run
from tests.cli.pseudo_terminal import terminal
from tests.e2e.gateway import Gateway, serving, until
from tests.serve.api_client import Api

FORM = '''
import afoot

SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 2, "description": "who it is for"},
        "size": {"type": "string", "enum": ["small", "large"]},
        "count": {"type": "integer", "minimum": 1, "maximum": 9, "default": 2},
        "gift": {"type": "boolean"},
        "mail": {"type": "string", "format": "email"},
    },
    "required": ["name", "size", "gift"],
}


@afoot.tool
async def order(ctx: afoot.Context) -> dict[str, object]:
    """Order."""
    answer = await ctx.ask("What shall it be?", SCHEMA)
    return {"action": answer.action, "content": answer.content}
'''


FAMILY = '''
import asyncio
import afoot


@afoot.tool
async def child(ctx: afoot.Context) -> str:
    """Reports, and runs until it is cancelled."""
    ctx.report(1, 2, "below")
    await asyncio.sleep(60)
    return "done"


@afoot.tool
async def parent(ctx: afoot.Context) -> str:
    """Calls eight."""
    await asyncio.gather(*(ctx.call("child", {}) for _ in range(8)))
    return "done"
'''


def test_a_call_has_a_live_bar_that_is_gone_at_the_end(gateway: Gateway) -> None:
    """V2: bar, amount, message and time while it runs; the result after it."""
    with terminal(["call", "count_up", "n=20", "step_s=0.1"], gateway.environment) as shown:
        parts = ("▶ running count_up", "━", " %", "step")
        shown.see(lambda screen: all(part in screen for part in parts))
        assert all(len(line) <= 80 for line in shown.shown.split("\n"))
        assert shown.end() == 0
        lines = shown.shown.rstrip().split("\n")
        assert "ok after" in lines[1] and lines[2:] == ["counted to 20"], "the bar is gone"
        assert shown.is_restored()


def test_what_is_left_is_said_of_a_call_that_reports(gateway: Gateway) -> None:
    """P9, P13, V2: one value, from the second report on."""
    with terminal(["call", "count_up", "n=160", "step_s=0.05"], gateway.environment, (100, 24)) as shown:
        shown.see(lambda screen: re.search(r"~0:\d\d left · step \d+", screen) is not None)
        shown.type("\x03")
        assert shown.end() == 4 and shown.is_restored()


def test_what_is_left_of_a_silent_call_is_known_from_earlier_ones(gateway: Gateway, api: Api) -> None:
    """P9, V2: five runs before it are enough."""
    before = [api.start("nap", tag=uuid4().hex, sleep_s=8) for _ in range(5)]
    for call in before:
        until(lambda call=call: api.call(call)["outcome"], "its end", 20.0)
    with terminal(["call", "nap", "sleep_s=9"], gateway.environment) as shown:
        shown.see(lambda screen: re.search(r"▶ running nap .* ~0:\d\d left", screen) is not None)
        shown.type("\x03")
        assert shown.end() == 4


def test_the_calls_below_one_are_shown_below_its_bar(tmp_path: Path, lone: dict[str, str]) -> None:
    """P8, V2: a few of them, the rest is counted; they are gone at the end."""
    file = tmp_path / "family.py"
    file.write_text(FAMILY)
    with terminal(["call", "parent", "--target", str(file)], lone) as shown:
        shown.see("… 3 more")
        assert shown.shown.count("└ child") == 5
        shown.type("\x03")
        assert shown.end() == 4
        assert "└ child" not in shown.shown and shown.is_restored()


def test_a_bar_says_what_the_call_waits_for(gateway: Gateway, api: Api) -> None:
    """V2: where nobody types here, and somebody else may answer."""
    tag = f"mark-{uuid4().hex}"
    with terminal(["call", "wipe", f"tag={tag}"], gateway.environment, stdin="/dev/null") as shown:
        shown.see("◆ waiting for approval wipe")
        asked = next(one for one in api.get("/api/questions").body["questions"] if tag in one["message"])
        api.post(f"/api/questions/{asked['id']}/answer", {"content": {"decision": "skip"}})
        assert shown.end() == 5


def test_a_gateway_that_dies_is_said_and_the_terminal_given_back(tmp_path: Path) -> None:
    """V2, U4: which call, how far, and what to do."""
    with serving(tmp_path) as gateway:
        with terminal(["call", "linger", f"tag={uuid4().hex}"], gateway.environment) as shown:
            shown.see("10 % ")
            gateway.kill()
            assert shown.end() == 6
            assert "lost call" in shown.text and "start the gateway again" in shown.text
            assert shown.is_restored()


def test_a_crash_right_here_is_told_with_its_place(tmp_path: Path, lone: dict[str, str]) -> None:
    """E3, V2: without a gateway there is no history to look it up in."""
    file = tmp_path / "crash.py"
    file.write_text("import afoot\n\n\n@afoot.tool\ndef crash() -> int:\n    'C.'\n    return 1 // 0\n")
    with terminal(["call", "crash", "--target", str(file)], lone) as shown:
        assert shown.end() == 1
        assert "failed after" in shown.text and "| Traceback" in shown.text and "1 // 0" in shown.text
        assert shown.text.count("Traceback") == shown.text.count("ZeroDivisionError") == 1


def test_no_colour_is_used_where_none_is_wanted(gateway: Gateway) -> None:
    """V2: NO_COLOR is obeyed."""
    environment = {**gateway.environment, "NO_COLOR": "1"}
    with terminal(["call", "count_up", "n=5", "step_s=0.05"], environment) as shown:
        assert shown.end() == 0
        assert b"\x1b[3" not in shown.raw and b"\x1b[9" not in shown.raw


def test_ctrl_c_cancels_the_call_and_says_so(gateway: Gateway) -> None:
    """X1, V2: the tool hears the reason; exit 4."""
    mark = uuid4().hex
    with terminal(["call", "linger", f"tag={mark}"], gateway.environment) as shown:
        shown.until(" 10 % ")
        shown.type("\x03")
        assert shown.end() == 4
        assert "cancelling the call" in shown.text and "cancelled after" in shown.text
    assert gateway.marks(mark)[-1] == "cancelled: Ctrl-C in the terminal"


def test_a_second_ctrl_c_leaves_at_once(gateway: Gateway) -> None:
    """X1: a tool that does not stop holds nobody at the terminal."""
    mark = uuid4().hex
    with terminal(["call", "ignore_everything", f"tag={mark}"], gateway.environment) as shown:
        gateway.until_marked(mark, "started")
        shown.see("ignore_everythi")
        shown.type("\x03")
        shown.until("once more leaves at once")
        shown.type("\x03")
        assert shown.end() == 4


def test_ctrl_c_cancels_a_call_made_right_here(gateway: Gateway, lone: dict[str, str]) -> None:
    """X1, V2: --target too."""
    tools = str(Path(__file__).parents[2] / "e2e" / "tools.py")
    words = ["call", "linger", "tag=here", "--target", tools]
    with terminal(words, {**lone, "E2E_MARKS": str(gateway.folder)}) as shown:
        shown.until(" 10 % ")
        shown.type("\x03")
        assert shown.end() == 4
    assert gateway.marks("here")[-1] == "cancelled: Ctrl-C in the terminal"


def test_a_question_is_a_form_with_choices_defaults_and_checks(tmp_path: Path, lone: dict[str, str]) -> None:
    """Q2, V2: a prompt a property; what does not fit is said at once; optional ones may be left out."""
    file = tmp_path / "form.py"
    file.write_text(FORM)
    with terminal(["call", "order", "--target", str(file)], lone) as shown:
        shown.until("What shall it be?")
        shown.until("who it is for")
        for prompt, typed in (
            ("name (text)", "A"),
            ("at least 2 characters", "Ann"),
            ("2) large", "medium"),
            ("must be one of small, large", "2"),
            ("default 2", "12"),
            ("must be at most 9", ""),
            ("gift (true or false)", "perhaps"),
            ("must be true or false", "y"),
            ("optional", ""),
        ):
            shown.until(prompt)
            shown.until("): ")
            shown.type(f"{typed}\n")
        assert shown.end() == 0
        result = '{"action":"accept","content":{"name":"Ann","size":"large","count":2,"gift":true}}'
        assert result in shown.text.replace(" ", "").replace("\n", "")


def test_ctrl_d_declines(gateway: Gateway) -> None:
    """Q2: declining is an answer."""
    with terminal(["call", "ask_name", f"tag={uuid4().hex}"], gateway.environment) as shown:
        shown.until("): ")
        shown.type("\x04")
        assert shown.end() == 0
        assert '"decline"' in shown.text


def test_a_form_ends_when_somebody_else_answers(gateway: Gateway, api: Api) -> None:
    """Q4: the first answer counts, and whoever still types is told."""
    with terminal(["call", "ask_name", f"tag={uuid4().hex}"], gateway.environment) as shown:
        shown.until("): ")
        question = next(
            one for one in api.get("/api/questions").body["questions"] if one["tool"] == "ask_name"
        )
        api.post(f"/api/questions/{question['id']}/answer", {"content": {"name": "Ann"}})
        assert shown.end() == 0
        assert "Ann" in shown.text


def test_an_answer_can_be_a_form_in_another_terminal(gateway: Gateway, api: Api) -> None:
    """Q4, V2: `afoot answer CALL` asks in place."""
    call = api.start("ask_name", tag=uuid4().hex)
    api.asked(call)
    with terminal(["answer", call[-8:]], gateway.environment) as shown:
        shown.until("What is your name?")
        shown.until("): ")
        shown.type("Ann\n")
        assert shown.end() == 0
    assert api.ended(call)["result"]["structured"]["content"] == {"name": "Ann"}


@pytest.mark.parametrize("words", [["watch"], ["log"]])
def test_one_call_is_watched_to_its_end(gateway: Gateway, run: Run, api: Api, words: list[str]) -> None:
    """V2: `watch CALL` follows, Ctrl-C leaves the call alone; `log CALL` only tells."""
    call = api.start("linger", tag=uuid4().hex)
    until(lambda: api.call(call)["progress"], "a report")
    with terminal([*words, call], gateway.environment) as shown:
        shown.until("lingering")
        if words == ["watch"]:
            shown.type("\x03")
            assert shown.end() == 130
        else:
            assert shown.end() == 0
    assert api.call(call)["state"] == "running"
    assert run("cancel", call).returncode == 0
    assert run("watch", call).returncode == 4
