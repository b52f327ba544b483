"""`RunRelay` passes the messages of a function in another process to the engine's run, and answers them."""

import asyncio
from collections.abc import Callable

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
from afoot.providers.isolation.remote_run import encodable_result, to_remote_error


class RunRelay:
    """The run of one function in another process. `send` sends it a message; it raises ToolError."""

    def __init__(self, run: Run, send: Callable[[IpcMessage], None]) -> None:
        self._run = run
        self._send = send
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
            case AskQuestion() | InvokeTool():
                self._requests[message.number] = asyncio.create_task(self._reply(message))
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

    async def _reply(self, request: AskQuestion | InvokeTool) -> None:
        """Ask the engine what the tool asked for, and send the function what comes of it."""
        try:
            if isinstance(request, AskQuestion):
                reply = RequestReply(request.number, answer=await self._run.ask(request.question))
            else:
                result = await self._run.call(request.tool, request.arguments, request.weight)
                reply = RequestReply(request.number, result=encodable_result(result))
            self._send(reply)
        except Exception as error:  # also a reply that is too long to be sent
            self._send(RequestReply(request.number, trouble=to_remote_error(error)))
        finally:
            self._requests.pop(request.number, None)
