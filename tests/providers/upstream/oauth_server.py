"""A server that wants a login, and the authorization server it trusts: the SDK's own, in a thread."""

import asyncio
import secrets
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.error import HTTPError
from urllib.request import urlopen

import uvicorn
from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    OAuthAuthorizationServerProvider,
    RefreshToken,
    TokenError,
    construct_redirect_uri,
)
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions
from mcp.server.mcpserver import Context, MCPServer
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken

SCOPES = ["buy"]


class Office(OAuthAuthorizationServerProvider[AuthorizationCode, RefreshToken, AccessToken]):
    """Lets everybody in without asking, and remembers everything. Tests turn its knobs."""

    def __init__(self) -> None:
        self.url = ""
        self.lives_s = 3600
        self.is_refusing = False  # whoever comes to log in
        self.half = ""  # a refresh token to give out without the other one
        self.clients: dict[str, OAuthClientInformationFull] = {}
        self.codes: dict[str, AuthorizationCode] = {}
        self.tokens: dict[str, AccessToken] = {}
        self.refreshes: dict[str, RefreshToken] = {}
        self.renewals = 0
        self.asked: list[AuthorizationParams] = []

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        return self.clients.get(client_id)

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        self.clients[client_info.client_id] = client_info

    async def authorize(self, client: OAuthClientInformationFull, params: AuthorizationParams) -> str:
        self.asked.append(params)
        back = str(params.redirect_uri)
        if self.is_refusing:
            return construct_redirect_uri(back, error="access_denied", state=params.state)
        code = AuthorizationCode(
            code=secrets.token_hex(20),
            scopes=params.scopes or [],
            expires_at=time.time() + 60,
            client_id=client.client_id,
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly,
            resource=params.resource,
        )
        self.codes[code.code] = code
        return construct_redirect_uri(back, code=code.code, state=params.state, iss=self.url)

    async def load_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: str
    ) -> AuthorizationCode | None:
        return self.codes.get(authorization_code)

    async def exchange_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: AuthorizationCode
    ) -> OAuthToken:
        del self.codes[authorization_code.code]
        if self.half:
            return OAuthToken.model_construct(refresh_token=self.half)
        return self._issue(client.client_id, authorization_code.scopes, authorization_code.resource)

    async def load_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: str
    ) -> RefreshToken | None:
        return self.refreshes.get(refresh_token)

    async def exchange_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: RefreshToken, scopes: list[str]
    ) -> OAuthToken:
        if self.refreshes.pop(refresh_token.token, None) is None:
            raise TokenError("invalid_grant")
        self.renewals += 1
        return self._issue(client.client_id, scopes, f"{self.url}/mcp")

    async def load_access_token(self, token: str) -> AccessToken | None:
        return self.tokens.get(token)

    async def revoke_token(self, token: AccessToken | RefreshToken) -> None:
        self.revoke()

    def revoke(self, *, access: bool = True, refresh: bool = True) -> None:
        """What was given out counts no more."""
        if access:
            self.tokens.clear()
        if refresh:
            self.refreshes.clear()

    def _issue(self, client: str, scopes: list[str], resource: str | None) -> OAuthToken:
        access, refresh = secrets.token_hex(16), secrets.token_hex(16)
        expires = int(time.time()) + self.lives_s
        self.tokens[access] = AccessToken(
            token=access, client_id=client, scopes=scopes, expires_at=expires, resource=resource
        )
        self.refreshes[refresh] = RefreshToken(token=refresh, client_id=client, scopes=scopes)
        return OAuthToken(
            access_token=access, refresh_token=refresh, expires_in=self.lives_s, scope=" ".join(scopes)
        )


def rules(office: Office) -> AuthSettings:
    """Who is let in: everybody with a token of this office, for this shop."""
    return AuthSettings.model_validate(
        {
            "issuer_url": office.url,
            "resource_server_url": f"{office.url}/mcp",
            "client_registration_options": ClientRegistrationOptions(enabled=True, valid_scopes=SCOPES),
            "required_scopes": SCOPES,
            "validate_token_resource": True,
        }
    )


def shop(office: Office) -> MCPServer:
    """The server itself."""
    server = MCPServer("shop", auth_server_provider=office, auth=rules(office), log_level="CRITICAL")
    door = asyncio.Barrier(2)

    @server.tool()
    async def whoami() -> str:
        """The client that the token was given to."""
        token = get_access_token()
        assert token is not None
        return token.client_id

    @server.tool()
    async def count(n: int, ctx: Context) -> str:
        """Counts aloud."""
        for step in range(1, n + 1):
            await ctx.report_progress(step, n)
        return str(n)

    @server.tool()
    async def meet() -> str:
        """Ends when two are here."""
        await door.wait()
        return "met"

    return server


@contextmanager
def open_shop() -> Iterator[Office]:
    """The shop on a port of this machine; its `url` is without `/mcp`."""
    office = Office()
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        office.url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        app = shop(office).streamable_http_app()
        server = uvicorn.Server(uvicorn.Config(app, log_config=None, ws="none", timeout_graceful_shutdown=1))
        thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
        thread.start()
        try:
            while not server.started:
                assert thread.is_alive(), "the server did not start"
                time.sleep(0.01)
            yield office
        finally:
            server.should_exit = True
            thread.join()


def browse(url: str) -> tuple[int, str]:
    """Go there and wherever that leads, as a browser does: the status, and the page."""
    try:
        with urlopen(url, timeout=10) as page:
            return page.status, page.read().decode()
    except HTTPError as error:
        return error.code, error.read().decode()
