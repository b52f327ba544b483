"""`Client` calls tools in every way that both eras have, chosen by dice, and checks what comes back."""

import json
import random
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from http.client import HTTPException, HTTPResponse
from typing import Any, Final

import pytest
from anyio.from_thread import BlockingPortal

from afoot.wire.framing import EventParser, ServerSentEvent
from tests.chaos.states import KEY, TASKS
from tests.e2e.official_client import ERAS, Peer, accept
from tests.e2e.raw_client import EVERYTHING, Http, Message, call, modern, request
from tests.serve.api_client import Api, silent_reader
from tests.soak.notes import Notes, Request, RisingProgress
from tests.soak.place import SERVERS, Place

QUICK_TOOLS: Final = (
    "steady", "steady_safe", "narrow", "lasting", "threaded", "boxed", "boxed_safe", "pieces", "parent",
    "blocks",
    *(f"{name}_{kind}" for name in SERVERS for kind in ("work", "safe")),
)  # fmt: skip
ODD_TOOLS: Final = (
    "raises", "thread_raises", "hangs", "thread_hangs", "deaf", "boxed_dies", "large", "flood",
    *(f"{name}_flood" for name in SERVERS),
)  # fmt: skip
ASKING_TOOLS: Final = ("asks", "asks_safe", "risky", *(f"{name}_ask" for name in SERVERS))
MUTE: Final[Message] = {}
FAILURES: Final = (OSError, HTTPException, ValueError, KeyError, IndexError, AssertionError)
MOST_ROUNDS: Final = 12
FLOOD_CONNECTIONS: Final = 60
Answers = dict[str, Message]


