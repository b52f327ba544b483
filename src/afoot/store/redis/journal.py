"""`RedisJournal` keeps the facts of all gateways of a cluster in one Redis or Valkey.

The facts of a call are a stream of their own, which the history reads. All facts are also in one short
stream, the tail, by which every gateway follows the calls of all others. `position` is the place in the tail:
one series for the whole cluster. A call belongs to one gateway at a time; nobody else's facts are written.
"""

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, Self

from msgspec import DecodeError, msgpack
from redis.exceptions import RedisError, ResponseError

from afoot.config.tables import REDIS_ADDRESSES
from afoot.core.fact_size import fact_bytes
from afoot.core.facts import Entry, HandedOver, Opened, Sample
from afoot.core.ports import Batch, CallOutline, CallQuery, CallRow, PurgeRule
from afoot.errors import DamagedCall, StoreError
from afoot.store import codec
from afoot.store.redis import rows
from afoot.store.redis.connect import Client, connect, is_cluster_node, store_error
from afoot.store.redis.purge import purge
from afoot.store.redis.scripts import APPEND, BEGIN, Scripts
from afoot.store.search import SINCE_BYTES

LARGE_BODY: Final = 64 * 1024  # bytes of a segment; a larger one is in its call's own stream alone
TAIL_SEGMENTS: Final = 20_000  # kept in the tail; a gateway that lags further reads the calls' own streams
# A batch is tried again for so long: less than the recorder waits for a write, so that it decides what then.
RETRY_FOR_S: Final = 1.5
RETRY_PAUSE_S: Final = 0.1

_log = logging.getLogger("afoot.store")
_TROUBLE = (RedisError, OSError, TimeoutError)


