"""`Envelope` is any JSON-RPC 2.0 message; `read` and `read_params` say what is wrong with one."""

from collections.abc import Sequence
from contextlib import suppress
from typing import TypeVar

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
REQUEST_CANCELLED = -32800  # as in LSP

Id = int | str
T = TypeVar("T")


class Envelope(Struct):
    """Any message; its parts are not decoded yet."""

    jsonrpc: str = ""
    id: Id | None | UnsetType = UNSET
    method: str | UnsetType = UNSET
    params: Raw = Raw()
    result: Raw = Raw()
    error: Raw = Raw()

    @property
    def is_request(self) -> bool:
        return self.method is not UNSET and self.id is not UNSET

    @property
    def is_notification(self) -> bool:
        return self.method is not UNSET and self.id is UNSET

    @property
    def is_response(self) -> bool:
        return self.method is UNSET


class Fault(Exception):
    """The JSON-RPC error for a wrong message, with the HTTP status that goes with it."""

    def __init__(self, code: int, message: str, *, data: object = None, status: int = 400) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data
        self.status = status
        self.id: Id | None = None
        self.missing_scopes: Sequence[str] = ()  # that a newer token of the caller would need


class _MessageId(Struct):
    id: Id | None = None


ENVELOPE_DECODER = msgspec.json.Decoder(Envelope)
_message_id_decoder = msgspec.json.Decoder(_MessageId)


def read(body: bytes | memoryview) -> Envelope:
    """The message in these bytes; raises Fault."""
    try:
        if not bytes(body).isascii():
            str(body, "utf-8")  # the decoder does not check what it leaves undecoded
        message = ENVELOPE_DECODER.decode(body)
    except msgspec.ValidationError as error:
        raise _invalid_message(body, error) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Fault(PARSE_ERROR, f"not JSON: {error}") from None
    except RecursionError:
        raise Fault(PARSE_ERROR, "not readable: nested too deep") from None
    if message.jsonrpc != "2.0":
        raise _with_id(Fault(INVALID_REQUEST, 'jsonrpc: must be "2.0"'), message)
    if message.is_request and message.id is None:
        raise Fault(INVALID_REQUEST, "id: must be a string or an integer, not null")
    if message.is_response and not (message.result or message.error):
        raise _with_id(Fault(INVALID_REQUEST, "method: missing"), message)
    return message


def read_params(message: Envelope, decoder: msgspec.json.Decoder[T]) -> T:
    """The message's params as a typed value; raises Fault naming the field."""
    try:
        return decoder.decode(message.params or b"{}")
    except msgspec.ValidationError as error:
        raise _with_id(Fault(INVALID_PARAMS, validation_message(error, "params")), message) from None
    except RecursionError:
        raise _with_id(Fault(INVALID_PARAMS, "params: nested too deep"), message) from None


def validation_message(error: msgspec.ValidationError, root: str) -> str:
    """msgspec's message with the field first: `params.name: expected str, got int`."""
    text, _, path = str(error).partition(" - at `$")
    if text.startswith("Object missing required field"):
        field = text.split("`")[1]
        return f"{root}{path.rstrip('`')}.{field}: missing"
    return f"{root}{path.rstrip('`')}: {text[:1].lower()}{text[1:]}".replace("`", "")


def _with_id(fault: Fault, message: Envelope) -> Fault:
    fault.id = message.id if isinstance(message.id, int | str) else None
    return fault


def _invalid_message(body: bytes | memoryview, error: msgspec.ValidationError) -> Fault:
    if bytes(body).lstrip()[:1] == b"[":
        return Fault(INVALID_REQUEST, "batches are not supported; send one message at a time")
    fault = Fault(INVALID_REQUEST, validation_message(error, "message"))
    with suppress(msgspec.DecodeError, RecursionError):  # the rest of the body may be no JSON at all
        fault.id = _message_id_decoder.decode(body).id
    return fault
