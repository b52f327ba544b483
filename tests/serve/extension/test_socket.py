"""The extension's link: who may open it, and how it is proved."""

from pathlib import Path
from typing import Any

import pytest

from afoot.config import state_folder
from afoot.config.settings import home
from afoot.errors import CallerError
from afoot.serve.access.peer import PEER
from afoot.serve.extension.socket import MAX_UNPROVED
from afoot.wire.extension import LinkHello
from tests.serve.extension.fake_extension import NONCE, Peer, linked, mac
from tests.serve.fake_gateway import faked, nap, site_of


@faked
async def test_both_sides_prove_themselves_and_then_a_browser_is_there() -> None:
    """B7: challenge, proof, proof, hello, welcome, in this order and nothing else."""
    async with site_of(nap) as gateway, linked(gateway) as (links, listener):
        peer = Peer(links)
        nonce = await peer.prove()
        assert (await peer.got("link.proof"))["mac"] == mac(state_folder.link_key(), b"gw", nonce)
        assert listener.heard == []
        running = [{"run": "r1", "room": "a", "seq": 3}]
        peer.say("link.hello", {"version": "9.9", "profile": "p1", "label": "work", "running": running})
        assert await peer.got("link.welcome") == {"epoch": "epoch", "keep": ["r1"]}
        assert peer.accepted == "afoot.link.1"
        assert [frame["method"] for _, frame in peer.said[:3]] == [
            "link.challenge", "link.proof", "link.welcome",
        ]  # fmt: skip
        ((what, name, hello),) = listener.heard
        assert (what, name) == ("joined", "work") and isinstance(hello, LinkHello) and hello.profile == "p1"
        assert not links.unproved


@pytest.mark.parametrize(
    ("changed", "status"),
    [
        ({"headers": {"origin": "chrome-extension://" + "a" * 32}}, 403),
        ({"headers": {"origin": "https://shop.example"}}, 403),
        ({"headers": {"origin": "http://127.0.0.1:23668"}}, 403),
        ({"headers": {"origin": ""}}, 403),
        ({"headers": {"host": "evil.example"}}, 421),
        ({"headers": {"host": "127.0.0.1"}}, 421),
        ({"subprotocols": []}, 400),
        ({"subprotocols": ["afoot.link.2"]}, 400),
        ({"type": "http", "method": "GET"}, 426),
        ({"path": "/mcp"}, 404),
    ],
)
@faked
async def test_only_the_extension_may_connect(changed: dict[str, Any], status: int) -> None:
    """S1: exact Host, exactly the extension's Origin, the subprotocol, and no plain request."""
    async with site_of(nap) as gateway, linked(gateway) as (links, _):
        peer = await Peer(links, **changed).end()
        assert (peer.status, peer.accepted) == (status, None)


@faked
async def test_a_wrong_key_is_closed_at_once() -> None:
    """B7: and our own proof is not given to whoever has it."""
    async with site_of(nap) as gateway, linked(gateway) as (links, listener):
        peer = Peer(links)
        await peer.prove(b"x" * 32)
        await peer.end()
        assert peer.closed is not None and peer.closed[:2] == (0.0, 4401)
        assert peer.all("link.proof") == [] and listener.heard == []
        assert gateway.counters["browsers with another key"] == 1


@faked
async def test_a_replayed_proof_is_worth_nothing() -> None:
    """B7: a proof is bound to the nonce of its own connection."""
    async with site_of(nap) as gateway, linked(gateway) as (links, _):
        first, second = Peer(links), Peer(links)
        nonce = await first.prove()
        assert nonce != (await second.got("link.challenge"))["nonce"]
        second.say("link.proof", {"nonce": NONCE, "mac": mac(state_folder.link_key(), b"ext", nonce)})
        await second.end()
        assert second.closed is not None and second.closed[1] == 4401


@faked
async def test_our_own_proof_cannot_be_turned_against_us() -> None:
    """B7: each side's proof has its own label."""
    async with site_of(nap) as gateway, linked(gateway) as (links, _):
        peer = Peer(links)
        nonce = (await peer.got("link.challenge"))["nonce"]
        peer.say("link.proof", {"nonce": NONCE, "mac": mac(state_folder.link_key(), b"gw", nonce)})
        assert (await peer.end()).closed == (0.0, 4401, "the proof is wrong: this browser has another key")


@pytest.mark.parametrize(
    "text",
    [
        "", "[]", "null", '{"method": "tool.result", "params": {"room": "a", "run": "r", "seq": 1}}',
        '{"method": "link.hello", "params": {"version": "1", "profile": "p"}}', '{"method": "ping"}',
        '{"method": "link.proof", "params": {"mac": "00"}}', "[" * 100_000,
        '{"method": "link.proof", "params": {"mac": "00", "nonce": "zz"}}',
        '{"method": "link.proof", "params": {"mac": "00", "nonce": 7}}',
    ],
)  # fmt: skip
@faked
async def test_nothing_but_a_proof_counts_before_the_proof(text: str) -> None:
    """B7: an early frame ends the connection, and nobody hears of it."""
    async with site_of(nap) as gateway, linked(gateway) as (links, listener):
        peer = Peer(links)
        peer.raw(text)
        await peer.end()
        assert peer.closed is not None and peer.closed[:2] == (0.0, 4400)
        assert listener.heard == [] and not links.unproved


