"""A page with countless frames, each of them with tools of its own."""

from collections.abc import Iterator

import pytest
from websockets import Origin, Subprotocol
from websockets.sync.client import connect

from afoot.config import state_folder
from afoot.wire.extension import SUBPROTOCOL
from tests.attack.loop_passes import MEASURED_LOOP
from tests.attack.network.attacker import Bystander
from tests.e2e.gateway import Gateway, serving
from tests.serve.extension.websocket_client import ORIGIN, Extension

FRAMES, TOOLS = 100, 500  # as many tools as the extension passes on from one frame


@pytest.fixture
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A gateway that measures its loop."""
    with serving(tmp_path_factory.mktemp("frames"), tools=[MEASURED_LOOP]) as started:
        yield started


@pytest.mark.timeout(120)
def test_a_page_of_countless_frames_keeps_nobody_waiting(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B2: with 50,000 tools, each change of one of them took 0.1 s, and they took 100 MB."""
    monkeypatch.setenv("AFOOT_HOME", str(gateway.folder / "home"))
    url, here = gateway.url.replace("http", "ws").replace("/mcp", "/link"), "https://shop.example"
    with connect(url, origin=Origin(ORIGIN), subprotocols=[Subprotocol(SUBPROTOCOL)]) as connection:
        browser = Extension(connection).join(state_folder.link_key())
        with Bystander(gateway) as other:
            for frame in range(FRAMES):
                room = f"room{frame}"
                place = {"tab": "1", "frame": str(frame), "origin": here, "top": here}
                browser.say("tab.opened", {"room": {"id": room, **place}})
                tools = [{"name": f"tool{frame}x{number}"} for number in range(TOOLS)]
                browser.say("tab.tools", {"room": room, "tools": tools})
            for number in range(5):
                browser.say("tab.tools", {"room": "room0", "tools": [{"name": f"other{number}"}]})
            browser.say("ping")
            browser.got("ping")
        other.check()
