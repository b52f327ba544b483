"""`ApiRequest` is one request to the operator's API: its strictly read query and body, and `ApiError`."""

from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TypeVar
from urllib.parse import parse_qsl

import msgspec
from msgspec import Struct

from afoot.core.ports import CallOrigin
from afoot.errors import (
    AfootError,
    AlreadyAnswered,
    CallerError,
    Conflict,
    IllegalFact,
    MissingScope,
    OverQuota,
    Refused,
    ToolError,
    UnknownName,
)
from afoot.serve.access.guard import Denied
from afoot.serve.access.principal import ANSWER, NOBODY, OPERATOR, WATCH, Principal
from afoot.serve.api.views import encode_json
from afoot.serve.gateway_state import GatewayState
from afoot.serve.mcp.asgi import HttpResponse, Receive, Scope, header, read_body
from afoot.serve.unread_results import LARGE_RESULT_BYTES
from afoot.wire.jsonrpc import Fault, validation_message

T = TypeVar("T")


class ApiError(Exception):
    """An error response; `more` goes into the error's JSON."""

    def __init__(self, status: int, message: str, category: str = "validation", **more: object) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.category = category
        self.more = more


class ApiRequest(Struct, frozen=True):
    """One request to a route. `names` are the variable parts of the path."""

    gateway: GatewayState
    scope: Scope
    receive: Receive
    reply: HttpResponse
    names: Mapping[str, str]
    principal: Principal = NOBODY

    @property
    def session(self) -> str:
        """The browser session of the request; empty if it has a token."""
        return self.principal.session

    @property
    def identity(self) -> str:
        """The operator who asks, as far as operators are distinct: a caller's name, or a session's id."""
        return self.session if self.principal.caller == OPERATOR else self.principal.caller

    def query(self, *known: str) -> dict[str, str]:
        """The query's parameters; raises ApiError for an unknown one."""
        given = dict(parse_qsl(self.scope["query_string"].decode("latin-1"), keep_blank_values=True))
        for name in given:
            if name not in known:
                offered = ", ".join(known) or "none"
                raise ApiError(422, f"query {name}: unknown; known here: {offered}", fields=[name])
        return {name: value for name, value in given.items() if value}

    async def body(self, kind: type[T]) -> T:
        """The body as this type; raises ApiError naming the field. A missing body is an empty object."""
        if header(self.scope, b"content-type") is None and _is_empty(self.scope):
            data = b"{}"
        else:
            data = await read_body(self.scope, self.receive, self.gateway.settings.max_body_bytes)
        if self.reply.denied:
            raise ConnectionResetError  # its token ended before the body was complete
        try:
            if not data.isascii():
                str(data, "utf-8")  # the decoder does not check what it leaves undecoded
            return msgspec.json.decode(data or b"{}", type=kind)
        except msgspec.ValidationError as error:
            message = validation_message(error, "body")
            raise ApiError(422, message, fields=[message.partition(":")[0].removeprefix("body.")]) from None
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise ApiError(400, f"body: not JSON: {error}") from None
        except RecursionError:
            raise ApiError(400, "body: nested too deep") from None

    def seen(self) -> None:
        """Note that a person is there who can be asked (A1); one who may not answer others does not count."""
        if ANSWER in self.principal.scopes and self.principal.role == OPERATOR:
            engine = self.gateway.engine
            engine.policy.seen = engine.clock.now()

    @property
    def is_still_admitted(self) -> bool:
        """Whether the request may still be answered: its session may end while its stream is open."""
        sessions = self.gateway.browser_sessions
        return not self.session or (sessions is not None and sessions.keep(self.session))

    @property
    def only_caller(self) -> str:
        """The only caller whose calls may be seen; empty: everybody's (S3)."""
        return "" if WATCH in self.principal.scopes else self.principal.caller

    def may_see(self, caller: str) -> bool:
        """Whether the calls of this caller may be seen."""
        return self.only_caller in ("", caller)

    @property
    def origin(self) -> CallOrigin:
        """The origin of a call that this request starts."""
        sent = {key.decode("latin-1"): value.decode("latin-1") for key, value in self.scope["headers"]}
        gateway = self.gateway
        surface = "console" if self.session else "api"
        return self.principal.origin(surface, gateway.headers_for_tools(sent), gateway.engine.redactor)

    def header(self, name: bytes) -> str:
        """A header's text, or nothing."""
        return (header(self.scope, name) or b"").decode("latin-1")

    async def answer(self, status: int, thing: object, *headers: tuple[bytes, bytes]) -> None:
        """Answer with JSON; raises Fault if its asker leaves too much unread."""
        body = encode_json(thing)
        with self.bounded(len(body)):
            await self.reply.json(status, body, (b"cache-control", b"no-store"), *headers)

    @contextmanager
    def bounded(self, size: int) -> Iterator[None]:
        """Count so many bytes as unread by the asker while the block sends them, if they are many (H8).

        Raises Fault if there is no room for them.
        """
        unread, caller = self.gateway.unread, self.principal.caller
        if size < LARGE_RESULT_BYTES:
            yield
            return
        if not unread.take(caller, size):
            raise unread.refusal(caller)
        try:
            yield
        finally:
            unread.free(caller, size)


Handler = Callable[[ApiRequest], Awaitable[None]]


def read_number(text: str, name: str, low: float, high: float) -> float:
    """A number in the query; raises ApiError."""
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not low <= value <= high:
        raise ApiError(422, f"{name}: must be a number from {low:g} to {high:g}, not {text!r}", fields=[name])
    return value


def read_choice(text: str, name: str, offered: tuple[str, ...]) -> str:
    """One of a few words in the query; raises ApiError."""
    if text and text not in offered:
        raise ApiError(422, f"{name}: must be one of {', '.join(offered)}, not {text!r}", fields=[name])
    return text


def as_api_error(error: Exception) -> ApiError | None:
    """The error response for an error that was raised on purpose; None for a bug."""
    match error:
        case ApiError():
            return error
        case Denied():
            return ApiError(error.status, str(error), "auth")
        case Fault():
            category = "rate_limit" if error.status == 429 else "validation"
            return ApiError(error.status, error.message, category)
        case UnknownName():
            return ApiError(404, str(error), "not_found", nearest=error.nearest)
        case MissingScope():
            return ApiError(403, str(error), "auth", code="insufficient_scope", scopes=error.scopes)
        case OverQuota():
            return ApiError(429, str(error), "rate_limit", retryable=True, retry_after_s=error.retry_after)
        case Refused():
            return ApiError(503, str(error), "unavailable", retry_after_s=error.retry_after)
        case AlreadyAnswered() | IllegalFact() | Conflict():
            return ApiError(409, str(error), "refused")
        case ToolError():
            return ApiError(422, error.message, error.category)
        case CallerError():
            return ApiError(422, str(error))
        case AfootError():
            return ApiError(503, str(error), "unavailable")
        case _:
            return None


def _is_empty(scope: Scope) -> bool:
    length = header(scope, b"content-length")
    return header(scope, b"transfer-encoding") is None and (length is None or length == b"0")
