"""How a call is brought into each state in which something may die under it, and what people do then."""

import time
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from tests.chaos.killable_gateway import ENDED_S, LATE_S, Ground
from tests.e2e.gateway import until
from tests.e2e.raw_client import Http, Message, call, modern

GATEWAY: Final = "the gateway dies"
RUNNER: Final = "its child or server dies"
KEY: Final = "dev.afoot/idempotency"
TASKS: Final[Message] = {"elicitation": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}}
ADA: Final = {"who": {"action": "accept", "content": {"name": "Ada"}}}


class Scene(NamedTuple):
    """One call: where it runs, which tool it is of, what its marks are called, and what dies under it."""

    place: Ground
    tool: str
    tag: str
    death: str


Begin = Callable[[Scene], str]  # brings a call into its state, and gives its id
After = Callable[[Scene, str], None]  # what people do once something has died
_notes: dict[str, Any] = {}  # what a caller keeps, by tag


class Case(NamedTuple):
    """A state as the table has it, and tools that show it by what dies under them."""

    state: str
    begin: Begin
    after: After
    gateway: tuple[str, ...]
    runner: tuple[str, ...] = ()
    runs_on: str = "{tag}"  # whose process is its child or server


def runs(scene: Scene) -> str:
    """Its tool has begun."""
    started = scene.place.api.start(scene.tool, tag=scene.tag)
    scene.place.until_begun(scene.tag)
    return started


def queues(scene: Scene) -> str:
    """Another has its slot."""
    place, first = scene.place, f"{scene.tag}-first"
    place.api.start(scene.tool, tag=first)
    place.until_begun(first)
    waiting = place.api.start(scene.tool, tag=scene.tag)
    until(lambda: place.api.call(waiting)["state"] == "queued", "it to queue")
    return waiting


def reviewed(scene: Scene) -> str:
    """Somebody is asked whether it may run; its server is up."""
    place, before = scene.place, f"{scene.tag}-before"
    place.let_go(before)
    place.ended(place.api.start("far_safe", tag=before))
    waiting = place.api.start(scene.tool, tag=scene.tag)
    place.asked(waiting)
    return waiting


def starts(scene: Scene) -> str:
    """Its server was up, died, and is just being started."""
    place, before = scene.place, f"{scene.tag}-before"
    place.let_go(before)
    place.ended(place.api.start(scene.tool, tag=before))
    place.hold("slow")
    gone, count = place.begun(before)[-1], len(place.begun("slow"))
    place.kill(gone)
    place.until_missed("slow", gone)
    waiting = place.api.start(scene.tool, tag=scene.tag)
    place.until_begun("slow", count + 1)
    assert place.api.call(waiting)["state"] == "queued"
    return waiting


def asks(scene: Scene) -> str:
    """Its tool waits for an answer."""
    started = scene.place.api.start(scene.tool, tag=scene.tag)
    _notes[scene.tag] = scene.place.asked(started)["id"]
    return started


def saved(scene: Scene) -> str:
    """Its tool has saved how far it is, and the gateway knows: it has heard what was reported after that."""
    started = runs(scene)
    until(lambda: scene.place.api.call(started)["message"] == "here", "its report", ENDED_S)
    return started


def was_told(scene: Scene) -> str:
    """Its tool has its answer, and goes on."""
    started = asks(scene)
    scene.place.tell(started, "Ada")
    scene.place.front.until_marked(scene.tag, "told Ada")
    return started


def parked(scene: Scene) -> str:
    """Its caller was asked, and has not come again."""
    with Http(scene.place.front.url) as http:
        asked = http.ask(call(scene.tool, {"tag": scene.tag}))["result"]
    _notes[scene.tag] = asked["requestState"]
    return found(scene)


def stopping(scene: Scene) -> str:
    """It was told to stop, and has not stopped."""
    started = runs(scene)
    api = scene.place.api
    assert api.post(f"/api/calls/{started}/cancel", {}).status == 202
    assert api.call(started)["state"] == "cancelling"
    return started


