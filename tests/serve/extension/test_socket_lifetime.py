"""A link after its proof: what is heard and sent, how it ends, and how an old extension is renewed."""

import asyncio
import json
from pathlib import Path

import pytest

from afoot.providers.browser import extension_files as extension
from afoot.serve.extension import socket
from afoot.serve.http_server.idle_exit import IdleExit
from afoot.wire.extension import RunProgress, RunResult, RunResultAck
from tests.serve.extension.fake_extension import GRACE_S, Peer, linked
from tests.serve.fake_gateway import faked, nap, now, site_of


@faked
async def test_what_a_browser_says_is_heard_and_what_it_is_sent_arrives() -> None:
    """B1: both ways over one link."""
    async with site_of(nap) as gateway, linked(gateway) as (links, listener):
        peer = await Peer(links).join()
        peer.say("tool.progress", {"room": "a", "run": "r", "seq": 1, "reports": [{"progress": 1}]})
        peer.say("tool.result", {"room": "a", "run": "r", "seq": 2, "value": {"x": 1}})
        peer.say("ping")
        await peer.got("ping")
        progressed, ended = (message for what, _, message in listener.heard if what == "told")
        assert isinstance(progressed, RunProgress) and isinstance(ended, RunResult)
        (line,) = links.lines
        assert line.send(RunResultAck("a", "r"))
        assert await peer.got("tool.settled") == {"room": "a", "run": "r"}


@faked
async def test_a_gateway_that_was_started_for_a_caller_stays_while_a_browser_is_linked() -> None:
    """S3: a link is somebody, however silent its tabs are."""
    async with site_of(nap) as gateway, linked(gateway) as (links, _):
        linger = IdleExit(links, gateway.engine.clock, lambda: False)
        over = asyncio.create_task(linger.wait_until_idle(60))
        peer = await Peer(linger).join()
        for _ in range(10):
            await asyncio.sleep(20)
            peer.say("ping")
        assert not over.done()
        peer.leave()
        await over
        assert now() == 260


@faked
async def test_bad_frames_are_counted_and_end_nothing() -> None:
    """B7: a broken extension is seen, and the runs of its tabs go on."""
    async with site_of(nap) as gateway, linked(gateway) as (links, listener):
        peer = await Peer(links).join()
        for text in (
            "",
            "{}",
            '{"method": "tool.result", "params": {}}',
            '{"method": "what"}',
            "[" * 100_000,
        ):
            peer.raw(text)
        peer.binary(b"{}")
        await peer.prove()
        peer.say("ping")
        await peer.got("ping")
        assert len(listener.heard) == 1 and peer.closed is None
        assert gateway.counters["frames of browsers that could not be read"] == 5
        peer.leave()
        await peer.end()
        assert gateway.counters["frames of browsers that were no text"] == 1


@faked
async def test_a_silent_browser_is_dead_after_fifty_seconds() -> None:
    """B6: one that says anything every 20 s lives."""
    async with site_of(nap) as gateway, linked(gateway) as (links, listener):
        peer = await Peer(links).join()
        for _ in range(5):
            await asyncio.sleep(20)
            peer.say("ping")
        await peer.end()
        assert peer.closed is not None and peer.closed[:2] == (150.0, 4408)
        assert listener.heard[-1] == ("left", "the browser was silent for 50 s", GRACE_S)


@faked
async def test_a_socket_that_goes_leaves_its_grace_to_the_browser() -> None:
    """B6: the line stays, takes nothing meanwhile, and is the same when the browser comes back."""
    async with site_of(nap) as gateway, linked(gateway) as (links, listener):
        peer = await Peer(links).join()
        (line,) = links.lines
        peer.leave()
        await peer.end()
        assert listener.heard[-1][::2] == ("left", GRACE_S) and now() == 0
        assert not line.send(RunResultAck("a", "r")) and links.lines.connected() == []
        await Peer(links).join()
        assert list(links.lines) == [line] == links.lines.connected()
        assert [what for what, *_ in listener.heard] == ["joined", "left", "joined"]


@faked
async def test_the_same_profile_again_replaces_its_socket() -> None:
    """B6: what the old one still says counts no more."""
    async with site_of(nap) as gateway, linked(gateway) as (links, listener):
        old = await Peer(links).join()
        old.say("ping")
        await old.got("ping")
        new = await Peer(links).join()
        await old.end()
        assert old.closed is not None and old.closed[1] == 4409
        assert [what for what, *_ in listener.heard] == ["joined", "left", "joined"]
        (line,) = links.lines
        line.send(RunResultAck("a", "r"))
        await new.got("tool.settled")
        assert old.all("tool.settled") == []


@faked
async def test_several_profiles_are_there_at_once() -> None:
    """B1: each has its own line."""
    async with site_of(nap) as gateway, linked(gateway) as (links, _):
        peers = [await Peer(links).join(f"p{number}") for number in range(3)]
        for line in links.lines:
            line.send(RunResultAck(line.profile, "r"))
        for number, peer in enumerate(peers):
            assert (await peer.got("tool.settled"))["room"] == f"p{number}"
            assert len(peer.all("tool.settled")) == 1


