"""Calls as tasks on the wire: what each era is told, judged by the official types where there are some."""

import json
from typing import Any

import mcp_types
import pytest
from msgspec import Raw

from afoot.core.call import Call, evolve, note
from afoot.core.facts import (
    Answer,
    Answered,
    Asked,
    CancelRequested,
    Failure,
    Finished,
    Opened,
    Question,
    Reading,
    Result,
    Started,
)
from afoot.wire import tasks
from afoot.wire.jsonrpc import Fault, read
from afoot.wire.results import TASKS_EXTENSION, Capabilities
from afoot.wire.tasks import TaskSnapshot

INFO = Raw(b'{"name":"afoot","version":"1"}')
AT = 1_700_000_000.0
ABLE = Capabilities(elicitation={}, extensions={TASKS_EXTENSION: {}})
MUTE = Capabilities(extensions={TASKS_EXTENSION: {}})
PREFIX = "io.modelcontextprotocol/"
OK = Result(Raw(b'[{"type":"text","text":"done"}]'))
FORM = Question("c.1", "again", "form", "sure?", Raw(b'{"type":"object","properties":{}}'))


def running(*facts: Any) -> Call:
    """A call that began at AT, and what happened to it then."""
    call = Call("c", Opened(AT, "tool", "local", "me", Raw(b"{}")))
    evolve(call, Started(AT))
    for fact in facts:
        note(call, fact) if isinstance(fact, Reading) else evolve(call, fact)
    return call


def got(call: Call, can: Capabilities = ABLE, **more: Any) -> dict[str, Any]:
    """What `tasks/get` says in 2026-07-28."""
    found: dict[str, Any] = json.loads(
        tasks.get_result_2026(1, TaskSnapshot(call, AT + 60, **more), can, INFO)
    )["result"]
    assert found["resultType"] == "complete" and found["taskId"] == "c"
    return found


def older(call: Call, can: Capabilities = ABLE) -> dict[str, Any]:
    """What `tasks/get` says in 2025-11-25, which its own type accepts."""
    found: dict[str, Any] = json.loads(tasks.get_result_2025(1, TaskSnapshot(call, AT + 60), can))["result"]
    mcp_types.GetTaskResult.model_validate(found)
    return found


def test_a_task_tells_its_numbers_and_a_line_to_read() -> None:
    """H3: live numbers in `_meta`, a readable statusMessage."""
    call = running(Reading(AT + 50, 37, 120, "page 37"))
    found = got(call, eta_s=120.0, left="~2 min left")
    assert found["status"] == "working"
    assert found["statusMessage"] == "37/120 · page 37, ~2 min left"
    assert found["_meta"]["dev.afoot/progress"] == {"progress": 37, "total": 120, "eta_s": 120.0}
    assert found["createdAt"] == "2023-11-14T22:13:20.000Z"
    assert found["lastUpdatedAt"] == "2023-11-14T22:14:10.000Z"


@pytest.mark.parametrize(
    ("reading", "said"),
    [
        (None, "running, 60 s"),
        (Reading(AT), "running, 60 s"),
        (Reading(AT, 3), "3"),
        (Reading(AT, message="thinking"), "thinking"),
        (Reading(AT, 3, None, "pages"), "3 · pages"),
    ],
)
def test_the_line_says_what_is_known(reading: Reading | None, said: str) -> None:
    """H3: numbers, words, or how long it runs."""
    assert got(running(*([] if reading is None else [reading])))["statusMessage"] == said


def test_what_it_asks_stands_in_the_task_under_a_key_of_its_own() -> None:
    """H3, Q1: an author may use a key twice in a call; in a task each is used once."""
    call = running(Asked(AT + 1, FORM))
    first = got(call)
    assert first["status"] == "input_required"
    assert first["inputRequests"]["1"]["method"] == "elicitation/create"
    assert first["_meta"]["dev.afoot/progress"]["waiting_on"] == "person"
    evolve(call, Answered(AT + 2, "c.1", Answer("accept")))
    assert got(call)["status"] == "working"
    evolve(call, Asked(AT + 3, Question("c.2", "again", "form", "really?")))
    assert list(got(call)["inputRequests"]) == ["2"]
    assert older(call)["status"] == "input_required"


