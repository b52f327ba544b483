"""Access tokens of a trusted issuer: JWTs, checked with the keys that it publishes (S2)."""

import asyncio
import hashlib
import re
from collections.abc import Awaitable, Callable
from typing import Any, Final
from urllib.parse import urlsplit, urlunsplit

import jwt
from msgspec import json

from afoot.core.access import Access, is_sound
from afoot.serve.principal import SCOPES, Denied, Principal

# Only what is checked with a public key: with a secret, whoever can check could also forge.
ALGORITHMS: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
PREFIX: Final = "oauth:"  # of the callers that they make
METADATA: Final = "/.well-known/oauth-protected-resource"
LEEWAY_S: Final = 30.0  # clocks differ
PARTING_S: Final = 2.0  # for calls to part from a caller whose token has expired, before its streams end
KEEP_S: Final = 600.0  # how long keys are believed in: one that is published no more counts no more
AGAIN_S: Final = 10.0  # between two fetches of the keys, however many strange tokens come
LONGEST: Final = 16_384
LATEST: Final = 1e15  # seconds since 1970; what is beyond, or NaN, is no time
DIGEST: Final = "sha256-"
_PLAIN = re.compile(r"[\w.@:+/|-]{1,100}", re.ASCII)

Fetch = Callable[[str], Awaitable[bytes]]


