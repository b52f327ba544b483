"""Words of tools and servers on a terminal, wherever they come out: nothing in them steers it."""

import json
from typing import Any

import pytest
from msgspec import Raw

from afoot.cli.client import CliError, run_command
from afoot.cli.doctor.findings import fail, finding_line
from afoot.cli.terminal import text as terminal
from afoot.cli.terminal.listing import calls_table
from afoot.cli.terminal.questions.forms import DeclineAnswer, fill_form
from afoot.core.facts import Question
from tests.cli.conftest import Run
from tests.e2e.gateway import until
from tests.serve.api_client import Api

NASTY = "\x1b]0;owned\x07\x9b2Jx"


def is_harmless(text: str) -> bool:
    """Whether it holds nothing that steers."""
    return not set(text) & {"\x1b", "\x07", "\x9b", "\r"}


def test_the_last_line_of_a_command_steers_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    """V2: what a gateway says went wrong may quote a tool."""

    def fails(words: list[str]) -> int:
        raise CliError(2, f"it asks: {NASTY}\nand more")

    assert run_command(fails, []) == 2
    told = capsys.readouterr().err
    assert is_harmless(told) and told.count("\n") == 2 and "owned" in told


def test_what_a_server_says_to_the_doctor_steers_no_terminal() -> None:
    """V2: an error of somebody's server stands in its line."""
    assert is_harmless(finding_line(fail("server x", NASTY, "see that it runs")))


def test_the_names_and_choices_of_a_form_steer_no_terminal() -> None:
    """Q2: a server chooses them."""
    schema = {"properties": {NASTY: {"type": "string", "enum": [NASTY]}}, "required": [NASTY]}
    question = Question("q", "k", "form", "?", Raw(json.dumps(schema).encode()))
    typed, shown = iter(["", "wrong"]), list[str]()

    def ask(prompt: str) -> str | None:
        shown.append(prompt)
        return next(typed, None)

    with pytest.raises(DeclineAnswer):
        fill_form(question, ask, shown.append)
    assert len(shown) > 4 and all(is_harmless(one) for one in shown)


def test_a_short_name_that_means_two_questions_answers_none(run: Run, api: Api) -> None:
    """A6, Q4: an approval is for the call that was meant, and no other that ends alike."""
    calls = [api.start("wipe", tag=f"twin{n}") for n in range(17)]  # ids end in one of sixteen digits
    for call in calls:
        until(lambda call=call: api.question(call) is not None, "it asks")
    ends = [call[-1] for call in calls]
    twice = next(end for end in ends if ends.count(end) > 1)
    assert run("answer", f"{twice}.1", "--run").returncode == 2
    open_now = [one for one in api.get("/api/questions").body["questions"] if one["call"] in calls]
    assert len(open_now) == len(calls), "none was answered"
    for call in calls:
        api.post(f"/api/calls/{call}/cancel", {})


def test_two_long_names_that_begin_alike_are_told_apart() -> None:
    """V2: tools of one page begin with its address; the end says what they do."""
    names = ["shop_example_8443_export_orders", "shop_example_8443_delete_order"]
    assert [terminal.short_tool_name(one) for one in names] == ["…3_export_orders", "…43_delete_order"]
    assert terminal.short_tool_name("export") == "export" and terminal.short_tool_name("a" * 16) == "a" * 16
    call: dict[str, Any] = {
        "id": "0" * 32, "outcome": "ok", "state": "finished", "waiting": None, "message": "", "questions": [],
        "progress": None, "total": None, "elapsed_s": 1.0, "opened": 0.0,
    }  # fmt: skip
    lines = [list(calls_table([{**call, "tool": one} for one in names], wide)) for wide in (80, 200)]
    assert "export_orders" in lines[0][1] and "delete_order" in lines[0][2]
    assert names[0] in lines[1][1] and all(len(line) <= 80 for line in lines[0])
