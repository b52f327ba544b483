"""`Operations` drains gateways and workers of a cluster, and declares members dead (D6).

An order to drain goes to the member's inbox, and it obeys. A member that is declared dead is not asked: its
lease ends in Redis, its calls are taken over here at once, and if it lives it hears of that and ends.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Final
from urllib.parse import urlsplit

from msgspec import DecodeError, Struct, json
from msgspec.structs import replace

from afoot.cluster.lease import DECLARE_DEAD, KEEP_DEAD_S, Lease
from afoot.core.ports import ClusterMemberInfo
from afoot.errors import Ambiguous, CallerError, Conflict, StoreError, UnknownName
from afoot.store.redis.journal import RedisJournal

OBEYED_S: Final = 5.0  # within which a member that lives says that it obeys
LOOK_S: Final = 0.05
KEEP_ORDERS_S: Final = 3600
MIN_ID: Final = 4  # characters of an id that may stand for it

_log = logging.getLogger("afoot.cluster")


class DrainOrder(Struct, frozen=True, omit_defaults=True):
    """An order to a gateway or a worker: take no new calls, or take them again."""

    drain: bool
    by: str = ""


_order_decoder: json.Decoder[DrainOrder] = json.Decoder(DrainOrder)


def read_order(body: bytes) -> DrainOrder | None:
    """An order as it came; None if it is of a newer version."""
    try:
        return _order_decoder.decode(body)
    except (DecodeError, UnicodeDecodeError, RecursionError) as error:
        _log.error("an order to this member of the cluster cannot be read: %s", error)
        return None


class Operations:
    """Changes which members take calls, for one gateway that is asked to.

    `members` lists them, `take_over` goes on with calls of the dead and gives their ids.
    """

    def __init__(
        self,
        journal: RedisJournal,
        lease: Lease,
        members: Callable[[], Sequence[ClusterMemberInfo]],
        take_over: Callable[[], Awaitable[list[str]]],
    ) -> None:
        self._journal = journal
        self._lease = lease
        self._members = members
        self._take_over = take_over

    def find(self, name: str) -> ClusterMemberInfo:
        """The member with this id, a part of it, this HOST:PORT or on this machine.

        Raises UnknownName; Ambiguous if several fit.
        """
        members = self._members()
        fits = [one for one in members if len(name) >= MIN_ID and one.id.startswith(name)]
        fits = fits or [one for one in members if name and name == one.host]
        fits = fits or [one for one in members if one.url and name == urlsplit(one.url).netloc]
        if not fits:
            raise UnknownName("member", name, [one.id for one in members])
        if len(fits) > 1:
            raise Ambiguous("member", name, [one.id for one in fits])
        return fits[0]

    async def drain(self, name: str, by: str, *, drains: bool) -> ClusterMemberInfo:
        """Make a member take no new calls, or take them again, and wait until it has confirmed this.

        Raises UnknownName, Conflict, StoreError.
        """
        member = self.find(name)
        if member.left_s <= 0:
            raise Conflict(
                f"{member.role} {member.id} is silent: its lease has run out; take its calls over instead"
            )
        what = "drain" if drains else "take calls again"
        _log.warning("%s %s was told to %s, by %s", member.role, member.id, what, by)
        inbox = f"{self._journal.prefix}inbox:{member.id}"
        await self._journal.command("XADD", inbox, "*", "m", json.encode(DrainOrder(drains, by)))
        await self._journal.command("EXPIRE", inbox, KEEP_ORDERS_S)
        return await self._until(member, lambda now: now.draining is drains)

    async def declare_dead(self, name: str, by: str, *, force: bool) -> tuple[ClusterMemberInfo, int]:
        """Declare a member dead, and take over its calls; returns the member and the number of calls.

        Raises UnknownName, CallerError, StoreError; Conflict for one that lives.
        """
        member = self.find(name)
        if member.id == self._journal.owner:
            raise CallerError(f"gateway {member.id} is the one that was asked; ask another gateway")
        if member.left_s > 0 and not force:
            raise Conflict(
                f"{member.role} {member.id} lives: its lease has {member.left_s:.0f} s left. If it runs, its"
                " work is stopped. Drain it, or force this"
            )
        _log.warning("%s %s was declared dead, by %s", member.role, member.id, by)
        arguments = member.role, member.id, by, KEEP_DEAD_S
        if not int(await self._journal.run(DECLARE_DEAD, *arguments)):
            raise UnknownName("member", name)
        count = 0
        if member.role == "gateway":
            while taken := await self._take_over():  # a part at a time: other gateways take some as well
                count += len(taken)
        # One that has ended since, as it was told to, is not listed any more.
        return await self._until(member, lambda now: now.left_s <= 0, replace(member, left_s=0.0)), count

    async def _until(
        self,
        member: ClusterMemberInfo,
        done: Callable[[ClusterMemberInfo], bool],
        gone: ClusterMemberInfo | None = None,
    ) -> ClusterMemberInfo:
        """Wait a while until the member is in a state, and return it, or `gone` if it is not listed any more.

        Raises UnknownName, StoreError.
        """
        until = asyncio.get_running_loop().time() + OBEYED_S
        while True:
            self._lease.renew_soon()
            await asyncio.sleep(LOOK_S)
            found = next((one for one in self._members() if one.id == member.id), gone)
            if found is None:
                raise UnknownName("member", member.id)
            if found is gone or done(found):
                return found
            if asyncio.get_running_loop().time() > until:
                raise StoreError(f"{found.role} {member.id} did not answer within {OBEYED_S:g} s")
