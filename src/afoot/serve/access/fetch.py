"""`fetch` fetches a small document, such as the keys of an issuer, from an address that is trusted (S2)."""

import asyncio
import time
import urllib.request
from http.client import HTTPException
from typing import Any

from afoot.config.tables import (
    is_secure_url,
)

FETCH_S = 10.0
FETCH_MAX_BYTES = 1024 * 1024


async def fetch(url: str) -> bytes:
    """Fetch a small document from an address that we trust; raises OSError, after FETCH_S at the latest."""
    try:
        async with asyncio.timeout(FETCH_S):
            return await asyncio.to_thread(_get, url, time.monotonic() + FETCH_S)
    except (TimeoutError, HTTPException) as error:
        raise OSError(f"{url}: {str(error) or f'no answer within {FETCH_S:g} s'}") from None


class _SafeRedirects(urllib.request.HTTPRedirectHandler):
    """Follows no redirect to an address where others could change the document on its way."""

    def redirect_request(self, *given: Any) -> Any:  # pyrefly: ignore[bad-override]
        """Make the next request; raises OSError."""
        if not is_secure_url(url := given[-1]):
            given[1].close()  # what led there
            raise OSError(f"it leads to {url}, which is not safe")
        return super().redirect_request(*given)


def _get(url: str, due: float) -> bytes:
    """Read the document. It looks at the time itself: nobody can end this thread from outside."""
    body = b""
    with urllib.request.build_opener(_SafeRedirects).open(url, timeout=FETCH_S) as response:
        while piece := response.read1(65_536):
            body += piece
            if len(body) > FETCH_MAX_BYTES:
                raise OSError(f"{url}: over {FETCH_MAX_BYTES} bytes")
            if time.monotonic() > due:
                raise TimeoutError(f"not whole within {FETCH_S:g} s")
    return body
