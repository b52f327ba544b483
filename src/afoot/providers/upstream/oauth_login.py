"""A login to a server: authorization code with PKCE, by the SDK; the person's part is somebody else's (U7).

Importing this takes a second or two: it is imported when somebody logs in, and not before.
"""

import asyncio
import logging
import re
from collections.abc import Callable
from contextvars import ContextVar
from typing import Final
from urllib.parse import parse_qs, urljoin, urlsplit

import httpx2
from mcp.client.auth import OAuthClientProvider, OAuthFlowError
from mcp.client.auth.utils import is_valid_client_metadata_url
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthToken,
)
from msgspec import Struct
from pydantic import AnyUrl, ValidationError

from afoot.config import Server
from afoot.errors import ToolError
from afoot.providers.upstream.oauth_access import Challenge
from afoot.providers.upstream.oauth_return import Return
from afoot.providers.upstream.oauth_store import Client, Login
from afoot.providers.upstream.web import TooLarge, whole

ANSWER_S: Final = 30.0  # of a server that is asked on the way
MAX_BYTES: Final = 1024 * 1024
FRAMING: Final = ("content-encoding", "content-length", "transfer-encoding")  # gone with the reading
SAID: Final = 400  # characters of what went wrong

_VALUE = re.compile(r"input_value=.*?(?=, input_type=|$)")  # what came, in errors of pydantic
Show = Callable[[str], object]

# The SDK logs what it stumbles over with all that came: codes and tokens, too. Our errors tell it without.
_is_ours: ContextVar[bool] = ContextVar("_is_ours", default=False)
logging.getLogger("mcp.client.auth.oauth2").addFilter(lambda _: not _is_ours.get())


class Order(Struct, frozen=True):
    """A login that is wanted: to which server, what it said when it refused, and what there was before."""

    name: str
    server: Server
    challenge: Challenge | None = None
    before: Login | None = None
    port: int = 0  # to come back to; any that is free

    def __repr__(self) -> str:
        return f"Order({self.name!r})"


async def log_in(order: Order, show: Show) -> Login:
    """Log in and give what has to be kept; `show` gets the address for the browser. Raises ToolError."""
    _is_ours.set(True)
    before = order.before.client if order.before is not None else None
    async with Return(order.port, before.redirect if before is not None else "") as back:
        flow = _Flow(order, back, show)
        try:
            return await flow.run()
        except (OAuthFlowError, ValidationError, httpx2.HTTPError, httpx2.InvalidURL, TooLarge) as error:
            raise ToolError.auth(flow.explained(error)) from None
        except TimeoutError:
            text = f"server {order.name}: its authorization server did not answer"
            raise ToolError.unavailable(text) from None


