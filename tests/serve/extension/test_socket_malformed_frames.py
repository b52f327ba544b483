"""The extension's link on odd days: half characters in what pages say, versions that are none."""

import json

import pytest

from afoot.wire.extension import LinkHello, PageContextTools
from tests.serve.extension.fake_extension import Peer, linked
from tests.serve.fake_gateway import faked, nap, site_of

HALF = "\ud83d"  # what a title cut between the halves of a pair ends with
ROOM = {"id": "r1", "tab": "1", "title": HALF}


@faked
async def test_half_a_character_in_a_title_keeps_no_browser_out() -> None:
    """B1, B7: whatever a page calls itself, its browser is heard."""
    async with site_of(nap) as gateway, linked(gateway) as (links, listener):
        await Peer(links).join(rooms=[ROOM], tabs=[{"id": "1", "title": HALF}])
        ((_, _, hello),) = listener.heard
        assert isinstance(hello, LinkHello)
        assert (hello.tabs[0].title, hello.rooms[0].title) == ("\ufffd", "\ufffd")


@faked
async def test_a_frame_with_half_a_character_counts() -> None:
    """B1: only the half is lost."""
    async with site_of(nap) as gateway, linked(gateway) as (links, listener):
        peer = await Peer(links).join()
        peer.say("tab.tools", {"room": "r1", "tools": [{"name": "add", "description": f"Adds {HALF}"}]})
        peer.say("ping")
        await peer.got("ping")
        told = [what for how, _, what in listener.heard if how == "told"]
        assert [one.tools[0].description for one in told if isinstance(one, PageContextTools)] == [
            "Adds \ufffd"
        ]
        assert gateway.counters == {}


@pytest.mark.parametrize("version", ["9" * 5000, "1." * 5000, "", "٣"])
@faked
async def test_a_version_that_is_none_keeps_no_browser_out(version: str) -> None:
    """B7: an extension of any version is welcome."""
    async with site_of(nap) as gateway, linked(gateway) as (links, _):
        peer = Peer(links)
        await peer.prove()
        await peer.got("link.proof")
        peer.raw(json.dumps({"method": "link.hello", "params": {"version": version, "profile": "p1"}}))
        await peer.got("link.welcome")
        peer.say("ping")
        await peer.got("ping")
        assert peer.closed is None
