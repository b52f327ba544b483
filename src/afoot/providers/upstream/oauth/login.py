"""`log_in` makes a login to a server: authorization code with PKCE, by the SDK (U7, S1).

`RedirectListener` waits on 127.0.0.1 for the one request with which the person's browser comes back.
Importing the SDK takes a second or two: this module is imported when somebody logs in, and not before.
"""

import asyncio
import logging
import re
import secrets
from collections.abc import Callable
from contextlib import suppress
from contextvars import ContextVar
from html import escape
from typing import Final, Self
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

from afoot.config.settings import Server
from afoot.errors import CallerError, ToolError
from afoot.providers.upstream.oauth.endpoint_guard import EndpointGuard, GuardedTransport
from afoot.providers.upstream.oauth.tokens import AuthChallenge, OAuthClient, StoredLogin
from afoot.providers.upstream.transport.http import ResponseTooLarge, read_body

LOGIN_S: Final = 300.0  # for the person to log in
REQUEST_S: Final = 10.0  # to send a request
REQUEST_BYTES: Final = 16 * 1024
MAX_VISITORS: Final = 32  # connections at once
CALLBACK_PATH: Final = "/callback"
RESULT_PAGE: Final = (
    "<!doctype html><meta charset=utf-8><title>afoot</title>"
    "<body style='font:1.1em system-ui;margin:4em auto;max-width:32em'><p>{}</p>"
)
RESULT_HEADERS: Final = (
    "content-type: text/html; charset=utf-8\r\ncache-control: no-store\r\nreferrer-policy: no-referrer\r\n"
    "content-security-policy: default-src 'none'; style-src 'unsafe-inline'\r\nconnection: close\r\n"
)
ANSWER_S: Final = 30.0  # of each request of the flow
MAX_BYTES: Final = 1024 * 1024
# Headers that are no longer true of a body that was read.
FRAMING_HEADERS: Final = ("content-encoding", "content-length", "transfer-encoding")
ERROR_CHARS: Final = 400  # of an error message

ShowUrl = Callable[[str], object]

_VALUE = re.compile(r"input_value=.*?(?=, input_type=|$)")  # received values in error messages of pydantic

# The SDK logs errors with everything it received, codes and tokens included. Our errors leave those out.
_is_ours: ContextVar[bool] = ContextVar("_is_ours", default=False)
logging.getLogger("mcp.client.auth.oauth2").addFilter(lambda _: not _is_ours.get())


class OAuthLoginRequest(Struct, frozen=True):
    """The server to log in to, the refusal that asked for the login, and the login before."""

    name: str
    server: Server
    challenge: AuthChallenge | None = None
    before: StoredLogin | None = None
    port: int = 0  # for the redirect; 0: any that is free

    def __repr__(self) -> str:
        return f"OAuthLoginRequest({self.name!r})"


class AuthorizationResponse(Struct, frozen=True):
    """The authorization response that the browser brought (RFC 6749, 4.1.2)."""

    code: str
    state: str
    issuer: str | None = None

    def __repr__(self) -> str:
        return "AuthorizationResponse()"


async def log_in(login_request: OAuthLoginRequest, show: ShowUrl) -> StoredLogin:
    """Log in and return the login to store; `show` gets the address for the browser. Raises ToolError."""
    _is_ours.set(True)
    before = login_request.before.client if login_request.before is not None else None
    async with RedirectListener(login_request.port, before.redirect if before is not None else "") as back:
        flow = _LoginFlow(login_request, back, show)
        try:
            return await flow.run()
        except (
            OAuthFlowError,
            ValidationError,
            httpx2.HTTPError,
            httpx2.InvalidURL,
            ResponseTooLarge,
        ) as error:
            raise ToolError.auth(flow.describe_failure(error)) from None
        except TimeoutError:
            text = f"server {login_request.name}: its authorization server did not answer"
            raise ToolError.unavailable(text) from None