def test_what_the_caller_cannot_answer_is_work_to_it() -> None:
    """H3, A5: the operator is asked, and the line says so."""
    found = got(running(Asked(AT + 1, FORM)), MUTE)
    assert found["status"] == "working" and "inputRequests" not in found
    assert found["statusMessage"] == "waiting for an answer: sure?"


def test_a_result_is_inside_the_task() -> None:
    """H3: as the request would have been answered; and no key of the older era."""
    found = got(running(Finished(AT + 9, "ok", OK)), ttl_s=60.0)
    assert found["status"] == "completed" and found["result"]["content"] == [{"type": "text", "text": "done"}]
    assert found["ttlMs"] == 69_000 and tasks.RELATED_TASK not in json.dumps(found)


FAILED = Finished(AT + 9, "failed", failure=Failure("no such page", "not_found", "not_found"))
CRASHED = Finished(AT + 9, "failed", failure=Failure("tool tool crashed", trace="Traceback …"))
LOST = Finished(AT + 9, "lost", failure=Failure("lost: the gateway died", "unavailable", "lost"))
LATE = Finished(AT + 9, "timed_out", failure=Failure("timed out", "timeout", "idle_limit"))
STOPPED = Finished(AT + 9, "cancelled", failure=Failure("cancelled: enough", "cancelled", "cancelled"))


@pytest.mark.parametrize(
    ("end", "new", "old"),
    [
        (Finished(AT + 9, "ok", OK), "completed", "completed"),
        (FAILED, "completed", "failed"),
        (CRASHED, "failed", "failed"),
        (LOST, "failed", "failed"),
        (LATE, "completed", "failed"),
        (STOPPED, "cancelled", "cancelled"),
    ],
    ids=lambda one: getattr(one, "outcome", None),
)
def test_every_end_has_its_status(end: Finished, new: str, old: str) -> None:
    """H3, E2: `failed` is for what is the gateway's or a crash; what a tool says of itself is a result."""
    call = running(end)
    found = got(call)
    assert (found["status"], older(call)["status"]) == (new, old)
    assert ("result" in found, "error" in found) == (new == "completed", new == "failed")
    if new == "failed":
        assert found["error"]["code"] == -32603 and "Traceback" not in json.dumps(found)


def test_a_cancel_shows_at_once_in_the_older_era() -> None:
    """X1, H3: there the answer to a cancel must say cancelled; in the newer one it is so when it is so."""
    call = running(CancelRequested(AT + 5, "caller", "enough"))
    assert got(call)["status"] == "working" and got(call)["statusMessage"] == "cancelling"
    assert older(call)["status"] == "cancelled"
    evolve(call, LOST)  # its gateway died before it had stopped
    assert (older(call)["status"], got(call)["status"]) == ("cancelled", "failed")


@pytest.mark.parametrize(("age_s", "poll"), [(0, 500), (60, 3000), (4000, 10_000)])
def test_the_older_a_task_the_later_it_is_worth_asking(age_s: float, poll: int) -> None:
    """H3: the poll interval."""
    frame = json.loads(tasks.created_2026(1, TaskSnapshot(running(), AT + age_s), INFO))["result"]
    assert frame["resultType"] == "task" and frame["pollIntervalMs"] == poll
    assert "requestState" not in frame


def test_a_task_of_the_older_era_is_what_its_types_say() -> None:
    """H3: created, listed, and told of."""
    of = TaskSnapshot(running(Reading(AT + 1, 1, 2)), AT + 60)
    made = json.loads(tasks.created_2025(1, of))["result"]
    assert mcp_types.CreateTaskResult.model_validate(made).task.task_id == "c"
    listed = json.loads(tasks.list_result_2025(1, [of, of], ABLE, "more"))["result"]
    page = mcp_types.ListTasksResult.model_validate(listed)
    assert (len(page.tasks), page.next_cursor) == (2, "more")
    assert "nextCursor" not in json.loads(tasks.list_result_2025(1, [], ABLE, None))["result"]
    told = json.loads(tasks.status_notification_2025(of, ABLE))
    assert mcp_types.TaskStatusNotification.model_validate(told).params.status == "working"
    assert told["params"]["_meta"]["dev.afoot/progress"]["progress"] == 1


