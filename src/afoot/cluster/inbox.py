"""`Inbox` reads the facts and readings of other gateways, and the commands for calls of this one.

One connection waits for three streams: the tail of all facts, the readings, and the commands for us.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any, Final

from msgspec import DecodeError, json
from redis.exceptions import RedisError

from afoot.cluster.functions import WorkerFunctions
from afoot.cluster.operations import DrainOrder, read_order
from afoot.cluster.session_messages import SessionMessages
from afoot.cluster.slots import ClusterSlots
from afoot.core.facts import Entry, Reading
from afoot.core.owner_commands import OwnerCommand
from afoot.engine.engine import Engine
from afoot.errors import AfootError, StoreError
from afoot.store.redis.connect import connect
from afoot.store.redis.journal import RedisJournal
from afoot.store.redis.scripts import PUT_BACK

BLOCK_S: Final = 2.0  # the longest wait for news in one request
COUNT: Final = 500  # entries of each stream that are read at once
RETRY_S: Final = 0.2

Obey = Callable[[DrainOrder], object]

_reading_decoder: json.Decoder[Reading] = json.Decoder(Reading)
_readings_decoder: json.Decoder[list[tuple[str, int, Reading]]] = json.Decoder(list[tuple[str, int, Reading]])
_command_decoder: json.Decoder[OwnerCommand] = json.Decoder(OwnerCommand)
_log = logging.getLogger("afoot.cluster")


class Inbox:
    """Keeps an engine's mirrors true, and obeys commands. `run` goes on until it is cancelled."""

    def __init__(
        self,
        engine: Engine,
        journal: RedisJournal,
        functions: WorkerFunctions,
        slots: ClusterSlots,
        sessions: SessionMessages,
        obey: Obey,
    ) -> None:
        self._engine = engine
        self._obey = obey
        self.on_return: Callable[[], object] = lambda: None  # Redis is heard again, and may have lost facts
        self._functions = functions
        self._slots = slots
        self._sessions = sessions
        self._journal = journal
        prefix = journal.prefix
        self._keys = (f"{prefix}tail", f"{prefix}readings", f"{prefix}inbox:{journal.owner}")
        self._places = [f"{journal.position}-0", "$", "0-0"]
        self._epoch = journal.epoch
        self._client = connect(journal.url, BLOCK_S + 5.0)

    async def load(self) -> None:
        """Take in the calls of other gateways that live now, and let go of lost ones; raises StoreError."""
        newest = await self._journal.command("XREVRANGE", self._keys[1], "+", "-", "COUNT", 1)
        self._places[1] = newest[0][0].decode() if newest else "0-0"
        position = int(await self._journal.command("HGET", f"{self._journal.prefix}meta", "pos") or 0)
        if position < self._journal.position:  # Redis has lost its newest facts, and gives their places anew
            self._journal.position = position
            self._places[0] = f"{position}-0"
        owners: dict[bytes, bytes] = dict(
            _pairs(await self._journal.command("HGETALL", f"{self._journal.prefix}owners"))
        )
        await self._let_go(owners)
        for name, owner in owners.items():
            call = name.decode()
            known = self._engine.mirrors.newest(call)
            if owner.decode() == self._journal.owner or known is None:
                continue
            entries = await self._journal.facts(call, known)
            self._engine.mirrors.load(owner.decode(), entries, await self._journal.samples(call))

    async def _let_go(self, owners: Mapping[bytes, bytes]) -> None:
        """Abandon the calls of ours that other gateways have taken over, or have ended by now.

        A call that Redis has lost is noted there again: commands and its function must find its owner.
        """
        journal, me = self._journal, self._journal.owner.encode()
        for live in self._engine.own_calls():
            call = live.call.id
            if owners.get(call.encode()) == me or live.call.end is not None:
                continue
            owner = await journal.run(PUT_BACK, call, journal.owner, journal.number(call))
            if owner == me:
                await self.take_commands(call)
            elif live.call.end is None:
                self._engine.abandon(call, owner.decode())

    async def run(self) -> None:
        """Read on, and on. While Redis is away, what is known stays."""
        is_away = False
        try:
            while True:
                try:
                    await self._turn(is_away)
                    is_away = False
                except (RedisError, OSError, StoreError) as error:
                    if not is_away:
                        _log.warning("the other gateways of the cluster cannot be heard: %s", error)
                    is_away = self._functions.is_deaf = True
                    await asyncio.sleep(RETRY_S)
        finally:
            await self._client.aclose()

    async def take_commands(self, call_id: str) -> None:
        """Carry out the commands that are kept for a call of ours; raises StoreError."""
        key = f"{self._journal.prefix}commands:{call_id}"
        bodies = await self._journal.command("LRANGE", key, 0, -1)
        live = self._engine.own_call(call_id)
        if not bodies or live is None:
            return
        for body in bodies:
            try:
                self._engine.obey(live, _command_decoder.decode(body))
            except (AfootError, DecodeError, ValueError, RecursionError) as error:
                # It was answered by somebody else, or the command is of a newer version.
                _log.info("call %s: a command was not carried out: %s", call_id, error)
        await self._engine.recorder.recorded()  # a gateway that dies now leaves them to the next owner
        await self._journal.command("LTRIM", key, len(bodies), -1)

    async def _turn(self, was_away: bool) -> None:
        if self._epoch != self._journal.epoch:
            self._epoch = self._journal.epoch
            self._places = ["0-0", "$", "0-0"]
            await self.load()
        found = await self._client.execute_command(
            "XREAD", "COUNT", COUNT, "BLOCK", int(BLOCK_S * 1000), "STREAMS", *self._keys, *self._places
        )
        if was_away:
            _log.warning("the other gateways of the cluster are heard again")
            await self.load()
            self._functions.look_again()
            self._slots.look_again()
            self.on_return()
        self._functions.is_deaf = False
        for key, entries in found.items() if isinstance(found, dict) else found or ():
            at = self._keys.index(key.decode())
            for place, fields in entries:
                try:
                    await self._take(at, place, dict(_pairs(fields)))
                except (RedisError, OSError, StoreError):
                    raise  # it is read again
                except Exception:  # it would be read again for ever, and nothing behind it
                    _log.exception("%s %s cannot be read, and is skipped", key.decode(), place.decode())
                    if at == 0:
                        self._journal.position = int(place.partition(b"-")[0])
                self._places[at] = place.decode()
            if at == 2:  # results may be large, and nobody reads them again
                await self._journal.command("XDEL", self._keys[at], *(place for place, _ in entries))

    async def _take(self, at: int, place: bytes, fields: dict[bytes, bytes]) -> None:
        if at == 0:
            await self._take_segment(int(place.partition(b"-")[0]), fields)
        elif at == 1 and fields[b"o"].decode() != self._journal.owner:
            try:
                readings = _readings_decoder.decode(fields[b"j"])
            except (DecodeError, UnicodeDecodeError, RecursionError):  # of another version
                return
            for call, number, reading in readings:
                self._engine.mirrors.note(call, number, reading)
        elif at == 2 and b"m" in fields:
            if (order := read_order(fields[b"m"])) is not None:
                self._obey(order)
        elif at == 2 and b"x" in fields:
            self._sessions.receive(fields)
        elif at == 2:
            call = fields[b"c"].decode()
            if b"w" in fields:
                self._functions.receive(call, fields)
            elif b"s" in fields:
                self._slots.receive(call, int(fields[b"s"]))
            else:
                await self.take_commands(call)

    async def _take_segment(self, position: int, fields: dict[bytes, bytes]) -> None:
        owner = fields[b"o"].decode()
        is_gap = position - int(fields[b"n"]) > self._journal.position
        if owner != self._journal.owner:
            try:
                entries = [entry for _, entry in await self._journal.segment(position, fields)]
            except StoreError as error:  # damaged, or of a newer version: the call is not shown here
                _log.warning("facts of another gateway cannot be read: %s", error)
                entries = list[Entry]()
            if entries and b"r" in fields:
                self._note_reading(entries[0].call, fields[b"r"])
            if entries and not self._engine.mirrors.take(owner, entries):
                call = entries[0].call
                known = self._engine.mirrors.newest(call) or 0
                self._engine.mirrors.load(owner, await self._journal.facts(call, known), [])
        self._journal.position = position
        if is_gap:
            await self.load()  # the tail was trimmed before it was read

    def _note_reading(self, call: str, told: bytes) -> None:
        """Take in the newest reading before an end or a question: these are seen no sooner than that."""
        number, _, body = told.partition(b" ")
        with suppress(DecodeError):  # of another version
            self._engine.mirrors.note(call, int(number), _reading_decoder.decode(body))


def _pairs(flat: Any) -> Iterable[tuple[bytes, bytes]]:
    if isinstance(flat, dict):
        return flat.items()
    return zip(flat[::2], flat[1::2], strict=True)
