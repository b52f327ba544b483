"""How somebody from elsewhere can prove who they are: a named token, or one of a trusted issuer (S2)."""

from typing import Protocol

from afoot.serve.principal import Denied, Principal
from afoot.serve.tokens import MARK, Tokens


class Issuer(Protocol):
    """Somebody else who says who people are: `oauth` has it, and is loaded only where one is trusted."""

    @property
    def metadata_url(self) -> str: ...

    def metadata(self) -> dict[str, object]: ...

    async def check(self, token: bytes) -> Principal: ...


class Ways:
    """Every way there is."""

    def __init__(self, tokens: Tokens, issuer: Issuer | None = None) -> None:
        self._tokens = tokens
        self.issuer = issuer

    async def find(self, bearer: bytes) -> Principal | None:
        """Whose token this is; None if it is none of ours. Raises Denied if it does not count any more."""
        found = self._tokens.find(bearer)
        if found is not None:
            return found
        if bearer.startswith(MARK.encode()):
            raise Denied(401, "this token is not known here; it may have been revoked")
        return await self.issuer.check(bearer) if self.issuer is not None else None

    def holds(self, caller: str) -> bool:
        """Whether somebody who was let in may stay."""
        return self._tokens.holds(caller)

    @property
    def challenge(self) -> str:
        """What a refusal says of how to get in (RFC 6750, RFC 9728)."""
        return (
            f'Bearer resource_metadata="{self.issuer.metadata_url}"' if self.issuer is not None else "Bearer"
        )