def test_results_and_questions_say_their_task_and_progress_is_left_alone() -> None:
    """H3: `related-task`, in 2025-11-25 alone."""
    result = json.loads(tasks.with_related_task(b'{"id":1,"result":{"content":[],"_meta":{"a":1}}}', "c"))[
        "result"
    ]
    assert result["_meta"] == {"a": 1, tasks.RELATED_TASK: {"taskId": "c"}}
    error = b'{"id":1,"error":{"code":1,"message":"no"}}'
    assert json.loads(tasks.with_related_task(error, "c")) == json.loads(error)


def test_a_tool_says_whether_it_may_be_a_task() -> None:
    """H3: execution.taskSupport; what nobody declared may be one."""
    plain = tasks.with_task_support(b'{"name":"a"}', "")
    assert json.loads(bytes(plain)) == {"name": "a", "execution": {"taskSupport": "optional"}}
    required = json.loads(bytes(tasks.with_task_support(b'{"name":"a"}', "required")))
    assert required["execution"]["taskSupport"] == "required"


def asked(method: str, can: dict[str, Any], **params: Any) -> Any:
    """A request of the extension as it comes in."""
    meta = {f"{PREFIX}protocolVersion": "2026-07-28", f"{PREFIX}clientCapabilities": can}
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}}
    return read(json.dumps(body).encode())


def test_only_who_declared_the_extension_may_speak_of_tasks() -> None:
    """H3: -32021, and what is missing."""
    with pytest.raises(Fault) as refused:
        tasks.read_2026(asked("tasks/get", {}, taskId="c"), None)
    assert refused.value.code == -32021
    assert refused.value.data == {"requiredCapabilities": {"extensions": {TASKS_EXTENSION: {}}}}
    task, can = tasks.read_2026(asked("tasks/get", {"extensions": {TASKS_EXTENSION: {}}}, taskId="c"), None)
    assert task.task == "c" and can.tasks


@pytest.mark.parametrize("name", [None, "other"])
def test_the_header_must_name_the_task(name: str | None) -> None:
    """H3: -32020 for a missing one, and for another's."""
    headers = {"mcp-protocol-version": "2026-07-28", "mcp-method": "tasks/get"}
    if name is not None:
        headers["mcp-name"] = name
    with pytest.raises(Fault) as refused:
        tasks.read_2026(asked("tasks/get", {"extensions": {TASKS_EXTENSION: {}}}, taskId="c"), headers)
    assert refused.value.code == -32020


def test_a_request_without_a_task_is_told_which_field() -> None:
    """E4: params.taskId."""
    with pytest.raises(Fault, match="taskId: missing"):
        tasks.read_2026(asked("tasks/get", {"extensions": {TASKS_EXTENSION: {}}}), None)


def test_how_long_a_task_is_kept_is_a_number_that_is_true_in_both_eras() -> None:
    """H3: from its beginning; of one that runs as if it ended now, so that it is never kept for less."""
    call = running()
    of = TaskSnapshot(call, AT + 60, ttl_s=10.0)
    made = json.loads(tasks.created_2025(1, of))["result"]["task"]
    assert (got(call, ttl_s=10.0)["ttlMs"], made["ttl"]) == (70_000, 70_000)
    evolve(call, Finished(AT + 9, "ok", OK))
    assert got(call, ttl_s=10.0)["ttlMs"] == 19_000
    assert json.loads(tasks.get_result_2025(1, of, ABLE))["result"]["ttl"] == 19_000


def test_a_task_was_never_updated_in_the_future() -> None:
    """H3, C1: while it starts again, its silence counts from a moment that is still to come."""
    assert got(running(), heard=AT + 180)["lastUpdatedAt"] == "2023-11-14T22:14:20.000Z"


def test_a_task_begins_as_one_that_works() -> None:
    """H3: in 2025-11-25 it must; what it asks is told to who asks for it."""
    of = TaskSnapshot(running(Asked(AT + 1, FORM)), AT + 2)
    assert json.loads(tasks.created_2025(1, of))["result"]["task"]["status"] == "working"


def test_an_update_without_answers_is_told_which_field() -> None:
    """E4: params.inputResponses; an empty one is none too few."""
    can: dict[str, Any] = {"extensions": {TASKS_EXTENSION: {}}}
    with pytest.raises(Fault, match=r"params\.inputResponses: missing") as refused:
        tasks.read_2026(asked("tasks/update", can, taskId="c"), None)
    assert refused.value.code == -32602
    assert tasks.read_2026(asked("tasks/update", can, taskId="c", inputResponses={}), None)[0].answers == {}
