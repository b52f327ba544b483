"""How somebody from elsewhere can prove who they are, and for how long that holds (S2).

By a named token, or by one of a trusted issuer. A request ends soon after what let it in.
"""

import logging
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from afoot.core.ports import Clock, Handle
from afoot.engine.bell import Bell
from afoot.errors import AfootError
from afoot.serve.principal import CALL, Denied, Principal
from afoot.serve.tokens import MARK, Tokens

log = logging.getLogger("afoot.serve")

LOOK_S: Final = 1.0  # how often it is looked whether those who are answered may still be


class Issuer(Protocol):
    """Somebody else who says who people are: `oauth` has it, and is loaded only where one is trusted."""

    @property
    def metadata_url(self) -> str: ...

    def metadata(self) -> dict[str, object]: ...

    def named(self, scope: str) -> str: ...

    async def check(self, token: bytes) -> Principal: ...

    def over(self, who: Principal) -> str: ...


class Guest(Protocol):
    """A request that is being answered, and can be told to end."""

    until: float  # when its asker needs a newer token
    leave: "Callable[[Guest], None] | None"  # called when it is answered

    def end(self, why: str) -> None: ...


class Ways:
    """Every way there is, and who came by one of them and is still there."""

    def __init__(
        self, tokens: Tokens, clock: Clock, issuer: Issuer | None = None, bells: Sequence[Bell] = ()
    ) -> None:
        """`bells`: rung when requests were told to end."""
        self._tokens = tokens
        self._clock = clock
        self.issuer = issuer
        self._bells = bells
        self._guests: dict[Guest, Principal] = {}
        self._timer: Handle | None = None
        self.parting: dict[str, str] = {}  # callers that are told to go, and why

    async def find(self, bearer: bytes) -> Principal | None:
        """Whose token this is; None if it is none of ours. Raises Denied if it does not count any more."""
        try:
            found = self._tokens.find(bearer)
        except AfootError as error:  # which names a file, and is for those at home alone
            log.error("nobody can be let in by a token: %s", error)
            raise Denied(503, "tokens cannot be looked up now; the log of the gateway says why") from None
        if found is not None:
            return found
        if bearer.startswith(MARK.encode()):
            raise Denied(401, "this token is not known here; it may have been revoked")
        return await self.issuer.check(bearer) if self.issuer is not None else None

    def attend(self, who: Principal, guest: Guest) -> None:
        """End this request when what let its asker in is over."""
        self._guests[guest] = who
        guest.until, guest.leave = who.until, self._leave
        if self._timer is None:
            self._arm()

    def _leave(self, guest: Guest) -> None:
        who = self._guests.pop(guest, None)
        if who is not None and self.parting:
            staying = {one.caller for one in self._guests.values()}
            self.parting = {caller: why for caller, why in self.parting.items() if caller in staying}

    def challenge(self, scope: str = "") -> str:
        """What a refusal says of how to get in (RFC 6750, RFC 9728); `scope` is what alone is missing."""
        parts: list[str] = []
        if self.issuer is not None:
            parts.append(f'resource_metadata="{self.issuer.metadata_url}"')
        if scope:
            parts.append('error="insufficient_scope"')
        if scope or self.issuer is not None:  # else clients ask an issuer for all that there is
            parts.append(f'scope="{self._named(scope or CALL)}"')
        return f"Bearer {', '.join(parts)}".rstrip()

    def _named(self, scope: str) -> str:
        return scope if self.issuer is None else self.issuer.named(scope)

    def _arm(self) -> None:
        self._timer = self._clock.at(self._clock.now() + LOOK_S, self._look)

    def _look(self) -> None:
        """Tell those to go who may stay no longer."""
        self._timer = None
        why = {who: self._over(who) for who in set(self._guests.values())}
        gone = [(guest, who) for guest, who in self._guests.items() if why[who]]
        for guest, who in gone:
            self.parting[who.caller] = why[who]
            guest.end(why[who])
        for bell in tuple(self._bells) if gone else ():
            bell.ring()
        if self._guests:
            self._arm()

    def _over(self, who: Principal) -> str:
        if who.token or self.issuer is None:
            return self._tokens.over(who)
        return self.issuer.over(who)
