"""The side panel: what it is shown, how often, and what the person at it may do."""

import asyncio
from typing import Any

import pytest
from msgspec import Raw
from msgspec.structs import replace

from afoot.core.ports import Run
from afoot.engine.engine import Submission
from afoot.providers.browser.views import TabView
from tests.serve.extension.fake_extension import Peer, linked
from tests.serve.fake_gateway import asks, faked, nap, now, only, site_of

CALL = Submission("tool", Raw(b'{"path": "/"}'))


async def counts(run: Run) -> str:
    """A tool that reports a hundred times a second, for a second."""
    for number in range(1, 101):
        run.report(number, 100, f"step {number}")
        await asyncio.sleep(0.01)
    return "done"


async def shown(peer: Peer, number: int) -> dict[str, Any]:
    """What the panel was shown as this number."""
    return await peer.got("panel.state", number)


async def asked(peer: Peer) -> dict[str, Any]:
    """The question that the panel shows."""
    while not peer.all("panel.state")[-1].get("questions"):
        await shown(peer, len(peer.all("panel.state")) + 1)
    (question,) = peer.all("panel.state")[-1]["questions"]
    assert isinstance(question, dict)
    return question


@faked
async def test_a_closed_panel_is_told_of_questions_only() -> None:
    """A5: so that a badge and a notification can say that somebody is needed."""
    async with site_of(asks) as gateway, linked(gateway) as (links, _):
        peer = await Peer(links).join()
        assert await shown(peer, 1) == {}
        live = gateway.engine.submit(CALL)
        state = await shown(peer, 2)
        ((question,), calls) = state["questions"], state.get("calls")
        assert question["call"] == live.call.id and calls is None
        peer.say("panel.answer", {"question": question["id"], "content": {}})
        assert await peer.got("panel.said") == {"about": question["id"]}
        assert await shown(peer, 3) == {}


@faked
async def test_a_closed_panel_is_not_told_of_calls() -> None:
    """P5: nothing is sent that nobody sees."""
    async with site_of(counts) as gateway, linked(gateway) as (links, _):
        peer = await Peer(links).join()
        await shown(peer, 1)
        gateway.engine.submit(CALL)
        await gateway.engine.idle(10)
        await asyncio.sleep(5)
        assert len(peer.all("panel.state")) == 1


@faked
async def test_an_open_panel_sees_calls_move_at_most_four_times_a_second() -> None:
    """P5: the newest value counts, and a call that has ended is seen to end."""
    async with site_of(counts) as gateway, linked(gateway) as (links, listener):
        peer = await Peer(links).join()
        peer.say("panel.watch", {"on": True})
        live = gateway.engine.submit(CALL)
        listener.running = {live.call.id: "17"}
        await gateway.engine.idle(10)
        for _ in range(31):  # a silent browser would be taken for a dead one
            await asyncio.sleep(10)
            peer.say("link.ping")
        frames = [(at, frame["params"]) for at, frame in peer.said if frame["method"] == "panel.state"]
        times = [at for at, _ in frames]
        assert all(later - sooner >= 0.249 for sooner, later in zip(times[1:], times[2:], strict=False))
        calls = [state["calls"][0] for _, state in frames if state.get("calls")]
        assert [call["state"] for call in calls][-1] == "finished" and calls[-1]["outcome"] == "ok"
        progress = [call["progress"] for call in calls if call["progress"] is not None]
        assert progress == sorted(progress) and len(progress) >= 4
        assert calls[-1]["tab"] == "17" and calls[-1]["total"] == 100
        assert "calls" not in frames[-1][1] and times[-1] == pytest.approx(301.0, abs=0.5)


@faked
async def test_an_open_panel_sees_its_own_tabs() -> None:
    """B6: by the browser's own ids, with their state and its reason."""
    async with site_of(nap) as gateway, linked(gateway) as (links, listener):
        shop = TabView(
            "t1", "p1", "work", "7", "1", "Shop", "http://a.example/", "http://a.example", "unavailable",
            "reload this tab", 0, 0, True, False, True, [],
        )  # fmt: skip
        listener.tabs = [shop]
        peer = await Peer(links).join()
        assert await shown(peer, 1) == {}
        peer.say("panel.watch", {"on": True})
        tab = {"key": "t1", "tab": "7", "state": "unavailable", "why": "reload this tab", "tools": 0}
        assert (await shown(peer, 2))["tabs"] == [tab]
        listener.tabs = [replace(shop, state="ready", why="", tools=3)]
        peer.say("tab.list", {"tabs": []})
        assert (await shown(peer, 3))["tabs"] == [{**tab, "state": "ready", "why": "", "tools": 3}]


