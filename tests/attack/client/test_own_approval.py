"""A client tries to get a yes to its destructive call: as the operator, or from one who does not see it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.e2e.access.test_tokens import bearing, token
from tests.e2e.gateway import DANGEROUS, TOOLS
from tests.e2e.gateway_with_servers import Front, fronting
from tests.serve.api_client import Api

RUN: Final = {"content": {"decision": "run"}}
SCOPES: Final = ("--scope", "call,answer")


@pytest.fixture(scope="module")
def by_operator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Front]:
    """A gateway on which only the operator's yes counts."""
    settings = {"ask_by": "operator", "unanswerable": "wait"}
    with fronting(tmp_path_factory.mktemp("operator"), {}, settings, (TOOLS, DANGEROUS)) as one:
        yield one


@pytest.fixture
def by_caller(tmp_path: Path) -> Iterator[Front]:
    """A gateway that asks the caller, if it can, and that no operator has looked at."""
    with fronting(tmp_path, {}, {}, (TOOLS, DANGEROUS)) as one:
        yield one


def test_the_operators_question_is_not_for_the_caller_that_the_call_is_of(by_operator: Front) -> None:
    """A1, S2: not over the API either; the call waits on for the operator, whose yes counts."""
    own = bearing(by_operator, token(by_operator, "eve", *SCOPES))
    call = own.start("wipe", tag="own-yes")
    operator = Api(by_operator)
    path = f"/api/questions/{operator.asked(call)['id']}/answer"
    refused = own.post(path, RUN)
    assert (refused.status, refused.error["category"]) == (403, "auth")
    assert by_operator.marks("own-yes") == []
    assert operator.post(path, RUN).status == 200
    assert operator.ended(call)["approved"] == "user"


def test_the_yes_of_a_caller_over_the_api_is_recorded_as_its_own(by_caller: Front) -> None:
    """A3, A5: it reads its events, so it is asked, and may say yes; but nobody takes it for the user."""
    own = bearing(by_caller, token(by_caller, "eve", *SCOPES))
    with own.stream("/api/calls", {"tool": "wipe", "arguments": {"tag": "recorded"}}) as events:
        call = next(event.data for event in events if '"asked"' in event.data)
        live = own.get("/api/calls?state=live").body["calls"][0]["id"]
        assert live in call and own.post(f"/api/questions/{live}.1/answer", RUN).status == 200
        assert any('"finished"' in event.data for event in events)
    assert Api(by_caller).call(live)["approved"] == "caller"


def test_a_caller_who_may_answer_for_itself_alone_is_no_operator(by_caller: Front) -> None:
    """A1: a call whose caller cannot be asked is refused at once, although such a token was just used."""
    own = bearing(by_caller, token(by_caller, "mallory", *SCOPES))
    assert own.get("/api/calls").status == 200
    call = own.start("wipe", tag="nobody-there")
    assert own.ended(call)["outcome"] == "refused"


def test_a_secret_in_a_command_hides_nothing_else_of_it_from_the_reviewer(by_operator: Front) -> None:
    """A2, A6, S4: the operator and the caller's person see what would be wiped, not the token."""
    secret = "ghp_" + "a1B2" * 9
    operator = Api(by_operator)
    call = operator.start("wipe", tag="unseen", what=f"the whole disk # {secret}")
    asked = operator.asked(call)
    for seen in (asked["message"], str(asked["arguments"])):
        assert "the whole disk" in seen and secret not in seen
    assert operator.post(f"/api/calls/{call}/cancel", {}).status == 202
    assert secret.encode() not in by_operator.store.read_bytes()