class Oauth:
    """What is known of the issuer. `fetch` raises OSError; `now` is in seconds since 1970."""

    def __init__(self, access: Access, resource: str, fetch: Fetch, now: Callable[[], float]) -> None:
        self._access = access
        self.resource = resource
        self._audience = access.audience or resource
        self._fetch = fetch
        self._now = now
        self._keys: dict[str, jwt.PyJWK] = {}
        self._asked = self._had = -KEEP_S
        self._trouble = ""
        self._renewal: asyncio.Task[None] | None = None
        self._lock = asyncio.Lock()

    @property
    def metadata_url(self) -> str:
        """Where a client finds out who gives out tokens for us."""
        parts = urlsplit(self.resource)
        return urlunsplit((parts.scheme, parts.netloc, METADATA + parts.path, "", ""))

    def metadata(self) -> dict[str, object]:
        """The protected resource's metadata (RFC 9728)."""
        return {
            "resource": self.resource,
            "authorization_servers": [self._access.issuer],
            "scopes_supported": [self.named(scope) for scope in SCOPES],
            "bearer_methods_supported": ["header"],
        }

    def named(self, scope: str) -> str:
        """A scope of ours as the issuer calls it."""
        return self._access.scope_prefix + scope

    def over(self, who: Principal) -> str:
        """Why somebody whom a token let in may stay no longer; nothing if they may."""
        is_late = self._now() >= who.until + PARTING_S
        return "the access token has expired; come again with a new one" if is_late else ""

    async def check(self, token: bytes) -> Principal:
        """Whose token it is; raises Denied saying what is wrong with it."""
        text = token.decode("latin-1")
        key = await self._key(text)
        options: Any = {"require": ["exp", "iss", "aud", "sub"], "verify_iat": False}
        options |= {"verify_exp": False, "verify_nbf": False}  # by our own clock, below
        try:
            claims = jwt.decode(
                text, key, [key.algorithm_name], options,
                audience=self._audience, issuer=self._access.issuer,
            )  # fmt: skip
            self._timely(claims)
        except jwt.InvalidTokenError as error:
            raise Denied(401, f"the access token does not count: {error}") from None
        name = PREFIX + _named(str(claims["sub"]))
        return Principal(name, self._scopes(claims), until=claims["exp"] + LEEWAY_S)

    def _timely(self, claims: dict[str, Any]) -> None:
        now = self._now()
        for name in ("exp", "nbf"):
            when = claims.get(name, 0)
            if not isinstance(when, int | float) or not abs(when) < LATEST:
                raise jwt.InvalidTokenError(f"{name} is no time")
        if now >= claims["exp"] + LEEWAY_S:
            raise jwt.ExpiredSignatureError("it has expired")
        if now < claims.get("nbf", 0) - LEEWAY_S:
            raise jwt.ImmatureSignatureError("it is not valid yet")

    def _scopes(self, claims: dict[str, Any]) -> frozenset[str]:
        given = claims.get("scope", claims.get("scp", ""))
        words = given.split() if isinstance(given, str) else given if isinstance(given, list) else []
        return frozenset(scope for scope in SCOPES if self.named(scope) in words)

    async def _key(self, token: str) -> jwt.PyJWK:
        """The key that a token names; raises Denied."""
        try:
            if len(token) > LONGEST:
                raise jwt.InvalidTokenError("it is too long")
            head = jwt.get_unverified_header(token)
        except (jwt.InvalidTokenError, RecursionError) as error:
            raise Denied(401, f"the access token cannot be read: {error}") from None
        name = str(head.get("kid", ""))
        if name not in self._keys:
            await self._refresh(name)
        elif not 0 <= self._now() - self._had < KEEP_S and (self._renewal is None or self._renewal.done()):
            # Meanwhile, and while the issuer does not answer, those that are known count.
            self._renewal = asyncio.create_task(self._refresh())
        key = self._keys.get(name)
        if key is None:
            why = self._trouble or f"{self._access.issuer} publishes no key {name!r}"
            raise Denied(503 if self._trouble else 401, f"the access token cannot be checked: {why}")
        if head.get("alg") != key.algorithm_name:
            raise Denied(401, f"the access token does not count: its key is not for {head.get('alg')!r}")
        return key

    async def _refresh(self, wanted: str | None = None) -> None:
        """Ask the issuer for its keys, once for all who wait, and not too often."""
        async with self._lock:
            if wanted in self._keys or 0 <= self._now() - self._asked < AGAIN_S:
                return
            self._trouble = ""
            try:
                url = self._access.jwks_url or await self._published()
                found = _keys(json.decode(await self._fetch(url), type=dict[str, Any]))
                if not found:
                    raise ValueError("it publishes none that can be used")
                self._keys, self._had = found, self._now()
            except (OSError, ValueError, RecursionError) as error:
                self._trouble = f"the keys of {self._access.issuer} cannot be had ({error})"
            finally:
                self._asked = self._now()  # who waited meanwhile goes by what came of it

    async def _published(self) -> str:
        """Where the issuer says its keys are (RFC 8414, then OpenID)."""
        parts = urlsplit(self._access.issuer)
        path = parts.path.rstrip("/")
        places = (
            f"/.well-known/oauth-authorization-server{path}",
            f"{path}/.well-known/openid-configuration",
        )
        problem: Exception | None = None
        for place in places:
            try:
                found = await self._fetch(urlunsplit((parts.scheme, parts.netloc, place, "", "")))
                told = json.decode(found, type=dict[str, Any])
                if told.get("issuer") != self._access.issuer:
                    raise ValueError(f"{place} is of another issuer")
                if not is_sound(url := str(told["jwks_uri"])):
                    raise ValueError(f"{url} would not be safe to read them from")
                return url
            except (OSError, KeyError, ValueError, RecursionError) as error:
                problem = error
        raise ValueError(f"it does not say where: {problem}")


def _keys(published: dict[str, Any]) -> dict[str, jwt.PyJWK]:
    """The keys that can check signatures, by their names; what is odd among them is left out."""
    found: dict[str, jwt.PyJWK] = {}
    listed = published.get("keys")
    for one in listed if isinstance(listed, list) else []:
        if not isinstance(one, dict) or one.get("use", "sig") != "sig":
            continue
        try:
            key = jwt.PyJWK(one)
        except (jwt.PyJWTError, ValueError, TypeError):
            continue
        if key.algorithm_name in ALGORITHMS:
            found[str(one.get("kid", ""))] = key
    return found


def _named(subject: str) -> str:
    """A subject as a caller's name: as it is if it is plain, and nobody else's digest; else by its own."""
    if _PLAIN.fullmatch(subject) and not subject.startswith(DIGEST):
        return subject
    digest = hashlib.sha256(subject.encode(errors="surrogatepass")).hexdigest()
    return f"{DIGEST}{digest[:32]}"
