"""Sealed strings that clients store for the gateway: `requestState`, session ids and event ids.

A seal proves that we wrote the string. `RequestState` says which call a retry belongs to (Q1 c),
`LookupState` holds a server's own state, `SessionTicket` lets the next gateway know a session again, and
`ResumePosition` is the position at which a reader of the handshake era resumes its stream (D2).
"""

import hashlib
import hmac
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error
from contextlib import suppress
from typing import TypeVar

import msgspec
from msgspec import UNSET, Struct, UnsetType, json

from afoot.wire.jsonrpc import INVALID_PARAMS, Fault, Id
from afoot.wire.results import Capabilities

TAG_BYTES = 32
T = TypeVar("T", bound=Struct)

MAX_SESSION_ID = 4000  # characters; a longer ticket is not put into the session's id


class RequestState(Struct, frozen=True, array_like=True):
    """The call that a retry belongs to, for one caller and one exact request, until it expires."""

    call: str
    round: int
    caller: str
    digest: str
    expires: float
    asked: int = 0  # how many questions the call had asked when this was sealed: a retry answers only those
    at: float = 0.0  # when it was sealed: a retry that declines at once comes from a program (A8)
    told: float | None = None  # the last progress that was sent; the retry's goes on behind it (P4)
    total: float | None = None
    seq: int = 0  # the last fact of the call when this was sealed: the gateway of the retry must know it
    taken: tuple[int, int] = (0, 0)  # how many facts and readings its request has taken


class LookupState(Struct, frozen=True, array_like=True):
    """A server's own state of a round that belongs to no call, and what it is bound to (U5)."""

    server: str
    state: str | None
    caller: str
    digest: str
    expires: float


class ResumePosition(Struct, frozen=True):
    """A position in one call's facts, and the request that reads them: `epoch.call.seq.request`."""

    epoch: str
    call: str
    seq: int
    request: Id
    token: Id | UnsetType = UNSET
    partial: bool = False  # whether it wants partial results with that token

    def event_id(self, seq: int) -> str:
        """The id of the event that carries this fact."""
        reader = [self.request] if self.token is UNSET else [self.request, self.token, 1][: 2 + self.partial]
        return f"{self.epoch}.{self.call}.{seq}.{urlsafe_b64encode(json.encode(reader)).decode().rstrip('=')}"


class SessionTicket(Struct, frozen=True, array_like=True):
    """The data of a session, so that the next gateway knows it again."""

    secret: str
    owner: str
    issued: float
    version: str
    client: str
    elicitation: dict[str, object] | None = None
    sampling: dict[str, object] | None = None
    roots: dict[str, object] | None = None
    extensions: dict[str, object] | None = None
    client_version: str = ""

    @property
    def capabilities(self) -> Capabilities:
        """The capabilities that its client declared."""
        return Capabilities(self.elicitation, self.sampling, self.roots, self.extensions)


def seal(state: Struct, key: bytes, id: str = "") -> str:
    """Seal a request state, or with another key another kind: nobody else can make the string.

    The `id` of the key, if it has one, stands in front of the string with a dot, and is sealed as well.
    """
    body = msgspec.msgpack.encode(state)
    sealed = urlsafe_b64encode(_tag(key, id, body) + body).decode().rstrip("=")
    return f"{id}.{sealed}" if id else sealed


def key_id(sealed: str) -> str:
    """The id of the key that a string names; "" for the key without an id."""
    return sealed.rpartition(".")[0]


def unseal_request_state(sealed: str, key: bytes, now: float) -> RequestState:
    """The request state in a string that we sealed; raises Fault if it is another's, changed or expired."""
    state = _unseal(sealed, key, RequestState)
    if state.expires < now:
        raise _bad_state("expired")
    return state


def seal_lookup_state(state: LookupState, key: bytes, id: str = "") -> str:
    """Seal a lookup state; it cannot be taken for a request state, nor the other way round."""
    return seal(state, key_for(key, b"slip"), id)


def unseal_lookup_state(sealed: str, key: bytes, now: float) -> LookupState:
    """The lookup state in a string that we sealed; raises Fault if it is another's, changed or expired."""
    state = _unseal(sealed, key_for(key, b"slip"), LookupState)
    if state.expires < now:
        raise _bad_state("expired")
    return state