class _LoginFlow:
    """One login under way. It is the token storage of the SDK, and its two callbacks."""

    def __init__(self, login_request: OAuthLoginRequest, back: "RedirectListener", show: ShowUrl) -> None:
        self.login_request = login_request
        self.back = back
        self.show = show
        self.is_shown = False
        server = login_request.server
        self.guard = EndpointGuard(server.url, server.auth_hosts)
        metadata = OAuthClientMetadata(
            redirect_uris=[AnyUrl(back.redirect)], client_name="afoot", software_id="dev.afoot"
        )
        document = server.client_id if is_valid_client_metadata_url(server.client_id) else None
        self.provider = OAuthClientProvider(
            server.url,
            metadata,
            self,
            self.redirect_person,
            self.wait_for_callback,
            client_metadata_url=document,
        )

    async def run(self) -> StoredLogin:
        """Send the SDK's requests, except the first, which the server has refused already."""
        request = httpx2.Request("POST", self.login_request.server.url)
        steps = self.provider.async_auth_flow(request)
        try:
            transport = GuardedTransport(self.guard)
            async with httpx2.AsyncClient(timeout=ANSWER_S, transport=transport) as web:
                await anext(steps)
                wanted = await steps.asend(self._refusal(request))
                while wanted is not request:
                    wanted = await steps.asend(await _send(web, wanted))
        finally:
            await steps.aclose()
        return self._result()

    async def redirect_person(self, url: str) -> None:
        """Show the address to log in at.

        Raises OAuthFlowError if it is another server than before, and UnsafeEndpoint.
        """
        login_request, context = self.login_request, self.provider.context
        client, known = context.client_info, login_request.server.client_id
        if known and client is not None and known != client.client_id and not context.client_metadata_url:
            text = "its authorization server is another one now, which client_id was not made for"
            raise OAuthFlowError(f"{text}; `afoot servers logout` forgets the old one")
        for endpoint in (url, self._token_url()):
            await self.guard.check(endpoint)
        if client is not None and known == client.client_id and client.client_secret:
            client.token_endpoint_auth_method = self._method()
        self.back.expect(parse_qs(urlsplit(url).query)["state"][0])
        self.is_shown = True
        self.show(url)

    async def wait_for_callback(self) -> AuthorizationCodeResult:
        """Return the authorization response that the browser brought."""
        visit = await self.back.wait()
        return AuthorizationCodeResult(code=visit.code, state=visit.state, iss=visit.issuer)

    async def get_tokens(self) -> OAuthToken | None:
        """Return only the scope of the login before: its tokens are not used to get new ones."""
        before, challenge = self.login_request.before, self.login_request.challenge
        if before is None or challenge is None or not challenge.is_step:
            return None
        return OAuthToken(access_token="-", scope=before.scope or None)

    async def set_tokens(self, tokens: OAuthToken) -> None:
        """Do nothing: everything is stored at once, at the end."""

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        """Return our client: that of the settings, or one registered before with the same redirect URI."""
        server, before = self.login_request.server, self.login_request.before
        old = before.client if before is not None else None
        if server.client_id and not self.provider.context.client_metadata_url:
            issuer = old.issuer if old is not None and old.id == server.client_id else ""
            old = OAuthClient(
                server.client_id, server.client_secret, redirect=self.back.redirect, issuer=issuer
            )
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
        """Do nothing: the client info is stored with the tokens, at the end."""

    def describe_failure(self, error: Exception) -> str:
        """Say in short what went wrong, without any secret."""
        context, login_request = self.provider.context, self.login_request
        client = context.client_info
        text = _VALUE.sub("input_value=…", " ".join(str(error).split())) or type(error).__name__
        for secret in (
            client.client_secret if client is not None else "",
            login_request.server.client_secret,
        ):
            text = text.replace(secret, "…") if secret else text
        text = text.split("State parameter mismatch")[0][:ERROR_CHARS] or "state mismatch"
        if login_request.challenge is None and not self.is_shown:
            said = "asked for no login, and says nothing of where there is one"
            return f"server {login_request.name} {said}: {text}"
        return f"server {login_request.name}: the login failed: {text}"

    def _refusal(self, request: httpx2.Request) -> httpx2.Response:
        """Return the server's refusal as the SDK reads it; scopes of the settings replace those it names."""
        challenge = self.login_request.challenge or AuthChallenge(401)
        header = challenge.header
        if self.login_request.server.scopes:
            # The SDK reads the first scope.
            header = (
                f'Bearer scope="{" ".join(self.login_request.server.scopes)}", {header.partition(" ")[2]}'
            )
        return httpx2.Response(challenge.status, headers={"www-authenticate": header}, request=request)

    def _token_url(self) -> str:
        context = self.provider.context
        if context.oauth_metadata is not None:
            return str(context.oauth_metadata.token_endpoint)
        return urljoin(context.get_authorization_base_url(context.server_url), "/token")

    def _method(self) -> str:
        """Return how to send a configured secret, as the authorization server supports it (RFC 8414, 2)."""
        metadata = self.provider.context.oauth_metadata
        offered = metadata.token_endpoint_auth_methods_supported if metadata is not None else None
        is_in_form = offered and "client_secret_basic" not in offered and "client_secret_post" in offered
        return "client_secret_post" if is_in_form else "client_secret_basic"

    def _result(self) -> StoredLogin:
        context = self.provider.context
        tokens = context.current_tokens
        client = context.client_info
        metadata = context.oauth_metadata
        assert tokens is not None and client is not None
        issuer = client.issuer or (str(metadata.issuer) if metadata is not None else "")
        return StoredLogin(
            self.login_request.server.url,
            tokens.access_token,
            tokens.refresh_token or "",
            context.token_expiry_time,
            tokens.scope or "",
            self._token_url(),
            context.get_resource_url() if context.should_include_resource_param() else "",
            OAuthClient(
                client.client_id,
                client.client_secret or "",
                client.token_endpoint_auth_method or "",
                self.back.redirect,
                issuer,
            ),
            self.login_request.challenge.header if self.login_request.challenge is not None else "",
        )


