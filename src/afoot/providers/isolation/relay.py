"""`RunRelay` passes the messages of a function in another process to the engine's run, and answers them."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

from afoot.core.facts import Answer, Result
from afoot.core.ports import Report, Run
from afoot.providers.isolation.frames import (
    AskQuestion,
    ContentReport,
    Heartbeat,
    InvokeTool,
    IpcMessage,
    LogMessage,
    ProgressReading,
    RequestReply,
    ResourceChanged,
    WithdrawRequest,
)
from afoot.providers.isolation.worker_run import encodable_result, to_remote_error


class RunRelay:
    """The run of one function in another process. `send` sends it a message; it raises ToolError.

    `name` begins the keys of the calls that it makes, if the next owner of its call may have to find them.
    """

    def __init__(self, run: Run, send: Callable[[IpcMessage], None], name: str = "") -> None:
        self._run = run
        self._send = send
        self._name = name
        self._requests: dict[int, asyncio.Task[None]] = {}

    def receive(self, message: IpcMessage) -> bool:
        """Pass a report, a line, a question or a call on; False for any other message."""
        match message:
            case ProgressReading(p=progress, t=total, m=text):
                self._run.report(progress, total, text)
            case ContentReport():
                report = Report(
                    message.progress,
                    message.total,
                    message.message,
                    message.data,
                    message.partial,
                    message.checkpoint,
                )
                self._run.content(report)
            case Heartbeat():
                self._run.alive()
            case ResourceChanged(uri=uri):
                self._run.resource_changed(uri)
            case LogMessage(text=text, level=level, logger=logger):
                self._run.log(text, level, logger)
            case AskQuestion(number=number):
                self.reply(number, partial(self._run.ask, message.question))
            case InvokeTool(number=number, tool=tool, arguments=arguments, weight=weight):
                self.reply(number, partial(self._run.call, tool, arguments, weight, self.key_of(number)))
            case WithdrawRequest(number=number):
                request = self._requests.pop(number, None)
                if request is not None:
                    request.cancel()
            case _:
                return False
        return True

    def close(self) -> None:
        """Withdraw what the function still asks for."""
        for task in self._requests.values():
            task.cancel()

    def key_of(self, number: int) -> str:
        """The key of the call that is made for this request of the function."""
        return f"{self._name}.{number}" if self._name else ""

    def reply(self, number: int, find: Callable[[], Awaitable[Answer | Result]]) -> None:
        """Send the function what comes of its request, once it is there."""
        self._requests[number] = asyncio.create_task(self._reply(number, find))

    async def _reply(self, number: int, find: Callable[[], Awaitable[Answer | Result]]) -> None:
        try:
            given = await find()
            if isinstance(given, Answer):
                reply = RequestReply(number, answer=given)
            else:
                reply = RequestReply(number, result=encodable_result(given))
            self._send(reply)
        except Exception as error:  # also a reply that is too long to be sent
            self._send(RequestReply(number, trouble=to_remote_error(error)))
        finally:
            self._requests.pop(number, None)
