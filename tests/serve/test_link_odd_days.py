"""The extension's link on odd days: half characters in what pages say, versions that are none."""

import json
from pathlib import Path

import pytest

from afoot.wire.link import Hello, RoomTools
from tests.serve.double import faked, nap, site_of
from tests.serve.links import Peer, linked

HALF = "\ud83d"  # what a title cut between the halves of a pair ends with
ROOM = {"id": "r1", "tab": "1", "title": HALF}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A state folder of the test's own."""
    monkeypatch.setenv("AFOOT_HOME", str(tmp_path))
    return tmp_path


@faked
async def test_half_a_character_in_a_title_keeps_no_browser_out() -> None:
    """B1, B7: whatever a page calls itself, its browser is heard."""
    async with site_of(nap) as site, linked(site) as (links, listener):
        await Peer(links).join(rooms=[ROOM], tabs=[{"id": "1", "title": HALF}])
        ((_, _, hello),) = listener.heard
        assert isinstance(hello, Hello)
        assert (hello.tabs[0].title, hello.rooms[0].title) == ("\ufffd", "\ufffd")


@faked
async def test_a_frame_with_half_a_character_counts() -> None:
    """B1: only the half is lost."""
    async with site_of(nap) as site, linked(site) as (links, listener):
        peer = await Peer(links).join()
        peer.say("tab.tools", {"room": "r1", "tools": [{"name": "add", "description": f"Adds {HALF}"}]})
        peer.say("ping")
        await peer.got("ping")
        told = [what for how, _, what in listener.heard if how == "told"]
        assert [one.tools[0].description for one in told if isinstance(one, RoomTools)] == ["Adds \ufffd"]
        assert site.counted == {}


@pytest.mark.parametrize("version", ["9" * 5000, "1." * 5000, "", "٣"])
@faked
async def test_a_version_that_is_none_keeps_no_browser_out(version: str) -> None:
    """B7: an extension of any version is welcome."""
    async with site_of(nap) as site, linked(site) as (links, _):
        peer = Peer(links)
        await peer.prove()
        await peer.got("link.proof")
        peer.raw(json.dumps({"method": "link.hello", "params": {"version": version, "profile": "p1"}}))
        await peer.got("link.welcome")
        peer.say("ping")
        await peer.got("ping")
        assert peer.closed is None
