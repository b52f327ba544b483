"""Where a reader of a handshake-era stream was: ids of events, and sessions that say who they are (D2)."""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error
from contextlib import suppress

import msgspec
from msgspec import UNSET, Struct, UnsetType, json

from afoot.wire.bookmark import close, reopen
from afoot.wire.jsonrpc import Fault, Id
from afoot.wire.messages import Capabilities

LONGEST = 4000  # characters of a session's id that says more than itself


class Place(Struct, frozen=True):
    """A place in one call's facts, and the request that reads them there: `epoch.call.seq.request`."""

    epoch: str
    call: str
    seq: int
    request: Id
    token: Id | UnsetType = UNSET
    partial: bool = False  # whether it wants partial results, by that token

    def at(self, seq: int) -> str:
        """The id of the event that this fact is."""
        reader = [self.request] if self.token is UNSET else [self.request, self.token, 1][: 2 + self.partial]
        return f"{self.epoch}.{self.call}.{seq}.{urlsafe_b64encode(json.encode(reader)).decode().rstrip('=')}"


def read_place(text: str) -> Place | None:
    """The place that an id of ours means; None for any other."""
    parts = text.split(".")
    if len(parts) != 4 or not (parts[2].isascii() and parts[2].isdecimal()):
        return None
    with suppress(Error, ValueError, RecursionError, msgspec.DecodeError):
        packed = urlsafe_b64decode(parts[3] + "=" * (-len(parts[3]) % 4))
        reader = json.decode(packed, type=list[Id])
        if len(reader) in (1, 2, 3):
            return Place(parts[0], parts[1], int(parts[2]), *reader[:2], partial=len(reader) == 3)
    return None


class Passport(Struct, frozen=True, array_like=True):
    """Who opened a session, so that the gateway that comes next knows it again."""

    secret: str
    owner: str
    issued: float
    version: str
    client: str
    elicitation: dict[str, object] | None = None
    sampling: dict[str, object] | None = None
    roots: dict[str, object] | None = None

    @property
    def capabilities(self) -> Capabilities:
        """What it said that it can."""
        return Capabilities(self.elicitation, self.sampling, self.roots)


def seal_passport(passport: Passport, key: bytes) -> str:
    """The passport as a string that nobody else can make; with too much in it, only its secret."""
    sealed = close(msgspec.msgpack.encode(passport), key, b"session")
    return sealed if len(sealed) <= LONGEST else passport.secret


def read_passport(text: str, key: bytes) -> Passport | None:
    """The passport in a string that we made; None for any other."""
    try:
        return msgspec.msgpack.decode(reopen(text, key, b"session"), type=Passport)
    except (Fault, msgspec.DecodeError):
        return None