class _Flow:
    """One login under way, and what the SDK asks of whoever uses it: a storage, and the two ends."""

    def __init__(self, order: Order, back: Return, show: Show) -> None:
        self.order, self.back, self.show = order, back, show
        self.is_shown = False
        server = order.server
        metadata = OAuthClientMetadata(
            redirect_uris=[AnyUrl(back.redirect)], client_name="afoot", software_id="dev.afoot"
        )
        document = server.client_id if is_valid_client_metadata_url(server.client_id) else None
        self.provider = OAuthClientProvider(
            server.url, metadata, self, self.send_away, self.take_back, client_metadata_url=document
        )

    async def run(self) -> Login:
        """Answer the SDK's requests but the first, which the server has refused already."""
        request = httpx2.Request("POST", self.order.server.url)
        steps = self.provider.async_auth_flow(request)
        try:
            async with httpx2.AsyncClient(timeout=ANSWER_S) as web:
                await anext(steps)
                wanted = await steps.asend(self._refusal(request))
                while wanted is not request:
                    wanted = await steps.asend(await _sent(web, wanted))
        finally:
            await steps.aclose()
        return self._result()

    async def send_away(self, url: str) -> None:
        """The person is to go there; whoever is used to logging in elsewhere is not let in by surprise."""
        order, context = self.order, self.provider.context
        client, known = context.client_info, order.server.client_id
        if known and client is not None and known != client.client_id and not context.client_metadata_url:
            text = "its authorization server is another one now, which client_id was not made for"
            raise OAuthFlowError(f"{text}; `afoot servers logout` forgets the old one")
        for endpoint in (url, self._token_url()):
            _check_safe(endpoint, order.server.url)
        if client is not None and known == client.client_id and client.client_secret:
            client.token_endpoint_auth_method = self._method()
        self.back.expect(parse_qs(urlsplit(url).query)["state"][0])
        self.is_shown = True
        self.show(url)

    async def take_back(self) -> AuthorizationCodeResult:
        """What the browser brought."""
        visit = await self.back.wait()
        return AuthorizationCodeResult(code=visit.code, state=visit.state, iss=visit.issuer)

    async def get_tokens(self) -> OAuthToken | None:
        """Only how far the login reached: the tokens themselves are not used to get new ones."""
        before, challenge = self.order.before, self.order.challenge
        if before is None or challenge is None or not challenge.is_step:
            return None
        return OAuthToken(access_token="-", scope=before.scope or None)

    async def set_tokens(self, tokens: OAuthToken) -> None:
        """They are kept all at once, at the end."""

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        """Who we are: as configured; or as registered before, if the browser can come back to there."""
        server, before = self.order.server, self.order.before
        old = before.client if before is not None else None
        if server.client_id and not self.provider.context.client_metadata_url:
            issuer = old.issuer if old is not None and old.id == server.client_id else ""
            old = Client(server.client_id, server.client_secret, redirect=self.back.redirect, issuer=issuer)
        if old is None or old.redirect != self.back.redirect:
            return None
        return OAuthClientInformationFull(
            client_id=old.id,
            client_secret=old.secret or None,
            token_endpoint_auth_method=old.method or None,
            redirect_uris=[AnyUrl(old.redirect)],
            issuer=old.issuer or None,
        )

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """It is kept with the tokens, at the end."""

    def explained(self, error: Exception) -> str:
        """What went wrong, in short, and without anything that is secret."""
        context, order = self.provider.context, self.order
        client = context.client_info
        text = _VALUE.sub("input_value=…", " ".join(str(error).split())) or type(error).__name__
        for secret in (client.client_secret if client is not None else "", order.server.client_secret):
            text = text.replace(secret, "…") if secret else text
        text = text.split("State parameter mismatch")[0][:SAID] or "state mismatch"
        if order.challenge is None and not self.is_shown:
            return f"server {order.name} asked for no login, and says nothing of where there is one: {text}"
        return f"server {order.name}: the login failed: {text}"

    def _refusal(self, request: httpx2.Request) -> httpx2.Response:
        """What the server said, as the SDK reads it; configured scopes count more than those it names."""
        challenge = self.order.challenge or Challenge(401)
        header = challenge.header
        if self.order.server.scopes:
            # The first of a kind is the one that is read.
            header = f'Bearer scope="{" ".join(self.order.server.scopes)}", {header.partition(" ")[2]}'
        return httpx2.Response(challenge.status, headers={"www-authenticate": header}, request=request)

    def _token_url(self) -> str:
        context = self.provider.context
        if context.oauth_metadata is not None:
            return str(context.oauth_metadata.token_endpoint)
        return urljoin(context.get_authorization_base_url(context.server_url), "/token")

    def _method(self) -> str:
        """How a configured secret is shown: as the authorization server can take it (RFC 8414, 2)."""
        metadata = self.provider.context.oauth_metadata
        offered = metadata.token_endpoint_auth_methods_supported if metadata is not None else None
        is_in_form = offered and "client_secret_basic" not in offered and "client_secret_post" in offered
        return "client_secret_post" if is_in_form else "client_secret_basic"

    def _result(self) -> Login:
        context = self.provider.context
        tokens, client, metadata = context.current_tokens, context.client_info, context.oauth_metadata
        assert tokens is not None and client is not None
        issuer = client.issuer or (str(metadata.issuer) if metadata is not None else "")
        return Login(
            self.order.server.url,
            tokens.access_token,
            tokens.refresh_token or "",
            context.token_expiry_time,
            tokens.scope or "",
            self._token_url(),
            context.get_resource_url() if context.should_include_resource_param() else "",
            Client(
                client.client_id,
                client.client_secret or "",
                client.token_endpoint_auth_method or "",
                self.back.redirect,
                issuer,
            ),
            self.order.challenge.header if self.order.challenge is not None else "",
        )


async def _sent(web: httpx2.AsyncClient, request: httpx2.Request) -> httpx2.Response:
    """An answer with its body, which may not be endless. Redirects are the SDK's to judge."""
    async with asyncio.timeout(ANSWER_S):
        response = await web.send(request, stream=True, follow_redirects=False)
        try:
            body = await whole(response, MAX_BYTES)
        finally:
            await response.aclose()
    headers = [(key, text) for key, text in response.headers.multi_items() if key not in FRAMING]
    read = httpx2.Response(response.status_code, headers=headers, content=body, request=request)
    read.next_request = response.next_request
    return read


def _check_safe(endpoint: str, server: str) -> None:
    """Secrets go over TLS, or not further than the server itself, or stay on this machine."""
    there, here = urlsplit(endpoint), urlsplit(server)
    local = there.hostname in ("localhost", "127.0.0.1", "::1")
    if there.scheme == "https" or local or (here.scheme == "http" and there.hostname == here.hostname):
        return
    raise OAuthFlowError(f"{there.scheme}://{there.netloc} is not https")
