"""One request to the operator's API: its query and body, read strictly, and what is wrong with a status."""

from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar
from urllib.parse import parse_qsl

import msgspec
from msgspec import Struct

from afoot.errors import (
    AfootError,
    AlreadyAnswered,
    CallerError,
    IllegalFact,
    OverQuota,
    Refused,
    ToolError,
    UnknownName,
)
from afoot.serve.asgi import Receive, Scope, header, read_body
from afoot.serve.guard import Denied
from afoot.serve.http import Reply
from afoot.serve.principal import ANSWER, NOBODY, OPERATOR, WATCH, Principal
from afoot.serve.site import Site
from afoot.serve.view import encode
from afoot.wire.jsonrpc import Fault, place

T = TypeVar("T")


class Wrong(Exception):
    """What the answer is instead of what was asked for; `more` goes into the error."""

    def __init__(self, status: int, message: str, category: str = "validation", **more: object) -> None:
        super().__init__(message)
        self.status, self.message, self.category, self.more = status, message, category, more


class Request(Struct, frozen=True):
    """What a route gets. `names` are the parts of the path that the route leaves open."""

    site: Site
    scope: Scope
    receive: Receive
    reply: Reply
    names: Mapping[str, str]
    who: Principal = NOBODY

    @property
    def session(self) -> str:
        """The session of the browser that asks; nothing if it bears a token."""
        return self.who.session

    @property
    def identity(self) -> str:
        """Which operator asks, as far as they can be told apart."""
        return self.session or ("" if self.who.caller == OPERATOR else self.who.caller)

    def query(self, *known: str) -> dict[str, str]:
        """The query's parameters; raises Wrong for one that is not known."""
        given = dict(parse_qsl(self.scope["query_string"].decode("latin-1"), keep_blank_values=True))
        for name in given:
            if name not in known:
                offered = ", ".join(known) or "none"
                raise Wrong(422, f"query {name}: unknown; known here: {offered}", fields=[name])
        return {name: value for name, value in given.items() if value}

    async def body(self, kind: type[T]) -> T:
        """The body as this type; raises Wrong naming the field. No body at all is an empty object."""
        if header(self.scope, b"content-type") is None and _is_empty(self.scope):
            data = b"{}"
        else:
            data = await read_body(self.scope, self.receive, self.site.settings.max_body_bytes)
        if self.reply.denied:
            raise ConnectionResetError  # it was let in no more before it had said everything
        try:
            return msgspec.json.decode(data or b"{}", type=kind)
        except msgspec.ValidationError as error:
            message = place(error, "body")
            raise Wrong(422, message, fields=[message.partition(":")[0].removeprefix("body.")]) from None
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise Wrong(400, f"body: not JSON: {error}") from None
        except RecursionError:
            raise Wrong(400, "body: nested too deep") from None

    def seen(self) -> None:
        """Somebody is at work who could be asked (A1); who may not answer is nobody to ask."""
        if ANSWER in self.who.scopes:
            engine = self.site.engine
            engine.policy.seen = engine.clock.now()

    @property
    def is_let_in(self) -> bool:
        """Whether the asker may still be answered: a session may end while its stream is open."""
        admission = self.site.admission
        return not self.session or (admission is not None and admission.has(self.session))

    @property
    def only(self) -> str:
        """Whose calls alone may be seen; nothing: everybody's (S3)."""
        return "" if WATCH in self.who.scopes else self.who.caller

    def owns(self, caller: str) -> bool:
        """Whether the calls of this caller may be seen."""
        return self.only in ("", caller)

    def header(self, name: bytes) -> str:
        """A header's text, or nothing."""
        return (header(self.scope, name) or b"").decode("latin-1")

    async def answer(self, status: int, thing: object, *headers: tuple[bytes, bytes]) -> None:
        """Answer with JSON."""
        await self.reply.json(status, encode(thing), (b"cache-control", b"no-store"), *headers)


Handler = Callable[[Request], Awaitable[None]]


def number(text: str, name: str, low: float, high: float) -> float:
    """A number of the query; raises Wrong."""
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not low <= value <= high:
        raise Wrong(422, f"{name}: must be a number from {low:g} to {high:g}, not {text!r}", fields=[name])
    return value


def choice(text: str, name: str, offered: tuple[str, ...]) -> str:
    """One of a few words of the query; raises Wrong."""
    if text and text not in offered:
        raise Wrong(422, f"{name}: must be one of {', '.join(offered)}, not {text!r}", fields=[name])
    return text


def explained(error: Exception) -> Wrong | None:
    """The answer that an error raised on purpose means; None for a bug."""
    match error:
        case Wrong():
            return error
        case Denied():
            return Wrong(error.status, str(error), "auth")
        case Fault():
            return Wrong(error.status, error.message)
        case UnknownName():
            return Wrong(404, str(error), "not_found", nearest=error.nearest)
        case OverQuota():
            return Wrong(429, str(error), "rate_limit", retryable=True, retry_after_s=error.retry_after)
        case Refused():
            return Wrong(503, str(error), "unavailable", retry_after_s=error.retry_after)
        case AlreadyAnswered() | IllegalFact():
            return Wrong(409, str(error), "refused")
        case ToolError():
            return Wrong(422, error.message, error.category)
        case CallerError():
            return Wrong(422, str(error))
        case AfootError():
            return Wrong(503, str(error), "unavailable")
        case _:
            return None


def _is_empty(scope: Scope) -> bool:
    length = header(scope, b"content-length")
    return header(scope, b"transfer-encoding") is None and (length is None or length == b"0")