def requested(scene: Scene) -> str:
    """A client that has nothing but its connection waits for it; that is open until the end."""
    http = _notes[scene.tag] = Http(scene.place.front.url)
    http.put(call(scene.tool, {"tag": scene.tag}, progressToken=1))
    scene.place.until_begun(scene.tag)
    return found(scene)


def left(scene: Scene) -> str:
    """Its caller went away."""
    started = requested(scene)
    _notes.pop(scene.tag).close()
    return started


def over(scene: Scene) -> str:
    """It has ended after its caller went away."""
    with Http(scene.place.front.url) as http:
        http.put(call(scene.tool, {"tag": scene.tag}, **{KEY: scene.tag, "progressToken": 1}))
        scene.place.until_begun(scene.tag)
    scene.place.let_go(scene.tag)
    started = found(scene)
    _notes[scene.tag] = scene.place.ended(started)["finished"]
    return started


def task(scene: Scene) -> str:
    """Its caller was given a task."""
    with Http(scene.place.front.url) as http:
        made = http.ask(call(scene.tool, {"tag": scene.tag}, capabilities=TASKS))["result"]
    assert made["resultType"] == "task"
    scene.place.until_begun(scene.tag)
    return str(made["taskId"])


def late_task(scene: Scene) -> str:
    """Its caller waited for a plain call, and was given a task in its middle."""
    with Http(scene.place.front.url) as http:
        since = time.monotonic()
        made = http.ask(call(scene.tool, {"tag": scene.tag}, capabilities=TASKS))["result"]
    assert made["resultType"] == "task" and time.monotonic() - since >= LATE_S
    return str(made["taskId"])


def found(scene: Scene) -> str:
    """The call of a tag."""
    api = scene.place.api
    return str(until(lambda: api.get(f"/api/calls?q={scene.tag}").body["calls"], "its call")[0]["id"])


def let_go(scene: Scene, _: str) -> None:
    """Its tool may end."""
    scene.place.let_go(scene.tag)


def let_up(scene: Scene, _: str) -> None:
    """What it runs on may come up, and its tool may end."""
    scene.place.let_go("slow")
    scene.place.let_go(scene.tag)


def decide(scene: Scene, waiting: str) -> None:
    """Somebody says yes; nothing has begun before."""
    assert scene.place.begun(scene.tag) == []
    if scene.death == RUNNER:
        scene.place.until_missed("far", scene.place.begun(f"{scene.tag}-before")[-1])
    scene.place.let_go(scene.tag)
    scene.place.decide(waiting)


def go_on(scene: Scene, _: str) -> None:
    """The next attempt begins where the one before was."""
    scene.place.until_begun(scene.tag, 2)
    assert [line.split()[:3] for line in scene.place.front.marks(scene.tag)] == [
        ["begun", "from", "0"], ["begun", "from", "1"]
    ]  # fmt: skip
    scene.place.let_go(scene.tag)


def tell(scene: Scene, waiting: str) -> None:
    """The question that was open is answered; after the death of a runner the next attempt asks anew."""
    place, first = scene.place, _notes[scene.tag]
    if scene.death == RUNNER:
        until(lambda: place.asked(waiting)["id"] != first, "it to ask again", ENDED_S)
    else:
        assert place.asked(waiting)["id"] == first
    place.tell(waiting, "Ada")
    place.front.until_marked(scene.tag, "done Ada")


def listen(scene: Scene, waiting: str) -> None:
    """The next attempt has the answer without asking for it."""
    place = scene.place
    until(lambda: len([1 for line in place.front.marks(scene.tag) if "told Ada" in line]) == 2, "it to know")
    assert place.api.question(waiting) is None
    place.let_go(scene.tag)


