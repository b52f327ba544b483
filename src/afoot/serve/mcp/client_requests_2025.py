"""Requests of ours to a client of the handshake era: `CallQuestions` of calls, `LookupQuestions` of lookups.

A question of a call is a request on the stream of whoever follows the call, or of the session. It is asked
again if the answer does not fit, and withdrawn if somebody else answers.
"""

import asyncio
from collections.abc import Callable, Sequence
from secrets import token_hex
from typing import Protocol

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from afoot.core.facts import NOTHING, Answer, Question
from afoot.core.notices import FORM_KINDS
from afoot.engine.approval.question import without_haste
from afoot.engine.live_call import LiveCall
from afoot.errors import AfootError, ToolError
from afoot.serve.gateway_state import GatewayState
from afoot.serve.mcp.streams import ResponseStream, encode_envelope
from afoot.wire import mcp_2025, results
from afoot.wire.jsonrpc import INTERNAL_ERROR, Envelope, Fault, Id
from afoot.wire.resources import JsonObject
from afoot.wire.results import Capabilities

MAX_TRIES = 3  # how often a question is put again after an answer that does not fit


class Wakeable(Protocol):
    """An object that wakes the task which sends the frames of an asker."""

    def wake(self) -> object: ...


class Asker(Protocol):
    """A request that follows its call, or a task on the stream of its session."""

    live: LiveCall
    extra_frames: list[bytes]

    @property
    def stream(self) -> ResponseStream: ...

    @property
    def wakeup(self) -> Wakeable: ...


class TaskAsker:
    """A task that no request follows: it asks on the stream that its session holds open."""

    def __init__(self, live: LiveCall, stream: ResponseStream, wake: Callable[[], object]) -> None:
        self.live = live
        self.extra_frames: list[bytes] = []
        self.stream = stream
        self.wakeup = self
        self._wake = wake

    def wake(self) -> None:
        """Wake the stream: there is something to send."""
        self._wake()


class PutQuestion(Struct, frozen=True):
    """A question that a client was asked, by which of its requests, how often before, and when."""

    asker: Asker
    question: Question
    tries: int
    at: float


class CallQuestions:
    """The questions that one client was asked for calls, each with the request that follows the call."""

    def __init__(self, gateway: GatewayState, caller: str) -> None:
        self._gateway = gateway
        self._caller = caller
        self._asked: dict[Id, PutQuestion] = {}  # by our request
        self._prefix = "afoot"
        self._number = 0

    def use_new_ids(self) -> None:
        """Use ids that no other gateway has: one has asked this client before."""
        self._prefix = f"afoot-{token_hex(4)}"

    def put(self, asker: Asker, asked: Sequence[Question], able: Capabilities) -> list[bytes]:
        """Put questions, each once a request; those that the client cannot answer go to the operator."""
        known = {
            one.question.id for one in self._asked.values() if one.asker is asker or not one.asker.stream.gone
        }
        # A question comes once more when it is on record; and another request may have asked it.
        fresh = [one for one in asked if one.id not in known]
        self._gateway.decline_unanswerable(fresh, able)
        return [self._put(asker, one, 0) for one in fresh if able.may_answer(one)]

    def has_form_of(self, asker: Asker) -> bool:
        """Whether a form that this request asked for is open at the client."""
        return any(one.asker is asker and one.question.kind in FORM_KINDS for one in self._asked.values())

    def take_answer(self, message: Envelope) -> bool:
        """Take an answer; one that does not fit is asked for again. False if nothing was asked."""
        known = self._asked.pop(message.id, None) if isinstance(message.id, int | str) else None
        if known is None:
            self._gateway.count("answers to nothing")
            return False
        asker, asked = known.asker, known.question
        engine = self._gateway.engine
        if engine.wire_log is not None:
            engine.wire_log.add(asked.id.partition(".")[0], "caller", "in", encode_envelope(message))
        try:
            given = Answer("cancel", by=self._caller)
            if message.result:
                given = results.read_answer(asked, message.result, self._caller)
            engine.answer(asked.id, without_haste(asked, given, engine.clock.now() - known.at))
        except (ToolError, Fault):
            self._put_again(asker, asked, known.tries + 1)
        except AfootError:
            self._gateway.count("answers too late")
        return True

    def withdraw(self, question_id: str, reason: str) -> list[bytes]:
        """Take a question back, whichever request has asked it."""
        asked = [number for number, one in self._asked.items() if one.question.id == question_id]
        return [self._withdraw(number, reason) for number in asked]

    def withdraw_all_of(self, asker: Asker, reason: str) -> list[bytes]:
        """Take back what a request asked."""
        if not self._asked:
            return []
        asked = [number for number, one in self._asked.items() if one.asker is asker]
        return [self._withdraw(number, reason) for number in asked]

    def pass_on(self, asker: Asker, received: set[str]) -> None:
        """Let a request that goes on, on another stream, wait for the answers to what its client received."""
        for number, one in list(self._asked.items()):
            if one.question.id in received:
                self._asked[number] = replace(one, asker=asker)
            elif one.question.id in asker.live.call.questions:
                del self._asked[number]

    def _put(self, asker: Asker, asked: Question, tries: int) -> bytes:
        ended = [number for number, one in self._asked.items() if one.asker.live.call.is_finished]
        for number in ended:  # whose request broke, and was never resumed
            del self._asked[number]
        self._number += 1
        number = f"{self._prefix}-{self._number}"
        self._asked[number] = PutQuestion(asker, asked, tries, self._gateway.engine.clock.now())
        return mcp_2025.question_request(number, asked)

    def _withdraw(self, number: Id, reason: str) -> bytes:
        del self._asked[number]
        return mcp_2025.cancel_notification(number, reason)

    def _put_again(self, asker: Asker, asked: Question, tries: int) -> None:
        if tries >= MAX_TRIES:
            self._gateway.engine.answer(asked.id, Answer("cancel", NOTHING, self._caller))
            return
        self._gateway.count("answers refused")
        if not asker.stream.gone:  # else it is asked again when it comes back
            asker.extra_frames.append(self._put(asker, asked, tries))
            asker.wakeup.wake()