class RedisJournal:
    """One history for all gateways of a cluster. `async with` opens and closes it.

    `owner` is the gateway that writes: the calls that it opens are its own. `numbers` has the turn of a call
    that was taken over. `on_fenced` is told of a call whose facts were refused: another gateway has it now.
    """

    def __init__(self, url: str, name: str = "afoot", owner: str = "") -> None:
        self.url = url
        self.prefix = key_prefix(name)
        self.owner = owner or secrets.token_hex(8)
        self.epoch = ""
        self.position = 0
        self.written_bytes = 0
        self.numbers: dict[str, int] = {}
        self.on_fenced: Callable[[str], object] = lambda call: None
        self.follows_tail = (
            False  # then `position` is moved by the reader of the tail, behind what it has read
        )
        self._client: Client = connect(url)
        self.scripts = Scripts(self._client, self.prefix)
        self._turn = asyncio.Lock()
        self._is_open = False
        self.is_unsure = False  # whether a batch may have been written although its reply is lost

    async def __aenter__(self) -> Self:
        try:
            await self._refuse_cluster_node()
            epoch, position = await self.scripts.run(BEGIN, secrets.token_hex(8))
        except _TROUBLE as error:
            await self._client.aclose()
            raise store_error(error, f"history in Redis ({self.place})") from error
        except StoreError:
            await self._client.aclose()
            raise
        self.epoch, self.position = epoch.decode(), int(position or 0)
        self._is_open = True
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _refuse_cluster_node(self) -> None:
        """Refuse a node of a Redis Cluster: the scripts and the queue use keys of several slots.

        A server that does not tell is taken for none. Raises StoreError, RedisError, OSError.
        """
        try:
            told = await self._client.execute_command("INFO", "cluster")
        except ResponseError:  # not allowed
            return
        if is_cluster_node(told):
            raise StoreError(
                f"cluster.redis: the server at {self.place} is a node of a Redis Cluster"
                f" (cluster-enabled yes), which is not supported; use one server, with replicas if you like:"
                f" {REDIS_ADDRESSES}"
            )

    @property
    def is_open(self) -> bool:
        """Whether it is open."""
        return self._is_open

    @property
    def place(self) -> str:
        """The address without the logins in it."""
        scheme, _, rest = self.url.partition("?")[0].partition("://")
        return f"{scheme}://{rest.rpartition('@')[2]}"

    def write(self, batch: Batch) -> Awaitable[None]:
        """Record a batch; batches keep their order also if nobody awaits them. Raises StoreError.

        Facts of a call that another gateway has taken over are left out, and `on_fenced` is told.
        """
        if not self._is_open:
            raise StoreError(f"history in Redis ({self.place}): it is not open")
        try:
            ready = codec.encode_batch(batch)
        except UnicodeEncodeError:  # a lone surrogate, which JSON cannot hold, becomes a question mark
            batch = codec.storable(batch)
            ready = codec.encode_batch(batch)
        return asyncio.ensure_future(self._write(ready, batch))

    def number(self, call: str) -> int:
        """The number of this owner's turn of a call."""
        return self.numbers.get(call, 1)

    def check(self) -> None:
        """Do nothing: every write finds out by itself whether the history is still there."""

    async def facts(self, call: str, after: int = 0) -> list[Entry]:
        """The facts of a call with a number over `after`."""
        found = await self.command("XRANGE", f"{self.prefix}facts:{call}", f"({max(0, after)}-0", "+")
        return [entry for _, entry in self._decoded(found, call) if entry.seq > after]

    async def samples(self, call: str) -> list[Sample]:
        """The readings of a call that the history keeps."""
        found = await self.command("HGETALL", f"{self.prefix}samples:{call}")
        columns = list[codec.SampleColumns]()
        for number, value in _pairs(found):
            left_out, _, body = value.partition(b" ")
            columns.append((call, int(number), int(left_out), body))
        return codec.decode_samples(sorted(columns))

    async def since(self, position: int, limit: int = 1000) -> list[tuple[int, Entry]]:
        """The facts of all calls behind a position, oldest first; fewer than `limit` if they are large."""
        if limit <= 0:
            return []
        key = f"{self.prefix}tail"
        found = await self.command("XRANGE", key, f"({max(0, position)}-0", "+", "COUNT", limit)
        entries = list[tuple[int, Entry]]()
        size = 0
        for place, fields in found:
            segment = await self.segment(int(place.partition(b"-")[0]), dict(_pairs(fields)))
            entries += segment
            size += sum(fact_bytes(entry.fact) for _, entry in segment)
            if size >= SINCE_BYTES:
                break
        return [(pos, entry) for pos, entry in entries if pos > position][:limit]

    async def segment(self, position: int, fields: dict[bytes, bytes]) -> list[tuple[int, Entry]]:
        """The facts of one segment of the tail, each with its position."""
        call, last, count = fields[b"c"].decode(), int(fields[b"s"]), int(fields[b"n"])
        body = fields.get(b"b")
        if body is None:
            key = f"{self.prefix}facts:{call}"
            found = await self.command("XRANGE", key, f"{last}-0", f"{last}-0")
            if not found:
                return []  # it was purged meanwhile
            body = dict(_pairs(found[0][1]))[b"b"]
        facts = self._facts_of(call, last, body)
        return [(position - count + n, entry) for n, entry in enumerate(facts, 1)]

    async def find(self, query: CallQuery) -> list[CallRow]:
        """The calls that match, newest first, at most 1,000."""
        return await rows.find(self.command, self.prefix, query)

    async def outlines(self, query: CallQuery) -> list[CallOutline]:
        """All calls that match, newest first, in short."""
        return await rows.outlines(self.command, self.prefix, query)

    async def descendants(self, calls: Sequence[str]) -> dict[str, tuple[int, int]]:
        """Count the calls at any depth below each of these, and those of them that did not end well."""
        return await rows.descendants(self.command, self.prefix, calls)

    async def retried(self, calls: Sequence[str]) -> list[str]:
        """The calls of these whose tool was started more than once."""
        return await rows.retried(self.command, self.prefix, calls)

    async def children(self, call: str) -> tuple[int, int]:
        """Count the finished calls that a call has made, and those of them that did not end well."""
        outcomes = await self.command("HVALS", f"{self.prefix}below:{call}") if call else []
        return len(outcomes), sum(one != b"ok" for one in outcomes)

    async def keyed(self, caller: str, key: str) -> str | None:
        """The newest listed call that this caller opened with this idempotency key."""
        if not key:
            return None
        name = f"{self.prefix}keyed:{rows.key_digest(caller, key)}"
        found = await self.command("ZRANGE", name, 0, 0, "REV")
        return found[0].decode() if found else None

    async def unfinished(self) -> list[str]:
        """The ids of calls without a recorded end, oldest first, whichever gateway has them."""
        return [call.decode() for call in await self.command("ZRANGE", f"{self.prefix}live", 0, -1)]

    async def purge(self, rule: PurgeRule) -> int:
        """Delete the next calls that the rule names; gives how many. Raises StoreError."""
        self._check_open()
        try:
            return await purge(self.command, self.scripts, self.prefix, rule)
        except _TROUBLE as error:
            raise store_error(error, f"history in Redis ({self.place})") from error

    async def command(self, *args: Any) -> Any:
        """Run a command of Redis; raises StoreError. A connection that has broken is opened again once."""
        self._check_open()
        try:
            with suppress(ConnectionError, RedisError):
                return await self._client.execute_command(*args)
            return await self._client.execute_command(*args)
        except _TROUBLE as error:
            raise store_error(error, f"history in Redis ({self.place})") from error

    async def run(self, script: str, *args: Any) -> Any:
        """Run a script that may be run twice; raises StoreError."""
        with suppress(StoreError):
            return await self.run_once(script, *args)
        return await self.run_once(script, *args)

    async def run_once(self, script: str, *args: Any) -> Any:
        """Run a script. Raises StoreError, also where it has run and its reply is lost."""
        self._check_open()
        try:
            return await self.scripts.run(script, *args)
        except _TROUBLE as error:
            raise store_error(error, f"history in Redis ({self.place})") from error

    async def close(self) -> None:
        """Wait for the writes under way, then close the connection. A second call does nothing."""
        if not self._is_open:
            return
        async with self._turn:
            self._is_open = False
        await self._client.aclose()

    def _check_open(self) -> None:
        if not self._is_open:
            raise StoreError(f"history in Redis ({self.place}): it is not open")

    async def _write(self, ready: codec.EncodedBatch, batch: Batch) -> None:
        claimed = _claimed(batch.entries)
        async with self._turn:
            until = asyncio.get_running_loop().time() + RETRY_FOR_S
            while True:
                try:
                    if self.is_unsure:
                        ready = await self._without_written(batch)
                        self.is_unsure = False
                    reply = await self.scripts.run(APPEND, *self._arguments(ready, claimed, batch.places))
                    break
                except _TROUBLE as error:
                    self.is_unsure = True
                    if asyncio.get_running_loop().time() > until:
                        raise store_error(error, f"history in Redis ({self.place})") from error
                await asyncio.sleep(RETRY_PAUSE_S)
            await self._take_reply(reply)

    async def _take_reply(self, reply: list[Any]) -> None:
        if reply[0] == b"EPOCH":
            # The history was emptied, or an older copy of the data was put back. A new one begins here.
            _log.error("history in Redis (%s): it is another one now; a new one begins", self.place)
            epoch, _ = await self.scripts.run(BEGIN, secrets.token_hex(8))
            self.epoch = epoch.decode()
            raise StoreError(f"history in Redis ({self.place}): it was emptied, or replaced")
        if reply[0] == b"CONFLICT":
            raise codec.fact_conflict(reply[1].decode())
        _, position, size, fenced = reply
        self.written_bytes += int(size)
        if not self.follows_tail:
            self.position = int(position)
        for call in fenced:
            self.on_fenced(call.decode())

    async def _without_written(self, batch: Batch) -> codec.EncodedBatch:
        """The batch again, without facts that were written although the reply to that is lost.

        Only a call's owner writes its facts, so a number that is there is our own fact, if we own the call.
        If another gateway does, all facts stay: the script refuses them, and says so.
        """
        written: dict[str, int] = {}
        for call in {entry.call for entry in batch.entries}:
            key = f"{self.prefix}call:{call}"
            seq, owner, number = await self._client.execute_command("HMGET", key, "s", "o", "n")
            if owner == self.owner.encode() and int(number) == self.numbers.get(call, 1):
                written[call] = int(seq or 0)
        missing = [entry for entry in batch.entries if entry.seq > written.get(entry.call, 0)]
        return codec.encode_batch(Batch(missing, batch.samples, batch.rows))

    def _arguments(
        self, ready: codec.EncodedBatch, claimed: set[str], places: Mapping[str, str]
    ) -> list[Any]:
        """The arguments of the script that appends: what it needs to know, then all bodies."""
        opened = dict(ready.opened)
        ended = {call for (call,) in ready.ended}
        numbers = self.numbers
        arguments: list[Any] = [self.owner, self.epoch, b"", LARGE_BODY, TAIL_SEGMENTS]
        facts, samples, listed = list[Any](), list[Any](), list[Any]()
        for length, call, seq, body in ready.facts:
            arguments.append(body)
            number = numbers.get(call, 1) if numbers else 1
            at = repr(opened[call]) if call in opened else ""
            facts.append((call, length, seq, 1 + len(arguments), number, at, call in ended, call in claimed))
        for call, number, left_out, body in ready.samples:
            arguments.append(body)
            samples.append((call, number, left_out, 1 + len(arguments)))
        for row in ready.rows.values():
            arguments.append(rows.encode_row(row))
            listed.append((row.id, 1 + len(arguments), *rows.columns(row)))
        told = [(call, numbers.get(call, 1), place, next_place(place)) for call, place in places.items()]
        arguments[2] = msgpack.encode({"facts": facts, "samples": samples, "rows": listed, "places": told})
        return arguments

    def _decoded(self, found: Iterable[Any], call: str) -> list[tuple[int, Entry]]:
        return [
            (0, entry)
            for place, fields in found
            for entry in self._facts_of(call, int(place.partition(b"-")[0]), dict(_pairs(fields))[b"b"])
        ]

    def _facts_of(self, call: str, last: int, body: bytes) -> list[Entry]:
        try:
            return [entry for _, entry in codec.decode_facts([(0, call, last, body)])]
        except DecodeError as error:
            raise DamagedCall(f"history in Redis ({self.place}): call {call} is damaged: {error}") from error


def key_prefix(name: str) -> str:
    """The beginning of all keys of the cluster with this name."""
    return f"{{{name}}}:"


def next_place(place: str) -> str:
    """The place behind this one, in what a function said."""
    attempt, _, number = place.partition("-")
    return f"{attempt}-{int(number) + 1}"


def _claimed(entries: Iterable[Entry]) -> set[str]:
    """The calls whose caller may come back: it asked for that, or its request ended before the call."""
    return {
        entry.call
        for entry in entries
        if (type(entry.fact) is Opened and (entry.fact.task or entry.fact.key))
        or type(entry.fact) is HandedOver
    }


def _pairs(flat: Any) -> Iterable[tuple[bytes, bytes]]:
    """The fields of a reply, which has them one behind the other."""
    if isinstance(flat, dict):
        return flat.items()
    return zip(flat[::2], flat[1::2], strict=True)
