"""Where a browser comes back to: one visit, with the right state (U7)."""

import asyncio
import socket
from urllib.parse import urlsplit

import pytest

from afoot.errors import CallerError, ToolError
from afoot.providers.upstream.oauth import login
from afoot.providers.upstream.oauth.login import MAX_VISITORS, RedirectListener
from tests.providers.upstream.oauth_server import browse


async def visit(url: str) -> int:
    """The status that a browser gets."""
    return (await asyncio.to_thread(browse, url))[0]


async def test_only_the_first_visit_with_the_right_state_counts() -> None:
    """U7, S1: any page of the web can send a browser here; none knows the state."""
    async with RedirectListener() as back:
        assert await visit(f"{back.redirect}?code=early&state=") == 400
        back.expect("right")
        assert await visit(f"{back.redirect}?code=bad&state=wrong") == 400
        assert await visit(f"{back.redirect}?code=bad") == 400
        assert await visit(f"{back.redirect}?error=access_denied&state=wrong") == 400
        assert await visit(back.redirect.replace("callback", "favicon.ico")) == 404
        assert await visit(f"{back.redirect}?code=good&state=right&iss=http://a") == 200
        assert await visit(f"{back.redirect}?code=second&state=right") == 410
        found = await back.wait()
        assert (found.code, found.state, found.issuer) == ("good", "right", "http://a")
        assert "good" not in repr(found)
    with pytest.raises(OSError, match="refused"):
        await visit(back.redirect)


async def test_a_refusal_is_told_without_anything_that_runs() -> None:
    """U7, S1: what others write in an address is text."""
    async with RedirectListener() as back:
        back.expect("s")
        _, page = await asyncio.to_thread(browse, f"{back.redirect}?error=%3Cb%3E&state=s")
        assert "<b>" not in page
        with pytest.raises(ToolError, match="the login was refused: <b>"):
            await back.wait()


async def test_nobody_is_waited_for_longer_than_that(monkeypatch: pytest.MonkeyPatch) -> None:
    """U7: a window that was closed leaves nothing behind."""
    monkeypatch.setattr(login, "LOGIN_S", 0.01)
    async with RedirectListener() as back:
        with pytest.raises(ToolError, match="nobody logged in"):
            await back.wait()


@pytest.mark.parametrize(
    "line", [b"GET http://[ HTTP/1.1", b"GET", b"\xff\xff \xff \xff", b"POST /callback HTTP/1.1"]
)
async def test_a_broken_request_is_answered_and_left(line: bytes) -> None:
    """U7, S5: an address that cannot be read was an error of ours, and its connection stayed."""
    async with RedirectListener() as back:
        reader, writer = await asyncio.open_connection("127.0.0.1", urlsplit(back.redirect).port)
        writer.write(line + b"\r\n\r\n")
        assert (await asyncio.wait_for(reader.read(), 5)).startswith(b"HTTP/1.1 404 ")
        writer.close()


async def test_silent_visitors_keep_no_browser_away() -> None:
    """U7, S5: the oldest of them gives way."""
    async with RedirectListener() as back:
        back.expect("s")
        port = urlsplit(back.redirect).port
        silent = [await asyncio.open_connection("127.0.0.1", port) for _ in range(MAX_VISITORS + 8)]
        assert await visit(f"{back.redirect}?code=good&state=s") == 200
        assert await asyncio.wait_for(silent[0][0].read(), 5) == b""
        for _, writer in silent:
            writer.close()


async def test_a_port_can_be_given_and_the_last_one_is_used_again() -> None:
    """U7: an authorization server may insist on the address that it knows."""
    async with RedirectListener() as first:
        port = int(first.redirect.split(":")[2].split("/")[0])
        with pytest.raises(CallerError, match=f"port {port} cannot be used"):
            async with RedirectListener(port):
                pass
        async with RedirectListener(0, first.redirect) as other:
            assert other.redirect != first.redirect
    async with RedirectListener(0, first.redirect) as again:
        assert again.redirect == first.redirect


@pytest.mark.parametrize(
    "said", [b"", b"\r\n\r\n", b"GET\r\n\r\n", b"\xff" * 100_000, b"GET /callback?\xff\r\n\r\n"]
)
async def test_what_is_no_request_is_passed_over(said: bytes) -> None:
    """U7: the one who is waited for still comes."""
    async with RedirectListener() as back:
        back.expect("s")
        host, port = back.redirect.removeprefix("http://").split("/")[0].split(":")
        with socket.create_connection((host, int(port))) as pipe:
            pipe.sendall(said)
        assert await visit(f"{back.redirect}?code=c&state=s") == 200
