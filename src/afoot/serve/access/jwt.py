"""`JwtIssuer` checks JWT access tokens of a trusted issuer, with the keys that it publishes (S2)."""

import asyncio
import hashlib
import logging
import re
from collections.abc import Awaitable, Callable
from json import dumps
from typing import Any, Final
from urllib.parse import urlsplit, urlunsplit

import jwt
from msgspec import DecodeError, json

from afoot.config.tables import AccessSettings, is_secure_url
from afoot.serve.access.principal import SCOPES, Denied, Principal

# Only algorithms with a public key: with a shared secret, everybody who can check a token could forge one.
ALGORITHMS: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
CALLER_PREFIX: Final = "oauth:"  # of the names of callers with such a token
METADATA_PATH: Final = "/.well-known/oauth-protected-resource"
LEEWAY_S: Final = 30.0  # clocks differ
EXPIRY_GRACE_S: Final = 2.0  # calls detach from a caller whose token has expired, before its streams end
KEYS_MAX_AGE_S: Final = 600.0  # then the keys are fetched again, and withdrawn ones are dropped
FETCH_INTERVAL_S: Final = 10.0  # between two fetches of the keys, however many tokens name unknown keys
MAX_TOKEN: Final = 16_384
MAX_TIME: Final = 1e15  # seconds since 1970; a larger value, or NaN, is no time
DIGEST_PREFIX: Final = "sha256-"
_PLAIN_SUBJECT = re.compile(r"[\w.@:+/|-]{1,100}", re.ASCII)

log = logging.getLogger("afoot.access")

Fetch = Callable[[str], Awaitable[bytes]]


