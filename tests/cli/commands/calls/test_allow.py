"""`afoot allow`, and approvals decided without a terminal."""

import json
from collections.abc import Iterator
from uuid import uuid4

import pytest

from tests.cli.conftest import Run, program
from tests.e2e.gateway import DANGEROUS, Gateway
from tests.serve.api_client import Api

TOOLS = str(DANGEROUS)


@pytest.fixture(autouse=True)
def nothing_allowed(api: Api) -> Iterator[None]:
    """Each test begins and ends with an empty list."""
    yield
    for one in api.get("/api/allow").body["allowed"]:
        api.send("DELETE", f"/api/allow/{one['id']}", None, {})


def ask(api: Api, **arguments: object) -> str:
    """A call that asks whether it may run."""
    call = api.start("wipe", tag=f"mark-{uuid4().hex}", **arguments)
    api.asked(call)
    return call


def test_what_is_allowed_is_added_listed_and_revoked(run: Run, api: Api) -> None:
    """A4, V4: in words, and as JSON."""
    assert "nothing is allowed" in run("allow").stdout
    assert run("allow", "add", "wipe", "--for", "3600").returncode == 0
    listed = run("allow", "list").stdout
    assert "local/wipe, for a time, until" in listed and "by operator" in listed
    [line] = run("allow", "--json").stdout.splitlines()
    one = json.loads(line)
    assert list(one["tools"]) == ["wipe"] and listed.startswith(one["id"])
    call = api.start("wipe", tag=f"mark-{uuid4().hex}")
    assert api.ended(call)["approved"] == "allowlist"
    assert "approval allowlist" in run("log", call).stdout
    found = [json.loads(line) for line in run("calls", "--tool", "wipe", "--json").stdout.splitlines()]
    assert next(each for each in found if each["id"] == call)["approved"] == "allowlist"
    assert run("allow", "revoke", one["id"]).stdout.startswith(f"revoked {one['id']}")
    assert run("allow", "--json").stdout == ""


def test_a_server_or_exact_arguments_are_allowed(run: Run, api: Api) -> None:
    """A2, A4: SERVER/*, and --args."""
    assert "every tool that local had then" in run("allow", "add", "local/*").stdout
    told = json.loads(run("allow", "add", "local/wipe", "--args", '{"tag": "a"}', "--json").stdout)
    assert (told["scope"], told["until"]) == ("arguments", None)
    assert len(run("allow").stdout.splitlines()) == 2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("add", "wipee"), "nearest: wipe"),
        (("add", "nowhere/*"), "unknown server"),
        (("add", "wipe", "--for", "soon"), "--for"),
        (("add", "wipe", "--for", "banana"), "--for: ever, or a number of seconds, not 'banana'"),
        (("add", "wipe", "--for", "connection"), "--for: ever, or a number of seconds, not 'connection'"),
        (("add", "wipe", "--args", "{"), "--args: not JSON"),
        (("add", "wipe", "--args", "[]"), "must be a JSON object"),
        (("add",), "requires"),
        (("revoke", "abc"), "unknown allowlist entry"),
    ],
)
def test_what_cannot_be_is_told(run: Run, words: tuple[str, ...], said: str) -> None:
    """A4, E5: exit 2, one line."""
    done = run("allow", *words)
    assert done.returncode == 2 and said in done.stderr and len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("words", "outcome", "approved"),
    [
        (("--run",), "ok", "user"),
        (("--skip",), "refused", "none"),
        (("--decline",), "refused", "none"),
        (("--reject", "use the bin"), "refused", "none"),
        (("--always", "--scope", "arguments", "--for", "60"), "ok", "user"),
        (("decision=run",), "ok", "user"),
    ],
)
def test_an_approval_is_answered_by_words(
    run: Run, api: Api, words: tuple[str, ...], outcome: str, approved: str
) -> None:
    """A2, A5: from any shell."""
    call = ask(api)
    assert run("answer", call[-8:], *words).returncode == 0
    ended = api.ended(call)
    assert (ended["outcome"], ended["approved"]) == (outcome, approved)
    if "use the bin" in words:
        assert "use the bin" in ended["failure"]["message"]
    [*entries] = api.get("/api/allow").body["allowed"]
    assert [one["scope"] for one in entries] == (["arguments"] if "--always" in words else [])


def test_an_approval_without_a_word_says_which_there_are(run: Run, api: Api) -> None:
    """A2, V4: nobody is at the keyboard; nothing is decided by silence."""
    call = ask(api, what="gold")
    done = run("answer", call)
    assert done.returncode == 2 and "gold" in done.stderr and "--run, --skip, --reject" in done.stderr
    assert run("answer", call, "--run", "--skip").returncode == 2
    assert api.question(call) is not None
    assert run("answer", call, "--skip").returncode == 0
    again = run("answer", call + ".1", "--run")
    assert again.returncode == 2 and "already answered: accept, by operator" in again.stderr


def test_a_form_is_no_approval(run: Run, api: Api) -> None:
    """A2, Q2: --run answers no other question."""
    call = api.start("ask_name", tag=f"mark-{uuid4().hex}")
    api.asked(call)
    assert "does not ask for approval" in run("answer", call, "--run").stderr
    run("answer", call, "--decline")


@pytest.mark.parametrize("where", ["gateway", "here"])
def test_yes_runs_without_asking(gateway: Gateway, lone: dict[str, str], where: str) -> None:
    """A2, V2: `call --yes`, at a gateway and without one."""
    words = ["call", "wipe", "tag=yes", "--yes"]
    environment = gateway.environment if where == "gateway" else {**lone, "E2E_MARKS": str(gateway.folder)}
    done = program((*words, *(("--target", TOOLS) if where == "here" else ())), environment)
    assert done.returncode == 0 and done.stdout == "wiped everything\n"


def test_a_call_below_is_covered_by_yes(run: Run) -> None:
    """A2, P8: what the call itself calls."""
    done = run("call", "wipe_below", "tag=below", "--yes")
    assert done.returncode == 0 and "wiped everything" in done.stdout


def test_without_yes_and_without_a_terminal_nothing_runs(gateway: Gateway, lone: dict[str, str]) -> None:
    """A1, V2: without a gateway nobody else could answer; refused, exit 5."""
    words = ("call", "wipe", "tag=lone", "--target", TOOLS)
    done = program(words, {**lone, "E2E_MARKS": str(gateway.folder)})
    assert done.returncode == 5 and "--yes" in done.stderr and gateway.marks("lone") == []
