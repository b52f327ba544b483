"""Bad days of HTTP itself: redirects, sizes, servers that are gone, and what is no answer."""

import asyncio

import pytest

from afoot.config.settings import Server
from afoot.errors import RunnerDied, ToolError
from afoot.providers.upstream import reconnect
from afoot.providers.upstream.provider import ServerOptions, Upstream
from tests.providers.fake_run import ScriptedRun, text_of, until
from tests.providers.upstream.raw_http_server import Asked, Reply, site, text
from tests.providers.upstream.started_servers import opened, run_tool
from tests.providers.upstream.transport.test_http import modern, progress


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests do not wait between attempts."""
    monkeypatch.setattr(reconnect, "BACK_OFF_S", (0.01, 0.02))


@pytest.mark.parametrize("status", [307, 308])
async def test_a_redirect_within_the_origin_is_followed(status: int) -> None:
    """S1: the same message to the same place, as with a slash at the end."""

    async def answer(asked: Asked, reply: Reply) -> None:
        if asked.path == "/mcp":
            await reply.status(status, location="/mcp/")
        elif not await modern(asked, reply):
            await reply.json(text(asked, "gone"))

    async with site(answer) as place, opened(Server(url=place.url)) as upstream:
        assert text_of(await run_tool(upstream, "go")) == "gone"


@pytest.mark.parametrize(("status", "host"), [(307, "localhost"), (301, "127.0.0.1"), (303, "127.0.0.1")])
async def test_a_redirect_to_another_place_is_not(status: int, host: str) -> None:
    """S1: headers and arguments are for the configured server; the text says where it would lead."""

    async def answer(asked: Asked, reply: Reply) -> None:
        if not await modern(asked, reply):
            await reply.status(status, location=place.url.replace("127.0.0.1", host) + "2")

    async with site(answer) as place, opened(Server(url=place.url)) as upstream:
        with pytest.raises(ToolError, match=rf"redirect to http://{host}"):
            await run_tool(upstream, "go")
        assert len(place.calls("tools/call")) == 1


@pytest.mark.parametrize("streamed", [False, True])
async def test_an_answer_over_the_limit_ends_its_call(streamed: bool) -> None:
    """G3: over HTTP it is known whose it was."""

    async def answer(asked: Asked, reply: Reply) -> None:
        if await modern(asked, reply):
            return
        if streamed:
            await reply.stream()
            await reply.event(text(asked, "x" * 500_000))
        else:
            await reply.json(text(asked, "x" * 500_000))

    options = ServerOptions(max_bytes=100_000)
    async with site(answer) as place, opened(Server(url=place.url), options=options) as upstream:
        with pytest.raises(ToolError, match="more than 100000 bytes") as caught:
            await run_tool(upstream, "go")
        assert caught.value.code == "too_large"


@pytest.mark.parametrize("streamed", [False, True])
async def test_fifty_megabytes_arrive_over_http(streamed: bool) -> None:
    """G3: large, but under the limit."""

    async def answer(asked: Asked, reply: Reply) -> None:
        if await modern(asked, reply):
            return
        if streamed:
            await reply.stream()
            await reply.event(text(asked, "x" * 50_000_000))
        else:
            await reply.json(text(asked, "x" * 50_000_000))

    async with site(answer) as place, opened(Server(url=place.url)) as upstream:
        assert len(text_of(await run_tool(upstream, "go"))) == 50_000_000


async def test_a_server_that_is_gone_had_not_begun_and_is_reached_again_later() -> None:
    """U4: nothing was sent, so the call may be made again."""

    async def answer(asked: Asked, reply: Reply) -> None:
        if not await modern(asked, reply):
            await reply.json(text(asked, "gone"))

    async with site(answer) as place, opened(Server(url=place.url)) as upstream:
        assert place.server is not None
        place.server.close()
        with pytest.raises(RunnerDied, match="cannot be reached") as caught:
            await run_tool(upstream, "go")
        assert not caught.value.began
        assert upstream.start("go", "a") is not None
        with pytest.raises(ToolError, match="cannot be reached"):
            await upstream.open()
        assert upstream.state == "failed"


@pytest.mark.parametrize(
    ("status", "kind", "body", "said"),
    [
        (202, "", b"", "HTTP status 202"),
        (200, "text/html", b"<html>", "text/html"),
        (200, "application/json", b"{}", "no answer that could be read"),
        (200, "application/json", b"nonsense", "no answer that could be read"),
        (
            200,
            "application/json",
            b'{"jsonrpc":"2.0","id":99999,"result":{}}',
            "no answer that could be read",
        ),
    ],
)
async def test_what_is_no_answer_ends_the_call(status: int, kind: str, body: bytes, said: str) -> None:
    """E1: at once, and not at the limit."""

    async def answer(asked: Asked, reply: Reply) -> None:
        if not await modern(asked, reply):
            await reply.status(status, body, content_type=kind)

    async with site(answer) as place, opened(Server(url=place.url)) as upstream:
        with pytest.raises(ToolError, match=said):
            await run_tool(upstream, "go")


async def test_progress_of_another_call_on_this_calls_stream_reaches_nobody() -> None:
    """B7: a stream speaks only for its own request."""
    calls: list[Asked] = []

    async def answer(asked: Asked, reply: Reply) -> None:
        if await modern(asked, reply):
            return
        calls.append(asked)
        await reply.stream()
        await reply.event(progress(calls[0], len(calls)))
        if len(calls) == 2:
            await reply.event(text(asked, "gone"))
        await asyncio.sleep(30)

    async with site(answer) as place, opened(Server(url=place.url)) as upstream:
        first, second = ScriptedRun(), ScriptedRun()
        hanging = asyncio.create_task(run_tool(upstream, "go", first))
        await until(lambda: first.readings)
        assert text_of(await run_tool(upstream, "go", second)) == "gone"
        assert (len(first.readings), second.readings) == (1, [])
        assert upstream.counted == {"foreign_progress": 1}
        hanging.cancel()


async def test_closing_ends_the_calls_that_are_under_way() -> None:
    """X1: they are told that it was closed, and are not cancelled."""

    async def answer(asked: Asked, reply: Reply) -> None:
        if not await modern(asked, reply):
            await reply.stream()
            await reply.event(progress(asked, 1))
            await asyncio.sleep(30)

    async with site(answer) as place:
        upstream = Upstream("raw", Server(url=place.url))
        await upstream.open()
        run = ScriptedRun()
        task = asyncio.create_task(run_tool(upstream, "go", run))
        await until(lambda: run.readings)
        await upstream.close()
        with pytest.raises(RunnerDied, match="was closed"):
            await task
