"""Where a debugging port may be, and what is said when nobody is there."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from afoot.config.settings import ConfigError
from afoot.providers.browser.cdp.connection import Address, parse_address
from tests.e2e.processes import free_port


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("http://127.0.0.1:9222", Address("127.0.0.1", 9222)),
        ("http://localhost:9222/", Address("localhost", 9222)),
        ("http://[::1]:9222", Address("::1", 9222)),
        ("ws://127.0.0.1:9222/devtools/browser/x", Address("127.0.0.1", 9222, "/devtools/browser/x")),
    ],
)
def test_an_address_on_this_machine_is_taken(text: str, address: Address) -> None:
    """B5: as Chrome prints it, or only the port."""
    assert parse_address(text) == address


@pytest.mark.parametrize("text", ["http://192.168.1.7:9222", "ws://example.com:9222/devtools/browser/x"])
def test_another_machine_is_refused(text: str) -> None:
    """B5: whoever reaches the port controls the browser, so it must be here."""
    with pytest.raises(ConfigError, match="on this machine"):
        parse_address(text)


@pytest.mark.parametrize(
    "text",
    ["9222", "http://127.0.0.1", "https://127.0.0.1:9222", "ws://127.0.0.1:9222", "http://127.0.0.1:x"],
)
def test_what_is_no_address_is_said_to_be_none(text: str) -> None:
    """B5: the text says what to write."""
    with pytest.raises(ConfigError, match=r"^cdp "):
        parse_address(text)


async def test_nobody_there_says_how_to_start_a_browser() -> None:
    """B5: Chrome 136 and later ignore the port on the default profile."""
    with pytest.raises(ConnectionError, match=r"no browser at .*--user-data-dir.*Chrome 136"):
        await Address("127.0.0.1", free_port()).dial()


@pytest.fixture(params=["{}", "[1]", "<html>", '{"webSocketDebuggerUrl": 7}'])
def other_program(request: pytest.FixtureRequest) -> Iterator[int]:
    """A web server that is no browser, on a port."""

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(str(request.param).encode())

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield server.server_address[1]
    server.shutdown()
    server.server_close()
    thread.join()


async def test_another_program_on_the_port_is_no_browser(other_program: int) -> None:
    """B5: it is said, and tried again later."""
    with pytest.raises(ConnectionError, match="no browser at"):
        await Address("127.0.0.1", other_program).dial()
