"""`track_bytes` and `download` report the bytes of an HTTP transfer (P10)."""

import os
import secrets
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Iterator
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from ssl import SSLError
from typing import Any, Final

from afoot.errors import ToolError
from afoot.providers.functions.context import current_context
from afoot.providers.functions.reporting import report
from afoot.providers.functions.threads import CancelToken, run_blocking

CHUNK_BYTES: Final = 65_536
READ_TIMEOUT_S: Final = 30.0  # without a byte from the server
_NETWORK_ERRORS: Final = (urllib.error.URLError, HTTPException, ConnectionError, TimeoutError, SSLError)


def track_bytes(response: Any, total: int | None = None, message: str | None = None) -> Any:
    """The chunks of a response, each reported once the loop body is done with it.

    It takes responses of httpx, requests, aiohttp and urllib. The chunks come in an async iterator if the
    response is async, else in a plain one. The total is the Content-Length.
    """
    if total is None and not _is_decompressed(response):
        total = _content_length(response)
    source = _chunks(response)
    if hasattr(source, "__aiter__"):
        return _track_async(source, response, total, message)
    return _track(source, response, total, message)


def download(url: str, path: str | os.PathLike[str], message: str | None = None) -> Any:
    """Fetch a file over HTTP, with its bytes as reports; gives its path. Awaited, or else blocking.

    The file appears once it is complete. Raises ToolError for an HTTP error, or if the transfer fails.
    """
    if not url.startswith(("http://", "https://")):
        raise ToolError.validation(f"{url!r} is no http or https address")
    target = Path(path)
    return run_blocking(lambda ctx, token: _download(url, target, message or target.name, token))


def _download(url: str, target: Path, message: str, token: CancelToken) -> Path:
    part = target.with_name(
        f"{target.name}.{secrets.token_hex(4)}.part"
    )  # unique, as another call may fetch the same file
    request = urllib.request.Request(url, headers={"User-Agent": "afoot"})
    try:
        with urllib.request.urlopen(request, timeout=READ_TIMEOUT_S) as response, part.open("wb") as file:
            for chunk in track_bytes(response, message=message):
                token.raise_if_cancelled()
                file.write(chunk)
            _check_complete(response, file.tell())
        part.replace(target)
    except urllib.error.HTTPError as error:
        error.close()
        raise ToolError.from_status(error.code, f"{url}: {error.code} {error.reason}") from None
    except _NETWORK_ERRORS as error:  # an error of the file itself is raised as it is
        raise ToolError.unavailable(f"{url}: {error}", code="transfer") from error
    finally:
        part.unlink(missing_ok=True)
    return target


def _check_complete(response: Any, got: int) -> None:
    expected = _content_length(response)
    if expected is not None and got < expected:
        raise ToolError.unavailable(f"the transfer ended at {got} of {expected} bytes", code="transfer")


def _chunks(response: Any) -> Any:
    """The chunks of a response, by the method that its library has for them."""
    stream = getattr(response, "stream", None)
    is_async = hasattr(stream, "__aiter__") and not hasattr(stream, "__iter__")
    for name, args in (("aiter_bytes", ()), ("iter_bytes", ()), ("iter_content", (CHUNK_BYTES,))):
        if hasattr(response, name) and (name != "aiter_bytes" or is_async):
            return getattr(response, name)(*args)
    content = getattr(response, "content", None)
    if hasattr(content, "iter_chunked"):
        return content.iter_chunked(CHUNK_BYTES)
    if hasattr(response, "read"):
        return iter(
            lambda: response.read1(CHUNK_BYTES) if hasattr(response, "read1") else response.read(CHUNK_BYTES),
            b"",
        )
    return response


def _content_length(response: Any) -> int | None:
    headers = getattr(response, "headers", None)
    if headers is None or headers.get("Transfer-Encoding"):  # it overrides a length, RFC 9112 section 6.3
        return None
    length = headers.get("Content-Length")
    return int(length) if length is not None and str(length).isdecimal() else None


def _is_decompressed(response: Any) -> bool:
    """Whether its chunks are decompressed, and the bytes that came over the network are not counted."""
    headers = getattr(response, "headers", None)
    packed = headers is not None and headers.get("Content-Encoding", "identity") != "identity"
    return packed and not hasattr(response, "num_bytes_downloaded") and not isinstance(response, HTTPResponse)


def _track(source: Any, response: Any, total: int | None, message: str | None) -> Iterator[bytes]:
    got = 0
    report(0, total, message)
    for chunk in source:
        ctx = current_context.get()
        if ctx is not None and ctx._stopped is not None:
            raise ToolError.cancelled(ctx._stopped)
        yield chunk
        got += len(chunk)
        report(_bytes_received(response, got), total, message)


async def _track_async(
    source: Any, response: Any, total: int | None, message: str | None
) -> AsyncIterator[bytes]:
    got = 0
    report(0, total, message)
    async for chunk in source:
        yield chunk
        got += len(chunk)
        report(_bytes_received(response, got), total, message)


def _bytes_received(response: Any, got: int) -> int:
    """The bytes that came over the network, where the library counts them; else those of the chunks."""
    return getattr(response, "num_bytes_downloaded", got)