@faked
async def test_nothing_is_sent_while_nothing_changes() -> None:
    """P5: a silent call is shown once."""
    async with site_of(nap) as gateway, linked(gateway) as (links, _):
        peer = await Peer(links).join()
        peer.say("panel.watch", {"on": True})
        gateway.engine.submit(CALL)
        await asyncio.sleep(9)
        assert 2 <= len(peer.all("panel.state")) <= 3


@faked
async def test_a_call_is_stopped_at_the_panel() -> None:
    """X1: by the operator, with a reason."""
    async with site_of(nap) as gateway, linked(gateway) as (links, _):
        peer = await Peer(links).join()
        live = gateway.engine.submit(CALL)
        await asyncio.sleep(1)
        peer.say("panel.cancel", {"call": live.call.id})
        assert await peer.got("panel.said") == {"about": live.call.id}
        await gateway.engine.idle(10)
        assert live.call.cancel is not None and live.call.end is not None
        assert (live.call.cancel.by, live.call.end.outcome) == ("operator", "cancelled")
        assert live.call.cancel.reason == "stopped in the browser's side panel"
        assert now() < 2


@faked
async def test_an_approval_is_given_at_the_panel() -> None:
    """A5: with everything that is needed to decide; an open panel is somebody who can be asked (A1)."""
    async with site_of(nap, approval="ask") as gateway, linked(gateway) as (links, _):
        peer = await Peer(links).join()
        peer.say("panel.watch", {"on": True})
        await shown(peer, 1)
        for _ in range(5):
            await asyncio.sleep(20)
            peer.say("ping")
        await asyncio.sleep(19)
        gateway.engine.submit(CALL)
        live = only(gateway)
        question = await asked(peer)
        assert question["arguments"] == {"path": "/"} and question["kind"] == "approval"
        assert [one["decision"] for one in question["choices"]] == ["run", "skip", "reject", "always"]
        assert set(question["schema"]["properties"]) == {"decision", "instead", "scope", "for"}
        content = {"decision": "always", "scope": "tool", "for": "ever"}
        peer.say("panel.answer", {"question": question["id"], "content": content})
        assert await peer.got("panel.said") == {"about": question["id"]}
        await gateway.engine.idle(20)
        assert live.call.approved == "user"
        (entry,) = gateway.engine.policy.entries
        assert (entry.by, entry.scope, entry.caller) == ("operator", "tool", "")


@faked
async def test_nobody_is_there_once_the_panel_is_closed() -> None:
    """A1: a link alone is no operator."""
    async with site_of(nap, approval="ask") as gateway, linked(gateway) as (links, _):
        peer = await Peer(links).join()
        peer.say("panel.watch", {"on": True})
        peer.say("panel.watch", {"on": False})
        for _ in range(4):
            await asyncio.sleep(20)
            peer.say("ping")
        live = gateway.engine.submit(CALL)
        await gateway.engine.idle(10)
        assert live.call.end is not None and live.call.end.outcome == "refused"


@pytest.mark.parametrize(
    ("method", "params", "about", "error"),
    [
        ("panel.cancel", {"call": "nothing"}, "nothing", "over already"),
        ("panel.answer", {"question": "nothing.1", "content": {}}, "nothing.1", "over already"),
        ("panel.answer", {"question": "QUESTION", "content": {}, "action": "eat"}, "QUESTION", "action"),
        ("panel.answer", {"question": "QUESTION", "content": {"decision": "maybe"}}, "QUESTION", "decision"),
        ("panel.answer", {"question": "QUESTION", "content": {"decision": "run", "x": 1}}, "QUESTION", "x"),
    ],
)
@faked
async def test_what_is_wrong_with_an_answer_is_said(
    method: str, params: dict[str, Any], about: str, error: str
) -> None:
    """E4: and the question stays open."""
    async with site_of(nap, approval="ask") as gateway, linked(gateway) as (links, _):
        peer = await Peer(links).join()
        peer.say("panel.watch", {"on": True})
        await shown(peer, 1)
        live = gateway.engine.submit(CALL)
        question = (await asked(peer))["id"]
        peer.say(method, {key: question if value == "QUESTION" else value for key, value in params.items()})
        said = await peer.got("panel.said")
        assert said["about"] == about.replace("QUESTION", question) and error in said["error"]
        assert list(live.call.open) == [question]


@faked
async def test_texts_that_are_not_unicode_break_no_panel() -> None:
    """P3: half a character in a message costs that character."""

    async def odd(run: Run) -> str:
        run.report(1, 2, "half \ud800 of it")
        await asyncio.sleep(5)
        return "done"

    async with site_of(odd) as gateway, linked(gateway) as (links, _):
        peer = await Peer(links).join()
        peer.say("panel.watch", {"on": True})
        gateway.engine.submit(CALL)
        await asyncio.sleep(2)
        assert peer.all("panel.state")[-1]["calls"][0]["message"] == "half ? of it"