class JwtIssuer:
    """A trusted issuer and its keys. `fetch` raises OSError; `now` is in seconds since 1970."""

    def __init__(self, access: AccessSettings, resource: str, fetch: Fetch, now: Callable[[], float]) -> None:
        self._access = access
        self.resource = resource
        self._audience = access.audience or resource
        self._fetch = fetch
        self._now = now
        self._keys: dict[str, jwt.PyJWK] = {}
        self._last_fetch = self._keys_fetched = -KEYS_MAX_AGE_S
        self._fetch_error = ""
        self._renewal: asyncio.Task[None] | None = None
        self._lock = asyncio.Lock()

    @property
    def metadata_url(self) -> str:
        """The URL at which a client finds the issuer of tokens for this gateway."""
        parts = urlsplit(self.resource)
        return urlunsplit((parts.scheme, parts.netloc, METADATA_PATH + parts.path, "", ""))

    def metadata(self) -> dict[str, object]:
        """The protected resource's metadata (RFC 9728)."""
        return {
            "resource": self.resource,
            "authorization_servers": [self._access.issuer],
            "scopes_supported": [self.issuer_scope(scope) for scope in SCOPES],
            "bearer_methods_supported": ["header"],
        }

    def issuer_scope(self, scope: str) -> str:
        """The name that the issuer uses for a scope of afoot."""
        return self._access.scope_prefix + scope

    def end_reason(self, who: Principal) -> str:
        """Why a principal may not stay any longer; an empty text if it may."""
        is_late = self._now() >= who.until + EXPIRY_GRACE_S
        return "the access token has expired; come again with a new one" if is_late else ""

    async def check(self, token: bytes) -> Principal:
        """The principal of a token; raises Denied saying what is wrong with the token."""
        text = token.decode("latin-1")
        key = await self._find_key(text)
        options: Any = {"require": ["exp", "iss", "aud", "sub"], "verify_iat": False}
        options |= {"verify_exp": False, "verify_nbf": False}  # `_check_times` uses our own clock
        try:
            claims = jwt.decode(
                text, key, [key.algorithm_name], options,
                audience=self._audience, issuer=self._access.issuer,
            )  # fmt: skip
            self._check_times(claims)
        except jwt.InvalidTokenError as error:
            raise Denied(401, f"the access token does not count: {error}") from None
        name = CALLER_PREFIX + _caller_name(str(claims["sub"]))
        return Principal(name, self._scopes(claims), until=claims["exp"] + LEEWAY_S, claims=_encoded(claims))

    def _check_times(self, claims: dict[str, Any]) -> None:
        now = self._now()
        for name in ("exp", "nbf"):
            when = claims.get(name, 0)
            if not isinstance(when, int | float) or not abs(when) < MAX_TIME:
                raise jwt.InvalidTokenError(f"{name} is no time")
        if now >= claims["exp"] + LEEWAY_S:
            raise jwt.ExpiredSignatureError("it has expired")
        if now < claims.get("nbf", 0) - LEEWAY_S:
            raise jwt.ImmatureSignatureError("it is not valid yet")

    def _scopes(self, claims: dict[str, Any]) -> frozenset[str]:
        given = claims.get("scope", claims.get("scp", ""))
        words = given.split() if isinstance(given, str) else given if isinstance(given, list) else []
        prefix = self._access.scope_prefix
        mine = (
            word.removeprefix(prefix) for word in words if isinstance(word, str) and word.startswith(prefix)
        )
        return frozenset(scope for scope in mine if scope)

    async def _find_key(self, token: str) -> jwt.PyJWK:
        """The key that a token names; raises Denied."""
        try:
            if len(token) > MAX_TOKEN:
                raise jwt.InvalidTokenError("it is too long")
            head = jwt.get_unverified_header(token)
        except (jwt.InvalidTokenError, RecursionError) as error:
            raise Denied(401, f"the access token cannot be read: {error}") from None
        name = str(head.get("kid", ""))
        are_old = not 0 <= self._now() - self._keys_fetched < KEYS_MAX_AGE_S
        is_renewing = self._renewal is not None and not self._renewal.done()
        if name not in self._keys:
            await self._fetch_keys(name)
        elif are_old and not is_renewing:
            # The known keys stay valid meanwhile, and for as long as the issuer does not answer.
            self._renewal = asyncio.create_task(self._fetch_keys())
        key = self._keys.get(name)
        if key is None:
            why = self._fetch_error or f"{self._access.issuer} publishes no key {name!r}"
            raise Denied(503 if self._fetch_error else 401, f"the access token cannot be checked: {why}")
        if head.get("alg") != key.algorithm_name:
            raise Denied(401, f"the access token does not count: its key is not for {head.get('alg')!r}")
        return key

    async def _fetch_keys(self, wanted: str | None = None) -> None:
        """Fetch the issuer's keys, once for all who wait, and not too often."""
        async with self._lock:
            if wanted in self._keys or 0 <= self._now() - self._last_fetch < FETCH_INTERVAL_S:
                return
            self._fetch_error = ""
            try:
                url = self._access.jwks_url or await self._find_jwks_url()
                found = _usable_keys(json.decode(await self._fetch(url), type=dict[str, Any]))
                if not found:
                    raise ValueError("it publishes none that can be used")
                self._keys = found
                self._keys_fetched = self._now()
            except (OSError, ValueError, RecursionError) as error:
                self._fetch_error = f"the keys of {self._access.issuer} cannot be had ({error})"
            finally:
                self._last_fetch = self._now()  # those who waited for the lock use this result

    async def _find_jwks_url(self) -> str:
        """The URL at which the issuer publishes its keys (RFC 8414, then OpenID)."""
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
                metadata = json.decode(found, type=dict[str, Any])
                if metadata.get("issuer") != self._access.issuer:
                    raise ValueError(f"{place} is of another issuer")
                if not is_secure_url(url := str(metadata["jwks_uri"])):
                    raise ValueError(f"{url} would not be safe to read them from")
                return url
            except (OSError, KeyError, ValueError, RecursionError) as error:
                problem = error
        raise ValueError(f"it does not say where: {problem}")


def _usable_keys(published: dict[str, Any]) -> dict[str, jwt.PyJWK]:
    """The keys that can check signatures, by their ids; unusable ones are left out."""
    found: dict[str, jwt.PyJWK] = {}
    listed = published.get("keys")
    for one in listed if isinstance(listed, list) else []:
        if not isinstance(one, dict) or one.get("use", "sig") != "sig":
            continue
        try:
            key = jwt.PyJWK(one)
        except Exception as error:  # the library may raise anything; the other keys count all the same
            log.info("a key that the issuer publishes cannot be used: %r", error)
            continue
        if key.algorithm_name in ALGORITHMS:
            # Of two keys with one id the first counts, so a later one cannot take its place.
            found.setdefault(str(one.get("kid", "")), key)
    return found


def _encoded(claims: dict[str, Any]) -> bytes:
    """Claims as JSON that every decoder reads; none if they hold NaN, which is no JSON."""
    text = dumps(claims, ensure_ascii=False).encode("utf-8", "replace")
    try:
        json.decode(text)
    except DecodeError:
        return b"{}"
    return text


def _caller_name(subject: str) -> str:
    """The caller's name for a subject: the subject itself if it is plain, else its digest.

    A subject that looks like a digest of ours is not plain.
    """
    if _PLAIN_SUBJECT.fullmatch(subject) and not subject.startswith(DIGEST_PREFIX):
        return subject
    digest = hashlib.sha256(subject.encode(errors="surrogatepass")).hexdigest()
    return f"{DIGEST_PREFIX}{digest[:32]}"
