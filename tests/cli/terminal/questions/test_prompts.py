"""Approvals decided in a pseudo-terminal: in `call`, `answer` and `watch`."""

from uuid import uuid4

import pytest

from tests.cli.pseudo_terminal import Terminal, terminal
from tests.e2e.gateway import Gateway
from tests.serve.api_client import Api

MENU = "a)lways: "


def fresh() -> str:
    """A tag that no other test uses."""
    return f"mark-{uuid4().hex}"


def answer(shown: Terminal, *typed: tuple[str, str]) -> None:
    """Type each answer at its prompt."""
    for prompt, text in typed:
        shown.until(prompt)
        shown.type(f"{text}\n")


@pytest.mark.parametrize(
    ("typed", "code", "said"),
    [
        ([(MENU, "r")], 0, "wiped everything"),
        ([(MENU, "s")], 5, "chose to skip it"),
        ([(MENU, ""), ("type r, s, i or a", "x"), (MENU, "skip")], 5, "chose to skip it"),
        ([(MENU, "i"), ("what to do instead: ", "use the bin")], 5, "instead: use the bin"),
    ],
)
def test_a_call_is_approved_in_place(
    gateway: Gateway, typed: list[tuple[str, str]], code: int, said: str
) -> None:
    """A2, A5, V2: with the tool, its arguments and why; Enter alone decides nothing."""
    with terminal(["call", "wipe", f"tag={fresh()}"], gateway.environment) as shown:
        shown.until("Run local/wipe(")
        shown.until("it may destroy something")
        answer(shown, *typed)
        assert shown.end() == code
        assert said in shown.text.replace("\n", " ")


def test_always_is_asked_once(gateway: Gateway, api: Api) -> None:
    """A2: what, and for how long."""
    words = ["call", "wipe", f"tag={fresh()}"]
    with terminal(words, gateway.environment) as shown:
        answer(
            shown, (MENU, "a"), ("[t]: ", "q"), ("type t, e or s", "e"),
            ("[c]: ", "soon"), ("type c, e or a number", "60"),
        )  # fmt: skip
        assert shown.end() == 0
    [one] = api.get("/api/allow").body["allowed"]
    assert (one["scope"], one["caller"]) == ("arguments", None) and one["until"]
    with terminal(words, gateway.environment) as shown:
        assert shown.end() == 0 and MENU not in shown.text
    api.send("DELETE", f"/api/allow/{one['id']}", None, {})


def test_ctrl_d_skips_and_ctrl_c_cancels(gateway: Gateway) -> None:
    """A2, X1: neither runs anything."""
    for key, code in (("\x04", 5), ("\x03", 4)):
        tag = fresh()
        with terminal(["call", "wipe", f"tag={tag}"], gateway.environment) as shown:
            shown.until(MENU)
            shown.type(key)
            assert shown.end() == code
        assert gateway.marks(tag) == []


def test_what_another_has_decided_is_asked_no_more(gateway: Gateway, api: Api) -> None:
    """A5: the first answer wins, and whoever still thinks is told."""
    tag = fresh()
    with terminal(["call", "wipe", f"tag={tag}"], gateway.environment) as shown:
        shown.until(MENU)
        question = next(
            one for one in api.get("/api/questions").body["questions"] if one["arguments"]["tag"] == tag
        )
        api.post(f"/api/questions/{question['id']}/answer", {"content": {"decision": "skip"}})
        assert shown.end() == 5
        assert "by operator" in shown.text


def test_arguments_steer_no_terminal(gateway: Gateway) -> None:
    """A2: escapes, direction marks and line breaks are written out."""
    nasty = "what=\x1b[2J\x9b1mfine\u202etxt" + "x" * 60
    with terminal(["call", "wipe", f"tag={fresh()}", nasty], gateway.environment) as shown:
        shown.until(MENU)
        assert "\\u001b[2J" in shown.text and "\\u202e" in shown.text
        assert b"\x1b[2J" not in shown.raw and "\u202e" not in shown.text and "\x9b" not in shown.text
        shown.type("s\n")
        assert shown.end() == 5


def test_another_terminal_decides(gateway: Gateway, api: Api) -> None:
    """A5, Q4: `afoot answer CALL` shows who called, and asks in place."""
    call = api.start("wipe", tag=fresh(), what="a very long story " * 10)
    api.asked(call)
    with terminal(["answer", call[-8:]], gateway.environment) as shown:
        shown.until("called by operator")
        shown.until('"what": "a very long story')
        answer(shown, (MENU, "r"))
        assert shown.end() == 0
    assert api.ended(call)["approved"] == "user"


def test_whoever_watches_one_call_decides_in_place(gateway: Gateway, api: Api) -> None:
    """A5, V2: leaving decides nothing."""
    call = api.start("wipe", tag=fresh())
    api.asked(call)
    with terminal(["watch", call], gateway.environment) as shown:
        shown.until(MENU)
        shown.type("\x03")
        assert shown.end() == 130
    assert api.question(call) is not None
    with terminal(["watch", call], gateway.environment) as shown:
        answer(shown, (MENU, "r"))
        assert shown.end() == 0
    assert api.ended(call)["outcome"] == "ok"
