"""Page and relay in a test's Chromium without a gateway: the test itself is their carrier, over CDP."""

import json
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

import afoot
from afoot.providers.browser.cdp.connection import CdpMessage
from tests.browser.chromium import Chromium, until

EXTENSION = Path(afoot.__file__).parent / "extension"
WORLD = "afoot.relay"
Frame = dict[str, Any]


def joined(part: str) -> str:
    """The scripts of a list, as one."""
    files: list[str] = json.loads((EXTENSION / "content" / "files.json").read_text())[part]
    return "\n".join((EXTENSION / name).read_text() for name in files)


class Room:
    """One document's relay, and all that it has said."""

    def __init__(self, rooms: "Rooms", session: str, context: int, frame: str) -> None:
        self.rooms, self.session, self.context, self.frame = rooms, session, context, frame
        self.frames: list[Frame] = []
        self.is_open = True

    def all(self, method: str, run: str = "") -> list[Frame]:
        """The params of all frames of a kind so far, or of those about a run."""
        self.rooms.hear()
        found = [frame["params"] for frame in self.frames if frame["method"] == method]
        return [params for params in found if not run or params.get("run") == run]

    def wait(self, method: str, run: str = "", count: int = 1) -> Frame:
        """The params of the last of so many frames of a kind, when they are there."""
        found: list[Frame] = until(
            lambda: (seen := self.all(method, run))[count - 1 :] and seen, f"{count} {method} {run}"
        )
        return found[count - 1]

    def send(self, method: str, **params: Any) -> None:
        """A frame down to the relay."""
        text = json.dumps(json.dumps({"method": method, "params": params}))
        given = {"expression": f"afootReceive({text})", "contextId": self.context}
        answer = self.rooms.browser.call("Runtime.evaluate", given, self.session)
        assert "exceptionDetails" not in answer, answer

    def tools(self, *names: str) -> dict[str, Any]:
        """The tools by name, as soon as these are among them."""

        def listed() -> dict[str, Any]:
            lists = self.all("tab.tools")
            last = {tool["name"]: tool for tool in lists[-1]["tools"]} if lists else {}
            return last if set(names) <= set(last) and last else {}

        found: dict[str, Any] = until(listed, f"the tools {names}")
        return found

    def start(self, tool: str, **given: Any) -> str:
        """Dispatch a tool that is listed; gives the run."""
        self.tools(tool)
        run = secrets.token_hex(16)
        self.send("tool.dispatch", run=run, tool=tool, input=given)
        return run

    def run(self, tool: str, **given: Any) -> Frame:
        """Dispatch a tool, and give its result."""
        return self.wait("tool.result", self.start(tool, **given))

    def reports(self, run: str) -> list[Frame]:
        """All reports of a run, in order; its frames are numbered without a gap."""
        frames = self.all("tool.progress", run)
        assert [frame["seq"] for frame in frames] == list(range(1, len(frames) + 1))
        return [report for frame in frames for report in frame["reports"]]


class Rooms:
    """A tab with page and relay in all its frames, and the rooms that they make."""

    def __init__(self, browser: Chromium, first: str = "", *, late: bool = False) -> None:
        self.browser = browser
        self._first = first  # a script of somebody else, before ours
        self._late = "globalThis.afootLate = true;\n" if late else ""
        self._read = len(browser.events)
        self._rooms: dict[tuple[str, int], Room] = {}
        self._sessions: set[str] = set()
        self.page = browser.open()
        if not late:
            self.begin()

    def begin(self) -> None:
        """Put page and relay into the tab, now and from now on."""
        self._prepare(self.page.session)

    def _prepare(self, session: str) -> None:
        """Put page and relay into every document that comes."""
        self._sessions.add(session)

        def call(method: str, **params: Any) -> None:
            self.browser.call(method, params, session)

        call("Page.enable")
        call("Runtime.enable")
        call("Runtime.addBinding", name="afootSend", executionContextName=WORLD)
        scripts = f"{self._first}\n{joined('page')}"
        call("Page.addScriptToEvaluateOnNewDocument", source=scripts, runImmediately=True)
        relay = {"source": self._late + joined("relay"), "worldName": WORLD, "runImmediately": True}
        call("Page.addScriptToEvaluateOnNewDocument", **relay)
        call("Target.setAutoAttach", autoAttach=True, waitForDebuggerOnStart=True, flatten=True)
        call("Runtime.runIfWaitingForDebugger")

    def hear(self) -> None:
        """Take up what has come since."""
        for message in self._news():
            told = msgspec.json.decode(message.params)
            match message.method:
                case "Target.attachedToTarget" if told["targetInfo"]["type"] == "iframe":
                    self._prepare(told["sessionId"])
                case "Runtime.executionContextCreated" if told["context"]["name"] == WORLD:
                    key = (message.session, told["context"]["id"])
                    self._rooms[key] = Room(self, *key, told["context"]["auxData"]["frameId"])
                case "Runtime.executionContextDestroyed":
                    self._close((message.session, told["executionContextId"]))
                case "Runtime.executionContextsCleared":
                    for key in [key for key in self._rooms if key[0] == message.session]:
                        self._close(key)
                case "Runtime.bindingCalled":
                    room = self._rooms[(message.session, told["executionContextId"])]
                    room.frames.append(json.loads(told["payload"]))

    def _news(self) -> Iterator[CdpMessage]:
        while self._read < len(self.browser.events):
            message = self.browser.events[self._read]
            self._read += 1
            if message.session in self._sessions:
                yield message

    def _close(self, key: tuple[str, int]) -> None:
        if key in self._rooms:
            self._rooms[key].is_open = False

    def go(self, url: str) -> Room:
        """Open a page, and give its own room."""
        went = self.page.call("Page.navigate", url=url)
        assert not went.get("errorText"), went
        room = self.room(url)
        until(lambda: self.hear() or self.page.evaluate("document.readyState") == "complete", "it to load")
        return room

    def room(self, part: str, tool: str = "") -> Room:
        """The newest open room at an address that has this part, and a tool of this name."""

        def found() -> Room | None:
            self.hear()
            for room in reversed(self._rooms.values()):
                opened = [
                    frame["params"]["url"]
                    for frame in room.frames
                    if frame["method"] in ("open", "tab.state")
                ]
                if room.is_open and opened and part in opened[-1] and (not tool or tool in offered(room)):
                    return room
            return None

        room: Room = until(found, f"a room at {part} with {tool or 'anything'}")
        return room


def offered(room: Room) -> set[str]:
    """The names of the tools that a room last told."""
    lists = [frame["params"]["tools"] for frame in room.frames if frame["method"] == "tab.tools"]
    return {tool["name"] for tool in lists[-1]} if lists else set()


def offer(name: str, body: str, more: str = "", options: str = "{}") -> str:
    """A script that registers a tool; its body sees `input`, `context`, `signal` and `reportProgress`."""
    execute = f"async execute(input, context) {{ const {{signal, reportProgress}} = context; {body} }}"
    tool = f"{{name: {name!r}, description: 'for a test', {more} {execute}}}"
    return f"document.modelContext.registerTool({tool}, {options});"


def page(script: str, head: str = "") -> str:
    """A page whose first script is this one."""
    return f"<!doctype html>{head}<script>{script}</script><title>a page</title><p>text"
