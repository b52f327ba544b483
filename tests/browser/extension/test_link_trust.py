"""Whom the chain believes: only the document that a run was sent to, and only who knows the key (B7)."""

import json
from collections.abc import Iterator
from typing import Any, Final

import pytest
from websockets.exceptions import InvalidStatus

from tests.browser.chain import Chain, counted, linking
from tests.browser.chromium import Chromium, until
from tests.browser.extension.forged_link_ends import Guest, squatting
from tests.browser.site import Site


def room(name: str, **more: Any) -> dict[str, Any]:
    """A room as a browser tells of it."""
    origin = "https://guest.example"
    known = {"id": name, "tab": f"tab {name}", "document": name, "origin": origin, "top": origin}
    return {**known, "url": f"{origin}/", "title": name, **more}


def offer(guest: Guest, name: str) -> None:
    """Offer one tool in a room."""
    guest.say("tab.tools", room=name, tools=[{"name": "wait", "description": "waits"}])


NAME: Final = "guest_example_wait"


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory, native_browser: Chromium, site: Site) -> Iterator[Chain]:
    """One is enough: which WebMCP a browser has is nothing to its link."""
    with linking(tmp_path_factory.mktemp("trust"), native_browser, site) as one:
        yield one


def test_frames_of_another_link_room_or_document_are_refused_and_counted(chain: Chain) -> None:
    """B7: whoever knows a run's id can still neither report, finish nor stop it from elsewhere."""
    with Guest.of(chain) as honest, Guest.of(chain) as liar:
        honest.enter("honest", [room("a"), room("b", origin="https://other.example")])
        liar.enter(
            "liar", [room("a", origin="https://liar.example"), room("c", origin="https://liar.example")]
        )
        offer(honest, "a")
        until(lambda: NAME in chain.caller.tools(), "the tool")
        call = chain.caller.call(NAME)
        sent = honest.until("tool.dispatch")
        run, before = sent["run"], counted(chain)
        for one, place in ((liar, "a"), (liar, "c"), (honest, "b"), (honest, "nowhere")):
            one.say(
                "tool.progress", room=place, run=run, seq=1, reports=[{"progress": 9, "message": "forged"}]
            )
            one.say("tool.result", room=place, run=run, seq=2, value="forged")
        until(lambda: counted(chain) >= before + 8, "all eight to be counted")
        assert (sent["room"], call.seen, call.future.done()) == ("a", [], False)
        honest.say("tool.progress", room="a", run=run, seq=1, reports=[{"progress": 1, "message": "true"}])
        honest.say("tool.result", room="a", run=run, seq=2, value="true")
        assert (call.value(), call.messages) == ("true", ["true"])
        before = counted(chain)
        honest.say("tool.progress", room="a", run=run, seq=3, reports=[{"message": "too late"}])
        until(lambda: counted(chain) > before, "what comes after the end to be counted")


def test_an_earlier_document_of_the_same_tab_is_not_believed(chain: Chain) -> None:
    """B7: a room that is gone says nothing any more."""
    with Guest.of(chain) as guest:
        guest.enter("tabs", [room("old", tab="1")])
        guest.say("tab.gone", room="old", why="navigated")
        guest.say("tab.opened", room=room("new", tab="1"))
        offer(guest, "new")
        until(lambda: NAME in chain.caller.tools(), "the tool")
        call = chain.caller.call(NAME)
        run = guest.until("tool.dispatch")["run"]
        guest.say("tool.result", room="old", run=run, seq=1, value="from the past")
        guest.say("tool.result", room="new", run=run, seq=1, value="from now")
        assert call.value() == "from now"


@pytest.mark.parametrize("manner", ["guessing", "mirroring", "skipping"])
def test_a_server_on_the_gateways_port_learns_nothing(chain: Chain, manner: str) -> None:
    """B7: it gets one proof, which it cannot use, and the extension leaves; no key, no tab, no address."""
    chain.open()
    pairing = json.loads((chain.gateway.folder / "extension" / "pairing.json").read_text())
    port = int(chain.gateway.url.rpartition(":")[2].partition("/")[0])
    chain.gateway.kill()
    try:
        with squatting(port, manner) as squatter:
            assert squatter.left.wait(40), "the extension stays"
            [proof] = squatter.heard[:1]
            assert json.loads(proof)["method"] == "link.proof"
            assert all(json.loads(text)["method"] == "link.proof" for text in squatter.heard)
            assert pairing["key"] not in "".join(squatter.heard)
            assert "localhost" not in "".join(squatter.heard)
    finally:
        chain.restart()


def test_a_wrong_key_is_refused(chain: Chain) -> None:
    """B7: and nothing else is said."""
    with Guest.of(chain, key="11" * 32) as guest:
        guest.prove()
        assert guest.closed() == 4401


def test_a_replayed_proof_is_refused(chain: Chain) -> None:
    """B7: each connection has a nonce of its own."""
    with Guest.of(chain) as first:
        proof = first.prove()
        first.until("link.proof")
    with Guest.of(chain) as second:
        second.until("link.challenge")
        second.say("link.proof", nonce=first.nonce, mac=proof)
        assert second.closed() == 4401


def test_nothing_counts_before_the_proof(chain: Chain) -> None:
    """B7: a hello that comes first ends the connection, and its tools are nowhere."""
    with Guest.of(chain) as guest:
        guest.until("link.challenge")
        guest.say("link.hello", version="9", profile="early", rooms=[room("early")])
        assert guest.closed() == 4400
    assert not [one for one in chain.browsers() if one["profile"] == "early"]


def test_a_guest_that_says_nothing_is_sent_away(chain: Chain) -> None:
    """B7: after five seconds."""
    with Guest.of(chain) as guest:
        assert guest.closed() == 4408


@pytest.mark.parametrize("origin", ["https://evil.example", "chrome-extension://" + "a" * 32, "null"])
def test_only_the_extension_may_connect(chain: Chain, origin: str) -> None:
    """S1: another origin is refused before anything is said."""
    with pytest.raises(InvalidStatus) as refused, Guest.of(chain, origin=origin):
        pass
    assert refused.value.response.status_code == 403
