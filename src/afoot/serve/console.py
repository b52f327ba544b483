"""The web console as it is served: one public page without data, and exactly the files that belong to it."""

from functools import cache
from hashlib import sha256
from pathlib import Path

from msgspec import Struct

from afoot.serve.access.guard import Denied, Guard
from afoot.serve.mcp.asgi import Scope, Send, header

FOLDER = Path(__file__).parents[1] / "web"
ASSET_PREFIX = "/console/"
SHELL = f"{ASSET_PREFIX}index.html"
# The first part of every path that the console's own router knows.
VIEWS = frozenset(
    ("", "live", "calls", "history", "inbox", "tools", "servers", "tabs", "cluster", "resources", "prompts")
)
CONTENT_TYPES = {
    ".html": b"text/html; charset=utf-8",
    ".js": b"text/javascript; charset=utf-8",
    ".css": b"text/css; charset=utf-8",
    ".svg": b"image/svg+xml",
    ".png": b"image/png",
}
# On every response of the gateway: a browser runs, loads and frames nothing that is not our own.
SECURITY_HEADERS = (
    ("content-security-policy",
     "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self'; "
     "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; "
     "trusted-types 'none'"),
    ("x-frame-options", "DENY"),
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-opener-policy", "same-origin"),
)  # fmt: skip


class Asset(Struct, frozen=True):
    """A file of the console."""

    kind: bytes
    body: bytes
    etag: bytes


def find_asset(path: str) -> Asset | None:
    """The file at a path; None if the path is not the console's."""
    if path.startswith(ASSET_PREFIX):
        return assets().get(path)
    return assets().get(SHELL) if path.split("/")[1] in VIEWS else None


@cache
def assets() -> dict[str, Asset]:
    """Every file by its path, read once: no other file is ever read from the disk."""
    files = sorted(file for file in FOLDER.rglob("*") if file.suffix in CONTENT_TYPES and file.is_file())
    return {ASSET_PREFIX + file.relative_to(FOLDER).as_posix(): _asset(file) for file in files}


async def serve_asset(asset: Asset, guard: Guard, scope: Scope, send: Send) -> None:
    """Answer with a file. Everybody may read it at our own address, but no other site's page may."""
    method = scope["method"]
    try:
        guard.check_public(scope)
        if method not in ("GET", "HEAD"):
            raise Denied(405, f"{method} {scope['path']}: the method must be GET or HEAD")
    except Denied as denied:
        more = [(b"allow", b"GET, HEAD")] if denied.status == 405 else []
        body = f"{denied}\n".encode()
        await _answer(send, denied.status, [(b"content-type", b"text/plain; charset=utf-8"), *more], body)
        return
    head = [(b"etag", asset.etag), (b"cache-control", b"no-cache")]
    if _is_known(asset, scope):
        await _answer(send, 304, head, None)
        return
    if method == "HEAD":
        # `CoalescingTransport` holds a head back until its body comes, and here none comes.
        head.append((b"connection", b"close"))
    await _answer(send, 200, [(b"content-type", asset.kind), *head], asset.body)


async def _answer(send: Send, status: int, head: list[tuple[bytes, bytes]], body: bytes | None) -> None:
    length = [] if body is None else [(b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": status, "headers": [*head, *length]})
    await send({"type": "http.response.body", "body": body or b""})


def _is_known(asset: Asset, scope: Scope) -> bool:
    """Whether the asker has this very file."""
    sent = header(scope, b"if-none-match") or b""
    tags = [tag.strip().removeprefix(b"W/") for tag in sent.split(b",")]
    return asset.etag in tags or tags == [b"*"]


def _asset(file: Path) -> Asset:
    body = file.read_bytes()
    return Asset(CONTENT_TYPES[file.suffix], body, b'"%s"' % sha256(body).hexdigest()[:20].encode())