class RedirectListener:
    """Listens on 127.0.0.1. Only the first request with the right state counts.

    Without a `port` it takes the one of an earlier `redirect`, if that is free: the client is registered
    with it.
    """

    def __init__(self, port: int = 0, redirect: str = "") -> None:
        self.redirect = ""
        self._ports = [port] if port else [urlsplit(redirect).port or 0, 0]
        self._state = ""
        self._visit: asyncio.Future[AuthorizationResponse] | None = None
        self._server: asyncio.Server | None = None
        self._visitors: dict[asyncio.StreamWriter, None] = {}

    async def __aenter__(self) -> Self:
        self._visit = asyncio.get_running_loop().create_future()
        why = ""
        for port in self._ports:
            try:
                self._server = await asyncio.start_server(
                    self._answer, "127.0.0.1", port, limit=REQUEST_BYTES
                )
                break
            except (OSError, OverflowError) as error:
                why = f"port {port} cannot be used to come back to: {error}"
        else:
            raise CallerError(why)
        self.redirect = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}{CALLBACK_PATH}"
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None and self._visit is not None
        self._server.close()
        if not self._visit.cancel() and not self._visit.cancelled():
            self._visit.exception()  # retrieved, if it came after the wait was over

    def expect(self, state: str) -> None:
        """Accept a request with this state; before this call none is accepted."""
        self._state = state

    async def wait(self) -> AuthorizationResponse:
        """Return the authorization response; raises ToolError if the person refused, or never came."""
        assert self._visit is not None
        try:
            async with asyncio.timeout(LOGIN_S):
                return await self._visit
        except TimeoutError:
            raise ToolError.timeout(f"nobody logged in within {LOGIN_S:g} s") from None

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._visitors) >= MAX_VISITORS:
            next(iter(self._visitors)).transport.abort()  # the oldest; a browser says at once what it wants
        self._visitors[writer] = None
        try:
            await self._answer_visitor(reader, writer)
        finally:
            del self._visitors[writer]
            writer.close()

    async def _answer_visitor(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, TimeoutError, asyncio.LimitOverrunError, asyncio.IncompleteReadError):
            async with asyncio.timeout(REQUEST_S):
                head = await reader.readuntil(b"\r\n\r\n")
                status, text = self._read_callback(head.split(b"\r\n", 1)[0].decode("latin-1"))
                body = RESULT_PAGE.format(escape(text)).encode()
                lines = f"HTTP/1.1 {status} -\r\n{RESULT_HEADERS}content-length: {len(body)}\r\n\r\n"
                writer.write(lines.encode() + body)
                await writer.drain()

    def _read_callback(self, line: str) -> tuple[int, str]:
        """Accept or refuse a request; returns the status, and the text that the person reads."""
        words = line.split(" ")
        path, _, query = words[1].partition("?") if len(words) == 3 else ("", "", "")
        if words[0] != "GET" or path != CALLBACK_PATH:
            return 404, "There is nothing here."
        given = {key: values[0] for key, values in parse_qs(query).items()}
        assert self._visit is not None
        if self._visit.done():
            return 410, "This login was used before. Nothing has changed."
        state = given.get("state", "")
        if not self._state or not secrets.compare_digest(state.encode(), self._state.encode()):
            return 400, "This does not belong to the login that is waited for. Nothing has changed."
        if "code" not in given:
            why = ": ".join(given[key] for key in ("error", "error_description") if key in given)
            self._visit.set_exception(ToolError.refused(f"the login was refused: {why[:300] or 'no code'}"))
            return 200, "The login was refused. You can close this window."
        self._visit.set_result(AuthorizationResponse(given["code"], state, given.get("iss")))
        return 200, "afoot goes on from here. You can close this window and go back."


async def _send(web: httpx2.AsyncClient, request: httpx2.Request) -> httpx2.Response:
    """Send a request of the SDK and read the whole answer, up to a limit. The SDK judges redirects itself."""
    async with asyncio.timeout(ANSWER_S):
        response = await web.send(request, stream=True, follow_redirects=False)
        try:
            body = await read_body(response, MAX_BYTES)
        finally:
            await response.aclose()
    headers = [(key, text) for key, text in response.headers.multi_items() if key not in FRAMING_HEADERS]
    read = httpx2.Response(response.status_code, headers=headers, content=body, request=request)
    read.next_request = response.next_request
    return read