def check_binding(state: RequestState | LookupState, caller: str, digest: str) -> None:
    """Check that the same caller sends it back, with the same request; raises Fault."""
    if state.caller != caller:
        raise _bad_state("made for another caller")
    if state.digest != digest:
        what = "tool" if isinstance(state, RequestState) else "request"
        raise _bad_state(f"made for another {what} or other arguments")


def request_digest(tool: str, arguments: bytes) -> str:
    """The digest of a tool and its arguments, independent of their order and spacing; raises Fault."""
    try:
        canonical = msgspec.json.encode(msgspec.json.decode(arguments or b"{}"), order="deterministic")
    except RecursionError:
        raise Fault(INVALID_PARAMS, "params.arguments: nested too deep") from None
    except msgspec.DecodeError as error:  # JSON all the same: a number that is out of range
        raise Fault(INVALID_PARAMS, f"params.arguments: cannot be read: {error}") from None
    return hashlib.sha256(tool.encode() + b"\0" + canonical).hexdigest()


def arguments_mac(key: bytes, caller: str, idempotency_key: str, arguments: bytes) -> str:
    """The keyed digest of a call's arguments, secrets included; raises Fault.

    The history keeps it in place of secrets. It is bound to the caller and its idempotency key, so that equal
    secrets of two calls do not look equal, and nobody can try passwords without the gateway's key.
    """
    bound = msgspec.msgpack.encode((caller, idempotency_key, request_digest("", arguments)))
    return hmac.digest(key_for(key, b"arguments"), bound, "sha256").hex()


def read_resume_position(text: str) -> ResumePosition | None:
    """The position in an event id of ours; None for any other."""
    parts = text.split(".")
    if len(parts) != 4 or not (parts[2].isascii() and parts[2].isdecimal()):
        return None
    with suppress(Error, ValueError, RecursionError, msgspec.DecodeError):
        packed = urlsafe_b64decode(parts[3] + "=" * (-len(parts[3]) % 4))
        reader = json.decode(packed, type=list[Id])
        if len(reader) in (1, 2, 3):
            return ResumePosition(parts[0], parts[1], int(parts[2]), *reader[:2], partial=len(reader) == 3)
    return None


def seal_session_ticket(ticket: SessionTicket, key: bytes, id: str = "") -> str:
    """Seal a ticket as a session id; if that is too long, the id is only the ticket's secret."""
    sealed = seal(ticket, key_for(key, b"session"), id)
    return sealed if len(sealed) <= MAX_SESSION_ID else ticket.secret


def unseal_session_ticket(text: str, key: bytes) -> SessionTicket | None:
    """The ticket in a session id that we sealed; None for any other."""
    try:
        return _unseal(text, key_for(key, b"session"), SessionTicket)
    except (Fault, msgspec.DecodeError):
        return None


def key_for(key: bytes, kind: bytes) -> bytes:
    """The key for one kind of string, so that none can be taken for another."""
    return hmac.digest(key, kind, "sha256")


def _unseal(sealed: str, key: bytes, kind: type[T]) -> T:
    """The state that was sealed with this key; raises Fault."""
    id, dot, text = sealed.rpartition(".")
    if dot and not id:
        raise _bad_state("not one of ours")
    try:
        raw = urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except (Error, ValueError):
        raise _bad_state("not one of ours") from None
    tag, body = raw[:TAG_BYTES], raw[TAG_BYTES:]
    is_canonical = urlsafe_b64encode(raw).decode().rstrip("=") == text  # base64 has several spellings
    if not (hmac.compare_digest(tag, _tag(key, id, body)) and is_canonical):
        raise _bad_state("not one of ours, or changed on the way")
    return msgspec.msgpack.decode(body, type=kind)


def _tag(key: bytes, id: str, body: bytes) -> bytes:
    named = id.encode("utf-8", "surrogatepass") + b"." + body if id else body
    return hmac.digest(key, named, "sha256")


def _bad_state(why: str) -> Fault:
    return Fault(INVALID_PARAMS, f"params.requestState: {why}")
