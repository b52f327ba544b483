"""A login as requests over HTTP use it: its token goes along with each of them (U7)."""

from collections.abc import AsyncGenerator

import httpx2

from afoot.providers.upstream.oauth_access import Access


class Bearer(httpx2.Auth):
    """Sends a login's token along, once more if it was renewed; without a login requests are as they were."""

    def __init__(self, access: Access) -> None:
        self._access = access

    async def async_auth_flow(
        self, request: httpx2.Request
    ) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        sent = await self._access.token()
        if sent:
            request.headers["authorization"] = f"Bearer {sent}"
        response = yield request
        if response.status_code == 401 and sent and (other := await self._access.another(sent)):
            request.headers["authorization"] = f"Bearer {other}"
            response = yield request
        self._access.heard(response.status_code, response.headers.get("www-authenticate", ""))