class _ClientError(Struct):
    message: str = ""


_error_decoder = msgspec.json.Decoder(_ClientError)
_result_decoder = msgspec.json.Decoder(dict[str, object])


class LookupQuestions:
    """The questions of other servers that one client was asked during a lookup, and has not answered yet."""

    def __init__(self) -> None:
        self._open: dict[Id, asyncio.Future[Envelope]] = {}
        self._prefix = "afoot-lookup"
        self._number = 0

    def use_new_ids(self) -> None:
        """Use ids that no other gateway has: one has asked this client before."""
        self._prefix = f"afoot-lookup-{token_hex(4)}"

    async def ask(self, stream: ResponseStream, method: str, body: object) -> JsonObject:
        """Ask, and wait for the answer; raises Fault if there is none. Giving up withdraws the question."""
        number, reply = self._begin()
        try:
            await stream.send([mcp_2025.nested_request(number, method, body)])
            return _read_answer(await reply, method)
        except asyncio.CancelledError:
            if not stream.gone:
                await stream.send([mcp_2025.cancel_notification(number, "its request is over")])
            raise
        finally:
            del self._open[number]

    async def ask_outside_requests(self, send: Callable[[bytes], object], method: str) -> JsonObject:
        """Ask on the stream that the client holds open, and wait; raises Fault if there is no answer."""
        number, reply = self._begin()
        try:
            send(mcp_2025.nested_request(number, method, {}))
            return _read_answer(await reply, method)
        except asyncio.CancelledError:
            send(mcp_2025.cancel_notification(number, "nobody waits for it any more"))
            raise
        finally:
            del self._open[number]

    def _begin(self) -> tuple[str, asyncio.Future[Envelope]]:
        self._number += 1
        number = f"{self._prefix}-{self._number}"
        reply = self._open[number] = asyncio.get_running_loop().create_future()
        return number, reply

    def take_answer(self, message: Envelope) -> bool:
        """Take an answer; False if it is to none of these questions."""
        reply = self._open.get(message.id) if isinstance(message.id, int | str) else None
        if reply is not None and not reply.done():
            reply.set_result(message)
        return reply is not None


def _read_answer(message: Envelope, method: str) -> JsonObject:
    """The client's answer; raises Fault for an error, except for a form: its user then answered nothing."""
    try:
        if not message.error:
            return _result_decoder.decode(message.result)
        why = _error_decoder.decode(message.error).message
    except msgspec.ValidationError:
        why = "its answer cannot be read"
    if method == "elicitation/create":
        return {"action": "cancel"}
    raise Fault(INTERNAL_ERROR, f"the client did not answer {method}: {why}", status=200)