class Client:
    """One client in a thread of its own. Each step is one action, until the phase is over."""

    def __init__(self, place: Place, notes: Notes, dice: random.Random, portal: BlockingPortal) -> None:
        self._place = place
        self._notes = notes
        self._dice = dice
        self._portal = portal
        self._actions: dict[str, tuple[Callable[[], None], int]] = {
            "call and follow": (self.call_and_follow, 24),
            "call without token": (self.call_without_token, 8),
            "leave": (self.leave, 8),
            "call by api": (self.call_by_api, 8),
            "stream by api": (self.stream_by_api, 6),
            "answer rounds": (self.answer_rounds, 10),
            "run task": (self.run_task, 5),
            "insist by key": (self.insist_by_key, 6),
            "take handle": (self.take_handle, 5),
            "use session": (self.use_session, 14),
            "use official client": (self.use_official_client, 2),
            "send garbage": (self.send_garbage, 5),
            "read slowly": (self.read_slowly, 2),
            "flood connections": (self.flood_connections, 1),
            "list everything": (self.list_everything, 3),
        }
        self._names = [*self._actions]
        self._weights = [weight for _, weight in self._actions.values()]

    def run(self, is_over: threading.Event) -> None:
        """Act until the phase is over. A gateway that is killed meanwhile is no fault."""
        while not is_over.is_set():
            [name] = self._dice.choices(self._names, self._weights)
            self._notes.count(name)
            try:
                self._actions[name][0]()
            except FAILURES:
                self._notes.count("broken off")
                is_over.wait(0.05)
            except pytest.fail.Exception:  # no answer within the time of the tests' own clients
                self._notes.count("no answer")

    def call_and_follow(self) -> None:
        """Call a tool of any kind with a progress token, and follow it to its end."""
        self._complete(self._wanted(self._any_tool()), progressToken=self._dice.choice((7, "token")))

    def call_without_token(self) -> None:
        """Call a tool without a token: nothing but the result may come."""
        wanted = self._wanted(self._dice.choice(QUICK_TOOLS))
        with Http(self._place.gateway.url) as http:
            self._end(wanted, self._read(http.post(self._message(wanted)), wanted, None))

    def leave(self) -> None:
        """Close the connection in the middle of a call, with or without a reset."""
        wanted = self._wanted(self._any_tool())
        with Http(self._place.gateway.url) as http:
            http.put(self._message(wanted, progressToken=1))
            if self._dice.random() < 0.7:
                for message in self._messages(http.take()):
                    self._hear(wanted, message)
                    if self._dice.random() < 0.4:
                        break
            if self._dice.random() < 0.5:
                http.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    def call_by_api(self) -> None:
        """Start a call by the API, look at it, and maybe stop it."""
        wanted = self._wanted(self._any_tool())
        api = self._place.api
        body = {"tool": wanted.tool, "arguments": self._arguments(wanted)}
        answer = api.post("/api/calls", body, prefer="respond-async")
        if answer.status != 202:
            return
        self._notes.acknowledge(wanted, str(answer.body["id"]))
        if self._dice.random() < 0.4:
            time.sleep(self._dice.uniform(0.0, 0.2))
            stopped = api.post(f"/api/calls/{wanted.call}/cancel", {"reason": "soak"})
            if stopped.status not in (202, 409):
                self._notes.fault(f"{wanted.tool} {wanted.tag}: cancel gave {stopped.status} {stopped.body}")

    def stream_by_api(self) -> None:
        """Start a call and read its events, and once more from a place in the middle: no gap, no repeat."""
        wanted = self._wanted(self._dice.choice(QUICK_TOOLS))
        api = self._place.api
        body = {"tool": wanted.tool, "arguments": self._arguments(wanted)}
        seen, place = 0, ""
        with api.stream("/api/calls", body) as events:
            for event in events:
                seen, place = self._fact(wanted, event, seen, place)
                if seen and self._dice.random() < 0.2:
                    break
        with api.stream(f"/api/calls/{wanted.call}/events", last_event_id=place) as events:
            for event in events:
                seen, place = self._fact(wanted, event, seen, place)

    def answer_rounds(self) -> None:
        """Call a tool that asks, and answer in rounds, or not at all."""
        wanted = self._wanted(self._dice.choice(ASKING_TOOLS))
        self._complete(wanted, progressToken="asked", patience=self._dice.choice((0, 1, 12, 12, 12)))

    def run_task(self) -> None:
        """Have a task made of a call, look at it until it is over, or cancel it."""
        wanted = self._wanted("errand")
        with Http(self._place.gateway.url) as http:
            made = http.ask(self._message(wanted, capabilities=TASKS))["result"]
            if made.get("resultType") != "task":
                return self._end(wanted, made)
            self._notes.acknowledge(wanted, str(made["taskId"]))
            named = {"taskId": made["taskId"]}
            if self._dice.random() < 0.3:
                http.ask(modern("tasks/cancel", named, capabilities=TASKS))
            end = time.monotonic() + 10
            while time.monotonic() < end:
                task = http.ask(modern("tasks/get", named, capabilities=TASKS))["result"]
                if task["status"] in ("completed", "failed", "cancelled"):
                    wanted.told.add("ok" if task["status"] == "completed" else "not ok")
                    return
                time.sleep(0.05)

    def insist_by_key(self) -> None:
        """Make the same request again until it is answered, with a key: it runs once."""
        wanted = self._wanted(self._dice.choice(("lasting", "errand", "boxed_safe", "newer_work")))
        message = self._message(wanted, progressToken=1, **{KEY: wanted.tag})
        for _ in range(self._dice.randint(1, 4)):
            with suppress(*FAILURES), Http(self._place.gateway.url) as http:
                http.put(message)
                if wanted.tool in ("lasting", "errand") and self._dice.random() < 0.4:
                    time.sleep(0.02)
                    continue
                self._end(wanted, self._read(http.take(), wanted, RisingProgress(self._notes, wanted)))

    def take_handle(self) -> None:
        """Call with too little time to wait, and wait for the call by its handle."""
        wanted = self._wanted(self._dice.choice(("steady", "threaded", "remote_work")))
        brief = {"dev.afoot/budget": {"wait_s": 0.4}, "capabilities": MUTE}
        with Http(self._place.gateway.url) as http:
            result = self._read(http.post(self._message(wanted, **brief)), wanted, None)
            for _ in range(20):
                handle = (result or {}).get("structuredContent", {}).get("afoot_call")
                if handle is None:
                    return self._end(wanted, result)
                self._notes.acknowledge(wanted, str(handle))
                tool = "afoot_wait" if self._dice.random() < 0.9 else "afoot_cancel"
                wait = call(tool, {"call": handle}, **brief)
                result = self._read(http.post(wait), wanted, None)
                if tool == "afoot_cancel":
                    return

    def use_session(self) -> None:
        """Make calls in a session of the handshake era: answer, cancel, break off and resume."""
        with Http(self._place.gateway.url) as http, Http(self._place.gateway.url) as second:
            http.shake_hands(self._dice.choice((EVERYTHING, {})))
            second.session = http.session
            for number in range(self._dice.randint(1, 3)):
                self._call_in_session(http, second, number)
            if self._dice.random() < 0.97:
                second.end_session()

    def use_official_client(self) -> None:
        """Call a tool with the client of the `mcp` package."""
        wanted = self._wanted(self._dice.choice((*QUICK_TOOLS, "asks")))
        peer = Peer(self._portal, self._place.gateway, "http", self._dice.choice(ERAS))
        peer.reply = lambda _: accept(name="Ada")
        rising = RisingProgress(self._notes, wanted)

        async def noted(progress: float, total: float | None, message: str | None) -> None:
            rising.hear(progress)

        try:
            with self._portal.wrap_async_context_manager(peer.client) as client:
                result = peer.run(
                    lambda: client.call_tool(wanted.tool, self._arguments(wanted), progress_callback=noted)
                )
        except Exception:  # it has errors and groups of its own for a gateway that is killed under it
            return
        self._tell(wanted, result.meta or {}, is_ok=not result.is_error)

    def send_garbage(self) -> None:
        """Send what is no request, or not all of one."""
        dice = self._dice
        url = self._place.gateway.url
        message = json.dumps(self._message(Request("steady", "garbage"))).encode()
        bodies = (
            dice.randbytes(dice.randint(0, 2000)),
            message[: dice.randint(0, len(message))],
            b"[" * dice.randint(1, 50_000),
            json.dumps({"jsonrpc": "2.0", "id": 1, "method": dice.choice(("", "x", "tools/call"))}).encode(),
            b'{"jsonrpc":"2.0","id":1e999,"method":"tools/call","params":{"name":"\\ud800"}}',
        )
        with Http(url) as http:
            if dice.random() < 0.3:
                http.socket.sendall(dice.randbytes(dice.randint(1, 5000)))
            elif dice.random() < 0.3:
                http.socket.sendall(b"POST /mcp HTTP/1.1\r\nhost: x\r\n" + b"a: b\r\n" * dice.randint(0, 500))
            else:
                http.post(dice.choice(bodies)).read()

    def read_slowly(self) -> None:
        """Read nothing of a flood for a while, of a call or of everything."""
        if self._dice.random() < 0.5:
            with silent_reader(self._place.api, "/api/events"):
                time.sleep(self._dice.uniform(0.2, 1.5))
            return
        wanted = self._wanted(self._dice.choice(("flood", "large")))
        with Http(self._place.gateway.url, receive_bytes=4096) as http:
            http.put(self._message(wanted, progressToken="slow"))
            time.sleep(self._dice.uniform(0.2, 1.5))
            self._end(wanted, self._read(http.take(), wanted, RisingProgress(self._notes, wanted)))

    def flood_connections(self) -> None:
        """Open many connections that say nothing or a part of a request, and leave."""
        opened: list[Http] = []
        try:
            for _ in range(FLOOD_CONNECTIONS):
                opened.append(Http(self._place.gateway.url))
                if self._dice.random() < 0.5:
                    opened[-1].socket.sendall(b"GET / HTTP/1.1\r\nho")
            time.sleep(self._dice.uniform(0.0, 0.3))
        finally:
            for one in opened:
                one.close()

    def list_everything(self) -> None:
        """Ask for lists, as consoles do all the time."""
        paths = ("/api/calls", "/api/tools", "/api/servers", "/api/snapshot", "/api/questions", "/healthz")
        answer = self._place.api.get(self._dice.choice(paths))
        if answer.status != 200:
            self._notes.fault(f"a list gave {answer.status} {answer.body}")

    def _any_tool(self) -> str:
        dying = self._dice.random()
        if dying < 0.01:
            return f"{self._dice.choice(SERVERS[:2])}_dies"
        return self._dice.choice(QUICK_TOOLS if dying < 0.75 else ODD_TOOLS)

    def _wanted(self, tool: str) -> Request:
        return self._notes.new(tool)

    def _arguments(self, wanted: Request) -> dict[str, object]:
        """The arguments of a call; the same for each repetition of it."""
        dice = random.Random(wanted.tag)
        return {"tag": wanted.tag, "steps": dice.randint(1, 12), "step_s": round(dice.uniform(0.0, 0.05), 3)}

    def _message(self, wanted: Request, **rest: Any) -> Message:
        return call(wanted.tool, self._arguments(wanted), **rest)

    def _complete(self, wanted: Request, patience: int = MOST_ROUNDS, **meta: Any) -> None:
        """Follow a call over its rounds, answering what is asked, as often as patience lasts."""
        rising = RisingProgress(self._notes, wanted)
        more: dict[str, Any] = {}
        for _ in range(patience + 1):
            with Http(self._place.gateway.url) as http:
                result = self._read(http.post(self._message(wanted, **meta, **more)), wanted, rising)
            if result is None or result.get("resultType") != "input_required":
                return self._end(wanted, result)
            more = {"requestState": result["requestState"]}
            if self._dice.random() < 0.05:  # a state that was changed is refused, and the question stays open
                more["requestState"] = more["requestState"][::-1]
            if "inputRequests" in result:
                more["inputResponses"] = self._answers(result["inputRequests"])

    def _answers(self, asked: Mapping[str, Message]) -> Answers:
        answers: Answers = {}
        for key, one in asked.items():
            action = self._dice.choices(("accept", "decline", "cancel"), (8, 1, 1))[0]
            answers[key] = {"action": action}
            if action == "accept":
                answers[key]["content"] = filled(one["params"].get("requestedSchema", {}), self._dice)
        return answers

    def _read(self, response: HTTPResponse, wanted: Request, rising: RisingProgress | None) -> Message | None:
        """The result of a response, or None for an error; progress rises, and nothing follows the end."""
        end: Message | None = None
        for message in self._messages(response):
            if end is not None:
                self._notes.fault(f"{wanted.tool} {wanted.tag}: {str(message)[:200]} came after the end")
            if "id" in message:
                end = message
                continue
            self._hear(wanted, message)
            if rising is None:
                if message["method"] == "notifications/progress":
                    self._notes.fault(f"{wanted.tool} {wanted.tag}: progress without a token")
            elif message["method"] == "notifications/progress":
                rising.hear(float(message["params"]["progress"]))
        if end is None:
            raise ConnectionError("no answer")
        result: Message | None = end.get("result")
        return result

    def _hear(self, wanted: Request, message: Message) -> None:
        """Learn the id of a call from its first notification."""
        named = message.get("params", {}).get("_meta", {}).get("dev.afoot/call")
        if named is not None:
            self._notes.acknowledge(wanted, str(named))

    def _messages(self, response: HTTPResponse) -> Iterator[Message]:
        if response.getheader("content-type") == "application/json":
            yield json.loads(response.read())
            return
        for event in sse(response):
            if event.data:
                yield json.loads(event.data)

    def _end(self, wanted: Request, result: Message | None) -> None:
        """Note the end that a client was told; a round or a handle is none."""
        if result is None or result.get("resultType") == "input_required":
            return
        if "afoot_call" not in (result.get("structuredContent") or {}):
            self._tell(wanted, result.get("_meta", {}), is_ok=not result.get("isError"))

    def _tell(self, wanted: Request, meta: Mapping[str, Any], *, is_ok: bool) -> None:
        if "dev.afoot/call" not in meta:
            return
        self._notes.acknowledge(wanted, str(meta["dev.afoot/call"]))
        wanted.told.add("ok" if is_ok else "not ok")
        wanted.is_unrecorded = wanted.is_unrecorded or "dev.afoot/history" in meta

    def _fact(self, wanted: Request, event: ServerSentEvent, seen: int, place: str) -> tuple[int, str]:
        """Take in an event of a call's stream: facts come in their order, each once."""
        if event.event == "fact":
            told = json.loads(event.data)
            self._notes.acknowledge(wanted, str(told["call"]))
            if told["seq"] != seen + 1:
                self._notes.fault(f"{wanted.tool} {wanted.tag}: fact {told['seq']} came after {seen}")
            seen = told["seq"]
        return seen, event.id or place

    def _call_in_session(self, http: Http, second: Http, number: int) -> None:
        wanted = self._wanted(self._dice.choice((*QUICK_TOOLS, *ASKING_TOOLS, "raises", "hangs")))
        meta = {"progressToken": f"t{number}"}
        params = {"name": wanted.tool, "arguments": self._arguments(wanted), "_meta": meta}
        rising = RisingProgress(self._notes, wanted)
        http.put(request("tools/call", params, number + 10))
        is_to_cancel, is_to_break = self._dice.random() < 0.15, self._dice.random() < 0.15
        response, place = http.take(), ""
        if response.getheader("content-type") == "application/json":
            return self._end(wanted, json.loads(response.read()).get("result"))
        for event in sse(response):
            place = event.id or place
            if not event.data:
                continue
            message = json.loads(event.data)
            if self._take_in_session(second, wanted, rising, message):
                continue  # nothing follows, and `sse` sees the end
            if is_to_cancel:
                is_to_cancel = False
                params = {"requestId": number + 10, "reason": "soak"}
                self._post(second, {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})
            elif is_to_break and place:
                break
        else:
            return
        self._resume(http.session, second, wanted, place)

    def _take_in_session(
        self, second: Http, wanted: Request, rising: RisingProgress, message: Message
    ) -> bool:
        """Take in a message of a session's stream, answering what is asked; whether it was the end."""
        method = message.get("method")
        if method is None:
            self._end(wanted, message.get("result"))
            return True
        self._hear(wanted, message)
        if method == "notifications/progress":
            rising.hear(float(message["params"]["progress"]))
        elif method == "elicitation/create" and self._dice.random() < 0.9:
            answer = self._answers({"one": message})["one"]
            self._post(second, {"jsonrpc": "2.0", "id": message["id"], "result": answer})
        return False

    def _resume(self, session: str | None, second: Http, wanted: Request, place: str) -> None:
        """Go on with a broken stream on a new connection."""
        with Http(self._place.gateway.url) as again:
            again.session = session
            rising = RisingProgress(self._notes, wanted)
            for event in sse(again.resume(place)):
                if event.data:
                    self._take_in_session(second, wanted, rising, json.loads(event.data))

    def _post(self, http: Http, message: Message) -> None:
        http.post(message).read()


