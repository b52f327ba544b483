"""`runs_as_task` says when a call is a task; `answer_task_request` answers the requests about tasks (H3).

A task is no thing of its own: getting it reads its call, updating it answers, cancelling it cancels.
"""

from collections.abc import Mapping

from afoot.core.names import full_name
from afoot.core.ports import Tool
from afoot.engine.approval.question import without_haste
from afoot.engine.live_call import LiveCall
from afoot.errors import AfootError, ToolError, UnknownName
from afoot.observe.eta import describe_eta, quantile
from afoot.serve.api.views import call_eta, eta_range
from afoot.serve.gateway_state import GatewayState
from afoot.wire import mcp_2026, results, tasks
from afoot.wire.jsonrpc import Envelope, Fault, Id
from afoot.wire.results import Capabilities, ToolCall
from afoot.wire.tasks import TaskMethodParams, TaskSnapshot

MIN_RUNS = 5  # of a tool, before how long it usually takes is known


def runs_as_task(gateway: GatewayState, tool_call: ToolCall, tool: Tool | None, *, modern: bool) -> bool:
    """Whether the call becomes a task; raises Fault if its tool and its caller do not agree.

    In 2025-11-25 the caller says so, and the list of tools tells it whether it may. In 2026-07-28 the gateway
    decides: by the tool, else by how long the tool usually takes.
    """
    support = "forbidden" if tool is None else tool.task
    if not modern:
        if tool is not None and (
            support == "required" and not tool_call.task or support == "forbidden" and tool_call.task
        ):
            raise tasks.task_support_fault(tool.name, support)
        return tool_call.task
    if not tool_call.capabilities.tasks:
        if support == "required":
            raise tasks.undeclared_extension()
        return False
    if support:
        return support != "forbidden"
    least_s = gateway.settings.task_after_s
    took = list[float]() if tool is None else gateway.engine.durations.of(full_name(tool))
    return least_s > 0 and len(took) >= MIN_RUNS and quantile(took, 0.5) >= least_s


def may_become_task(gateway: GatewayState, tool_call: ToolCall, tool: Tool | None) -> bool:
    """Whether a call of 2026-07-28 that is none yet may become a task while its request is open (H7).

    The extension lets the server decide for each request, a client that declares it must take a task in
    place of any result, and nothing binds the time of that. Progress belongs to the request until then.
    """
    is_forbidden = tool is None or tool.task == "forbidden"
    return tool_call.capabilities.tasks and not is_forbidden and gateway.settings.task_after_s > 0


def task_status(gateway: GatewayState, live: LiveCall) -> TaskSnapshot:
    """The task that a call is now, with its ETA."""
    now = gateway.engine.clock.now()
    eta = call_eta(gateway.engine, live, now)
    left_s = None if eta is None else eta.left_s
    ttl_s = gateway.settings.task_ttl_s
    console = gateway.engine.policy.console
    return TaskSnapshot(live.call, now, live.heard, left_s, eta_range(eta), describe_eta(eta), ttl_s, console)


def created_result(gateway: GatewayState, request_id: Id, live: LiveCall) -> bytes:
    """The task in place of the result, for a caller of 2026-07-28."""
    return tasks.created_2026(request_id, task_status(gateway, live), gateway.info)


async def find_task(gateway: GatewayState, task: str, caller: str) -> LiveCall:
    """A call of this caller's own; raises Fault, the same whether it is unknown or somebody else's."""
    try:
        live = await gateway.own_call(task, caller)
    except UnknownName:
        raise tasks.unknown_task(task) from None
    if not is_kept(gateway, live):
        raise tasks.expired_task(task)
    return live


def is_kept(gateway: GatewayState, live: LiveCall) -> bool:
    """Whether a call may still be asked for: it runs, or ended not too long ago."""
    end = live.call.end
    return end is None or gateway.engine.clock.now() <= end.at + gateway.settings.task_ttl_s


async def answer_task_request(
    gateway: GatewayState, message: Envelope, headers: Mapping[str, str] | None, caller: str
) -> bytes:
    """Answer a request about a task (2026-07-28); raises Fault."""
    asked, can = tasks.read_2026(message, headers)
    request_id = message.id
    assert isinstance(request_id, int | str)
    live = await find_task(gateway, asked.task, caller)
    if message.method == "tasks/update":
        await _take_answers(gateway, live, asked, can, caller)
    elif message.method == "tasks/cancel":
        gateway.engine.cancel(live, "caller", "the caller cancelled its task")
        await gateway.wait_until_recorded()
    else:
        gateway.decline_unanswerable(live.call.open.values(), can)
        return tasks.get_result_2026(request_id, task_status(gateway, live), can, gateway.info)
    return mcp_2026.complete_result(request_id, gateway.info)


async def _take_answers(
    gateway: GatewayState, live: LiveCall, asked: TaskMethodParams, can: Capabilities, caller: str
) -> None:
    """Take the answers to what is still asked, and ignore other keys; raises Fault for a misfit."""
    wrong: Fault | None = None
    for name, question in tasks.caller_questions(live.call, can).items():
        given = (asked.answers or {}).get(name)
        if given is None:
            continue
        try:
            open_s = gateway.engine.clock.now() - live.call.asked_at[question.id]
            answer = without_haste(question, results.read_answer(question, given, caller), open_s)
            gateway.engine.answer(question.id, answer)
        except (ToolError, Fault) as error:
            gateway.count("answers refused")
            why = str(error).removeprefix(f"inputResponses.{question.key}: ")  # here it has another name
            wrong = wrong or tasks.bad_input_response(name, why)
        except AfootError:
            gateway.count("answers too late")
    await gateway.wait_until_recorded()
    if wrong is not None:
        raise wrong