@faked
async def test_a_browser_that_takes_nothing_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """P5: what waits for it has a bound, and nobody else waits."""
    monkeypatch.setattr(socket, "MAX_QUEUED_FRAMES", 100)
    async with site_of(nap) as gateway, linked(gateway) as (links, listener):
        peer = await Peer(links).join()
        await peer.got("panel.state")
        (line,) = links.lines
        peer.reads.clear()
        sent = 0
        while line.send(RunResultAck("a", "r")):
            sent += 1
            await asyncio.sleep(0)
        assert 100 <= sent <= 102
        peer.reads.set()
        await peer.end()
        assert peer.closed is not None and peer.closed[1] == 4413
        assert listener.heard[-1][0] == "left"


@faked
async def test_a_flood_from_a_browser_is_read_in_turns_and_loses_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """B6: frames are read in order and without a pause, and others have their turns between them."""
    monkeypatch.setattr(socket, "FRAMES_PER_TURN", 10)
    async with site_of(nap) as gateway, linked(gateway) as (links, listener):
        peer = await Peer(links).join()
        for seq in range(200):
            peer.say("tool.progress", {"room": "a", "run": "r", "seq": seq, "reports": []})
        heard = list[int]()
        turns = 0
        while len(heard) < 200:
            await asyncio.sleep(0)
            told = [message for what, _, message in listener.heard if what == "told"]
            now_heard = [one.seq for one in told if isinstance(one, RunProgress)]
            assert len(now_heard) - len(heard) <= 20
            heard, turns = now_heard, turns + 1
        assert heard == list(range(200)) and turns >= 10
        assert now() < 1


@faked
async def test_a_fault_of_ours_over_a_frame_is_counted_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    """E3, B6: what one page says ends nothing that others run."""
    async with site_of(nap) as gateway, linked(gateway) as (links, listener):
        peer = await Peer(links).join()
        listener.breaks = True
        peer.say("tool.result", {"room": "a", "run": "r", "seq": 2})
        peer.say("ping")
        await peer.got("ping")
        assert (peer.closed, gateway.counters) == (None, {"frames of browsers that we failed over": 1})
        assert "could not be taken in" in caplog.text


@faked
async def test_a_fault_of_ours_before_the_welcome_ends_the_link(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """E3: and nothing hangs."""
    async with site_of(nap) as gateway, linked(gateway) as (links, _):
        peer = Peer(links)
        await peer.got("link.challenge")
        (folder / "link.key").write_text("no key")
        peer.say("link.proof", {"nonce": "ab" * 32, "mac": "cd" * 32})
        await peer.end()
        assert peer.closed is not None and peer.closed[1] == 1011
        assert "is no key" in caplog.text


def release(folder: Path, monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    """Ship another version."""
    place = folder / f"shipped-{version}"
    place.mkdir()
    manifest = {"version": version, "key": extension.shipped_manifest().key}
    (place / "manifest.json").write_text(json.dumps(manifest))
    monkeypatch.setattr(extension, "SOURCE_FOLDER", place)


@faked
async def test_an_old_extension_is_renewed_once_nothing_runs_there(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B1: its folder gets the new files, and it is told once to load itself anew."""
    extension.ExtensionCopies().make(folder / "ext")
    release(folder, monkeypatch, "99.0")
    async with site_of(nap) as gateway, linked(gateway) as (links, listener):
        listener.busy = True
        peer = await Peer(links).join(version="0.1.0")
        await asyncio.sleep(30)
        assert peer.all("link.reload") == []
        assert json.loads((folder / "ext" / "manifest.json").read_text())["version"] == "99.0"
        listener.busy = False
        await asyncio.sleep(1)
        assert peer.all("link.reload") == [{}]
        again = await Peer(links).join(version="0.1.0")
        await asyncio.sleep(10)
        assert again.all("link.reload") == []


@pytest.mark.parametrize("version", ["99.0", "100.0"])
@faked
async def test_an_extension_that_is_not_older_is_left_alone(
    folder: Path, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    """B1: nor is its folder touched."""
    extension.ExtensionCopies().make(folder / "ext")
    release(folder, monkeypatch, "99.0")
    async with site_of(nap) as gateway, linked(gateway) as (links, _):
        peer = await Peer(links).join(version=version)
        await asyncio.sleep(10)
        assert peer.all("link.reload") == []
    assert json.loads((folder / "ext" / "manifest.json").read_text())["version"] != "99.0"


@faked
async def test_an_old_extension_from_a_folder_of_its_own_is_only_told_of(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """B1: loading the same files anew would change nothing."""
    release(folder, monkeypatch, "99.0")
    async with site_of(nap) as gateway, linked(gateway) as (links, _):
        peer = await Peer(links).join(version="0.1.0")
        await asyncio.sleep(10)
        assert peer.all("link.reload") == [] and "load it anew" in caplog.text