def filled(schema: Mapping[str, Any], dice: random.Random) -> Message:
    """A form with something in each required field."""
    content: Message = {}
    for name, field in schema.get("properties", {}).items():
        choices = field.get("enum") or [one["const"] for one in field.get("oneOf", ())]
        if "run" in choices:
            content[name] = dice.choices(("run", "skip"), (5, 1))[0]
        elif name in schema.get("required", ()):
            content[name] = dice.choice(choices) if choices else "Ada"
    return content


def answer_as_operator(api: Api, dice: random.Random) -> int:
    """Answer one open question, as a person at the console would; how many were open."""
    asked = api.get("/api/questions").body["questions"]
    if asked:
        one = dice.choice(asked)
        answer: Message = {"action": dice.choices(("accept", "decline", "cancel"), (8, 1, 1))[0]}
        if answer["action"] == "accept":
            content = (
                {"decision": dice.choice(("run", "run", "skip"))}
                if one["kind"] == "approval"
                else {"name": "Eve"}
            )
            answer["content"] = content
        api.post(f"/api/questions/{one['id']}/answer", answer)
    return len(asked)


def sse(response: HTTPResponse) -> Iterator[ServerSentEvent]:
    """The events of a response as they come."""
    parser = EventParser()
    while chunk := response.read1(65536):
        yield from parser.feed(chunk)
