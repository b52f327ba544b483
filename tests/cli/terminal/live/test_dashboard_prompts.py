"""What waits for a person, answered by keys in the table of `afoot watch`."""

import json
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.cli.pseudo_terminal import terminal
from tests.cli.terminal.live.dashboard_screen import cancel, choose, decide, fresh, key_of, row, tag
from tests.e2e.gateway import Gateway
from tests.serve.api_client import Api


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A gateway on HTTP."""
    with fresh(tmp_path_factory.mktemp("board")) as started:
        yield started


def test_an_approval_is_given_by_keys(gateway: Gateway, api: Api) -> None:
    """A5, V2: chosen by its number, with its arguments and why; the table lives on above it."""
    other = api.start("linger", tag=tag())
    call = api.start("wipe", tag=tag(), what="a very long story " * 4)
    api.asked(call)
    with terminal(["watch"], gateway.environment) as screen:
        screen.see(lambda shown: " destructive " in row(shown, call))
        choose(screen, call)
        screen.see("it may destroy something")
        screen.see('"what": "a very long story')
        assert row(screen.shown, other)
        decide(screen, "r")
        screen.see(f"{call[-8:]} wipe: run")
        screen.see(lambda shown: row(shown, call).startswith("✓"))
        screen.type("q")
        assert screen.end() == 0
    assert api.ended(call)["approved"] == "user"
    cancel(api, other)


def test_what_a_command_in_a_pipe_asks_is_answered_by_keys(gateway: Gateway, api: Api) -> None:
    """A5, V2: its caller is asked, which is the operator, who sits here; keys for no question say so."""
    words = [sys.executable, "-m", "afoot", "call", "wipe", f"tag={tag()}", "--json"]
    with terminal(["watch"], gateway.environment) as screen:
        screen.see("?: keys")
        screen.type("\n")
        screen.see("nothing waits for you")
        with subprocess.Popen(
            words, env=gateway.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True
        ) as calling:
            assert calling.stdout is not None
            call = json.loads(calling.stdout.readline())["id"]
            assert api.asked(call)["to"] == "caller"
            choose(screen, call)
            decide(screen, "r")
            screen.see(lambda shown: row(shown, call).startswith("✓"))
            assert '"outcome":"ok"' in calling.communicate(timeout=15)[0] and calling.returncode == 0
        screen.type("q")
        assert screen.end() == 0


def test_an_approval_is_rejected_with_words(gateway: Gateway, api: Api) -> None:
    """A2, V2: and the model is told them."""
    call = api.start("wipe", tag=tag())
    api.asked(call)
    with terminal(["watch"], gateway.environment) as screen:
        choose(screen, call)
        decide(screen, "i")
        screen.see("what to do instead:")
        screen.type("use the bim\x7fn, please ü\n")
        screen.see(f"{call[-8:]} wipe: reject")
        screen.see(lambda shown: "✗ wipe" in row(shown, call) and "refused: " in row(shown, call))
        screen.type("q")
        screen.end()
    assert "use the bin, please ü" in api.ended(call)["failure"]["message"]


def test_always_asks_what_and_for_how_long(gateway: Gateway, api: Api) -> None:
    """A2: with its scopes."""
    call = api.start("wipe", tag=tag())
    api.asked(call)
    with terminal(["watch"], gateway.environment) as screen:
        choose(screen, call)
        decide(screen, "a")
        screen.see("always what:")
        screen.type("e\n")
        screen.see("for how long:")
        screen.type("60\n")
        screen.see(f"{call[-8:]} wipe: always")
        screen.type("q")
        screen.end()
    api.ended(call)
    [one] = api.get("/api/allow").body["allowed"]
    assert one["scope"] == "arguments" and one["until"]
    api.send("DELETE", f"/api/allow/{one['id']}", None, {})


def test_keys_that_came_before_the_question_decide_nothing(gateway: Gateway, api: Api) -> None:
    """A6: an eager hand approves nothing it has not seen."""
    call = api.start("wipe", tag=tag())
    api.asked(call)
    with terminal(["watch"], gateway.environment) as screen:
        screen.see(lambda shown: key_of(shown, call) != "")
        screen.type(f"{key_of(screen.shown, call)}r\n")
        screen.see("a)lways:")
        screen.type("\x1b")
        screen.see(lambda shown: key_of(shown, call) != "")
        screen.type("q")
        screen.end()
    assert api.question(call) is not None, "Esc leaves it to others"
    cancel(api, call)


def test_a_form_is_filled_in_place(gateway: Gateway, api: Api) -> None:
    """Q2, V2: as `afoot call` does it, with choices, defaults, and what does not fit."""
    call = api.start("order")
    api.asked(call)
    with terminal(["watch"], gateway.environment) as screen:
        choose(screen, call)
        for prompt, typed in (
            ("name (text):", "A"), ("at least 2 characters", "Ann"), ("2) large", "medium"),
            ("must be one of small, large", "2"), ("default 2):", ""),
        ):  # fmt: skip
            screen.see(prompt)
            screen.type(f"{typed}\n")
        screen.see(f"{call[-8:]} order: answered")
        screen.type("q")
        screen.end()
    answered = api.ended(call)["result"]["structured"]
    assert answered == {"action": "accept", "content": {"name": "Ann", "size": "large", "count": 2}}


def test_ctrl_d_declines_a_form(gateway: Gateway, api: Api) -> None:
    """Q2: declining is an answer."""
    call = api.start("order")
    api.asked(call)
    with terminal(["watch"], gateway.environment) as screen:
        choose(screen, call)
        screen.see("name (text):")
        screen.type("\x04")
        screen.see(f"{call[-8:]} order: declined")
        screen.type("q")
        screen.end()
    assert api.ended(call)["result"]["structured"]["action"] == "decline"


def test_what_another_has_settled_is_asked_no_more(gateway: Gateway, api: Api) -> None:
    """A5, Q4: the first answer wins, and whoever still thinks is told."""
    call = api.start("wipe", tag=tag())
    api.asked(call)
    with terminal(["watch"], gateway.environment) as screen:
        choose(screen, call)
        api.post(f"/api/questions/{call}.1/answer", {"content": {"decision": "skip"}})
        screen.see("somebody else has settled it")
        screen.type("q")
        assert screen.end() == 0


def test_words_of_tools_steer_no_screen(gateway: Gateway, api: Api) -> None:
    """V2, S1: escapes, direction marks and line ends are drawn as marks, and the table stays whole."""
    marked = "a␛[2Jb␛]0;owned␇c⟨U+202E⟩d⟨U+200B⟩e␍f␊g"
    call = api.start("nasty")
    with terminal(["watch"], gateway.environment, (200, 16)) as screen:
        screen.see("⟨U+200B⟩ef␊g")
        choose(screen, call)
        screen.see(marked)
        screen.type("\x04")
        screen.see(lambda shown: "failed" in row(shown, call) and "⟨U+200B⟩" in row(shown, call))
        assert b"\x1b]0;" not in screen.raw and "\u202e".encode() not in screen.raw
        assert screen.shown.startswith("afoot http")
        screen.type("q")
        screen.end()