@pytest.mark.parametrize("profile", ["", "p" * 65])
@faked
async def test_a_hello_without_a_profile_is_refused(profile: str) -> None:
    """B7: nothing can be told of a browser that cannot be told from others."""
    async with site_of(nap) as gateway, linked(gateway) as (links, listener):
        peer = Peer(links)
        await peer.prove()
        peer.say("link.hello", {"version": "1", "profile": profile})
        await peer.end()
        assert peer.closed is not None and peer.closed[1] == 4400 and listener.heard == []


@faked
async def test_whoever_proves_nothing_is_closed_after_five_seconds() -> None:
    """B7: also one who says nothing at all."""
    async with site_of(nap) as gateway, linked(gateway) as (links, _):
        peer = await Peer(links).end()
        assert peer.closed is not None and peer.closed[:2] == (5.0, 4408)


@faked
async def test_whoever_says_no_hello_is_closed() -> None:
    """B7: a proof alone is no browser."""
    async with site_of(nap) as gateway, linked(gateway) as (links, _):
        peer = Peer(links)
        await peer.prove()
        await peer.end()
        assert peer.closed is not None and peer.closed[:2] == (10.0, 4408)


@faked
async def test_those_who_prove_nothing_are_bounded_in_number() -> None:
    """S1: whoever opens sockets and says nothing keeps no browser out for long."""
    async with site_of(nap) as gateway, linked(gateway) as (links, _):
        peers = [Peer(links) for _ in range(MAX_UNPROVED + 1)]
        await peers[-1].end()
        assert peers[-1].status == 503
        for peer in peers[:-1]:
            await peer.end()
        await Peer(links).join()


@faked
async def test_one_peer_who_proves_nothing_takes_no_place_of_another() -> None:
    """S6: another user of the machine keeps no browser of the owner out."""
    async with site_of(nap) as gateway, linked(gateway) as (links, _):
        strangers = [Peer(links, state={PEER: "uid:65534"}) for _ in range(MAX_UNPROVED + 1)]
        await strangers[-1].end()
        assert strangers[-1].status == 503
        await Peer(links, state={PEER: "uid:1000"}).join()
        for peer in strangers[:-1]:
            await peer.end()
        assert not links.unproved


@faked
async def test_a_broken_key_is_a_line_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    """S6: no traceback, and the browser is told."""
    async with site_of(nap) as gateway, linked(gateway) as (links, _):
        key = state_folder.link_key()
        state_folder.write_private(home() / "link.key", b"restored from nowhere")
        peer = Peer(links)
        await peer.prove(key)
        await peer.end()
        assert peer.closed is not None and peer.closed[1] == 1011
    [line] = [one for one in caplog.records if one.levelname == "ERROR"]
    assert "afoot browser --rotate" in line.getMessage() and line.exc_info is None


@faked
async def test_a_new_key_is_asked_for_at_the_next_connection() -> None:
    """B7: whoever has the old key alone stays out."""
    async with site_of(nap) as gateway, linked(gateway) as (links, _):
        old = state_folder.link_key()
        await Peer(links).join("p1")
        assert state_folder.rotate_link_key() != old
        late = Peer(links)
        await late.prove(old)
        await late.end()
        assert late.closed is not None and late.closed[1] == 4401
        await Peer(links).join("p2")


@faked
async def test_a_key_that_changes_between_proof_and_hello_counts_no_more() -> None:
    """B7: nobody slips in with the old one."""
    async with site_of(nap) as gateway, linked(gateway) as (links, listener):
        peer = Peer(links)
        await peer.prove()
        await peer.got("link.proof")
        state_folder.rotate_link_key()
        peer.say("link.hello", {"version": "1", "profile": "p1"})
        await peer.end()
        assert peer.closed is not None and peer.closed[1] == 4401 and listener.heard == []


def test_the_key_is_for_its_owner_alone(folder: Path) -> None:
    """S1: 32 bytes, made once, 0600."""
    key = state_folder.link_key()
    assert len(key) == 32 and state_folder.link_key() == key
    assert (folder / "link.key").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("text", ["no hex", "ab", "ab" * 31])
def test_a_file_that_is_no_key_is_said_and_mended(folder: Path, text: str) -> None:
    """E4: it opens no door, and the text says what to do."""
    (folder / "link.key").write_text(text)
    with pytest.raises(CallerError, match="afoot browser --rotate"):
        state_folder.link_key()
    assert len(state_folder.rotate_link_key()) == 32