def retry(scene: Scene, waiting: str) -> None:
    """Its caller comes with the answer."""
    state = _notes[scene.tag]
    with Http(scene.place.front.url) as http:
        answer = call(scene.tool, {"tag": scene.tag}, requestState=state, inputResponses=ADA)
        result = http.ask(answer)["result"]
    assert result["_meta"]["dev.afoot/call"] == waiting
    outcome = scene.place.ended(waiting)["outcome"]
    assert result["content"][0]["text"].startswith(scene.tag if outcome == "ok" else f"{outcome}: ")


def repeat(scene: Scene, ended: str) -> None:
    """Its caller makes the same request again; it ended when it did."""
    with Http(scene.place.front.url) as http:
        again = http.ask(call(scene.tool, {"tag": scene.tag}, **{KEY: scene.tag}))["result"]
    assert again["_meta"]["dev.afoot/call"] == ended and again["content"][0]["text"] == scene.tag
    assert scene.place.api.call(ended)["finished"] == _notes[scene.tag]


def poll(scene: Scene, made: str) -> None:
    """Its caller asks for its task until that is done."""
    scene.place.let_go(scene.tag)
    asked = modern("tasks/get", {"taskId": made}, capabilities=TASKS)

    def is_done() -> bool:
        with Http(scene.place.front.url) as http:
            return str(http.ask(asked)["result"]["status"]) == "completed"

    until(is_done, "the task to be done", ENDED_S)


def hang_up(scene: Scene, started: str) -> None:
    """Its tool may end; its caller leaves only then."""
    scene.place.let_go(scene.tag)
    scene.place.ended(started)
    _notes.pop(scene.tag).close()


CASES: Final = [
    Case("waits in the queue", queues, let_go, ("narrow",), ("boxed_narrow",), "{tag}-first"),
    Case("waits for approval", reviewed, decide, ("risky", "far_risky"), ("far_risky",), "{tag}-before"),
    Case(
        "waits for its server, child process or tab", starts, let_up,
        ("slow_unsafe",), ("slow_unsafe",), "slow",
    ),
    Case(
        "runs, and may be repeated", runs, let_go,
        ("safe", "boxed_safe", "far_safe"), ("boxed_safe", "far_safe"),
    ),
    Case(
        "runs, and may not", runs, let_go,
        ("unsafe", "boxed_unsafe", "far_unsafe"), ("boxed_unsafe", "far_unsafe"),
    ),
    Case("has saved a checkpoint", saved, go_on, ("steps", "boxed_steps"), ("boxed_steps",)),
    Case(
        "asks, and may be repeated", asks, tell,
        ("ask_safe", "boxed_ask_safe", "asking_safe"), ("boxed_ask_safe", "asking_safe"),
    ),
    Case(
        "asks, and may not", asks, let_go,
        ("ask_unsafe", "boxed_ask_unsafe", "asking_unsafe"), ("boxed_ask_unsafe", "asking_unsafe"),
    ),
    Case("was answered", was_told, listen, ("told_safe", "boxed_told_safe"), ("boxed_told_safe",)),
    Case("waits between two rounds, and may be repeated", parked, retry, ("ask_safe",), ("boxed_ask_safe",)),
    Case("waits between two rounds, and may not", parked, retry, ("ask_unsafe",), ("boxed_ask_unsafe",)),
    Case(
        "is being stopped", stopping, let_go,
        ("stubborn", "boxed_stubborn"), ("boxed_stubborn",),
    ),
    Case("is a task", task, poll, ("task_safe",), ("boxed_task_safe",)),
    Case("became a task while it ran", late_task, poll, ("safe",), ("boxed_safe",)),
    Case("runs on for a caller that left", left, let_go, ("lasting",), ("boxed_lasting",)),
    Case("has only its connection", requested, hang_up, ("safe",), ("boxed_safe",)),
    Case("has ended, and nobody was told", over, repeat, ("lasting",)),
]  # fmt: skip
