"""`Principal` is the identity of a request, as far as it was proved, with its scopes (S2, S3).

Four scopes are the gateway's own: SCOPES. Any other scope is one that tools require (F1); it opens nothing
else. The holder of the operator's token needs no scope.
"""

import re
from collections.abc import Mapping
from math import inf
from typing import Final

from msgspec import Struct, json

from afoot.core.ports import CallOrigin
from afoot.core.redaction import Redactor

CALL: Final = "call"  # use tools, and see one's own calls
WATCH: Final = "watch"  # see everything
ANSWER: Final = "answer"  # answer questions, stop calls
ADMIN: Final = "admin"  # change servers, the allowlist, the history and browser sessions
SCOPES: Final = (CALL, WATCH, ANSWER, ADMIN)
SCOPE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:/-]{0,99}")  # of the scopes that RFC 6749 allows
OPERATOR: Final = "operator"


class Denied(Exception):
    """The request is refused; the message says why.

    `scope` is the missing scope, if that is all that is missing.

    `is_claim`: the request carried credentials.
    """

    def __init__(self, status: int, message: str, scope: str = "", is_claim: bool = True) -> None:
        super().__init__(message)
        self.status = status
        self.scope = scope
        self.is_claim = is_claim


class Principal(Struct, frozen=True):
    """An accepted identity, and its proof: a browser session, a named token or an issuer's token."""

    caller: str
    scopes: frozenset[str]
    session: str = ""
    token: str = ""  # the id of a named token
    until: float = inf  # the expiry of an issuer's token, after which its owner must send a newer one
    is_owner: bool = False  # it has the operator's token, or a browser session that was opened with it
    claims: bytes = b"{}"  # of an issuer's token, encoded: a principal is a key of dicts

    @property
    def role(self) -> str:
        """The role in which it steers calls: `caller` for its own, `operator` for others' calls."""
        return OPERATOR if self.scopes & {WATCH, ADMIN} else "caller"

    def origin(self, surface: str, headers: Mapping[str, str], redactor: Redactor) -> CallOrigin:
        """The origin of a call of this principal, with the headers that its tool may see."""
        return CallOrigin(
            surface,
            scopes=self.scopes,
            is_owner=self.is_owner,
            claims=json.decode(self.claims),
            headers=headers,
            secrets=redactor.secret_texts(headers),
        )

    def require_scope(self, *scopes: str) -> None:
        """Check for one of these scopes; raises Denied."""
        if self.scopes.isdisjoint(scopes):
            has = ", ".join(one for one in SCOPES if one in self.scopes) or "nothing"
            raise Denied(403, f"the scope `{scopes[0]}` is needed, and {self.caller} has {has}", scopes[0])


NOBODY: Final = Principal("", frozenset())
ANYBODY: Final = Principal("", frozenset((WATCH,)))  # anybody on this machine, if the gateway is open


OPERATOR_PRINCIPAL: Final = Principal(OPERATOR, frozenset(SCOPES), is_owner=True)
