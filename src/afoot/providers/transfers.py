"""Bytes of an HTTP transfer as reports (P10): of a response that somebody opened, or a whole download."""

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
from afoot.providers.beside import Stop, beside
from afoot.providers.context import current
from afoot.providers.reporting import report

CHUNK: Final = 65_536
SILENCE_S: Final = 30.0  # of the other side, before it is given up
_NETWORK: Final = (urllib.error.URLError, HTTPException, ConnectionError, TimeoutError, SSLError)


def track_bytes(response: Any, total: int | None = None, message: str | None = None) -> Any:
    """The chunks of a response, each reported once it is done with: of httpx, requests, aiohttp or urllib.

    An async iterator if the response is one, else a plain one. The total is its Content-Length.
    """
    if total is None and not _is_unpacked(response):
        total = _length(response)
    source = _chunks(response)
    if hasattr(source, "__aiter__"):
        return _each_async(source, response, total, message)
    return _each(source, response, total, message)


def download(url: str, path: str | os.PathLike[str], message: str | None = None) -> Any:
    """Fetch a file over HTTP, with its bytes as reports; gives its path. Awaited, or blocking elsewhere.

    The file appears once it is whole. Raises ToolError by the status that came, or if nothing comes.
    """
    if not url.startswith(("http://", "https://")):
        raise ToolError.validation(f"{url!r} is no http or https address")
    target = Path(path)
    return beside(lambda ctx, stop: _download(url, target, message or target.name, stop))


def _download(url: str, target: Path, message: str, stop: Stop) -> Path:
    part = target.with_name(f"{target.name}.{secrets.token_hex(4)}.part")  # somebody else may fetch it, too
    request = urllib.request.Request(url, headers={"User-Agent": "afoot"})
    try:
        with urllib.request.urlopen(request, timeout=SILENCE_S) as response, part.open("wb") as file:
            for chunk in track_bytes(response, message=message):
                stop.check()
                file.write(chunk)
            _check_whole(response, file.tell())
        part.replace(target)
    except urllib.error.HTTPError as error:
        error.close()
        raise ToolError.from_status(error.code, f"{url}: {error.code} {error.reason}") from None
    except _NETWORK as error:  # what is wrong with the file is said as it is
        raise ToolError.unavailable(f"{url}: {error}", code="transfer") from error
    finally:
        part.unlink(missing_ok=True)
    return target


def _check_whole(response: Any, got: int) -> None:
    expected = _length(response)
    if expected is not None and got < expected:
        raise ToolError.unavailable(f"the transfer ended at {got} of {expected} bytes", code="transfer")


def _chunks(response: Any) -> Any:
    """What the response's library calls its chunks."""
    stream = getattr(response, "stream", None)
    is_async = hasattr(stream, "__aiter__") and not hasattr(stream, "__iter__")
    for name, args in (("aiter_bytes", ()), ("iter_bytes", ()), ("iter_content", (CHUNK,))):
        if hasattr(response, name) and (name != "aiter_bytes" or is_async):
            return getattr(response, name)(*args)
    content = getattr(response, "content", None)
    if hasattr(content, "iter_chunked"):
        return content.iter_chunked(CHUNK)
    if hasattr(response, "read"):
        return iter(
            lambda: response.read1(CHUNK) if hasattr(response, "read1") else response.read(CHUNK), b""
        )
    return response


def _length(response: Any) -> int | None:
    headers = getattr(response, "headers", None)
    if headers is None or headers.get("Transfer-Encoding"):  # which overrides a length, RFC 9112 section 6.3
        return None
    said = headers.get("Content-Length")
    return int(said) if said is not None and str(said).isdecimal() else None


def _is_unpacked(response: Any) -> bool:
    """Whether more chunks come out of it than its length says, and nobody counts what goes in."""
    headers = getattr(response, "headers", None)
    packed = headers is not None and headers.get("Content-Encoding", "identity") != "identity"
    return packed and not hasattr(response, "num_bytes_downloaded") and not isinstance(response, HTTPResponse)


def _each(source: Any, response: Any, total: int | None, message: str | None) -> Iterator[bytes]:
    got = 0
    report(0, total, message)
    for chunk in source:
        ctx = current.get()
        if ctx is not None and ctx._stopped is not None:
            raise ToolError.cancelled(ctx._stopped)
        yield chunk
        got += len(chunk)
        report(_raw(response, got), total, message)


async def _each_async(
    source: Any, response: Any, total: int | None, message: str | None
) -> AsyncIterator[bytes]:
    got = 0
    report(0, total, message)
    async for chunk in source:
        yield chunk
        got += len(chunk)
        report(_raw(response, got), total, message)


def _raw(response: Any, got: int) -> int:
    """What came over the wire: a response that is unpacked on the way gives more than its length."""
    return getattr(response, "num_bytes_downloaded", got)
