"""What is kept of a server's words."""

import sys

from afoot.config.settings import Server, Settings
from afoot.core.redaction import REDACTED_TEXT, Redactor
from afoot.gateway import Gateway
from afoot.providers.upstream.transport.server_log import ServerLog

SAYS = "import os, sys; print('starting with', os.environ['SHOP_TOKEN'], 'password=hunter2', file=sys.stderr)"


def test_what_is_heard_and_said_of_a_server_is_clean() -> None:
    """S4: its own words, and ours."""
    redactor = Redactor()
    redactor.add_named_secrets({"SHOP_TOKEN": "abcdefgh123"})
    record = ServerLog("shop", redactor.text)
    record.add_line("with abcdefgh123")
    record.note("password=hunter2")
    assert record.last_words == f"with {REDACTED_TEXT}"
    assert [text for _, text in record.logs] == [f"with {REDACTED_TEXT}", f"afoot: password={REDACTED_TEXT}"]


async def test_the_last_words_of_a_server_have_none_of_its_secrets() -> None:
    """S4: the value of its variable, in its log and in why it failed."""
    server = Server(command=sys.executable, args=["-c", SAYS], env={"SHOP_TOKEN": "abcdefgh123"})
    settings = Settings(store=":memory:", servers={"shop": server})
    async with Gateway(settings=settings) as gateway:
        await gateway.servers.wait_until_opened(20)
        shop = gateway.servers.get("shop")
        said = "\n".join([shop.error, *(text for _, text in shop.connection.logs)])
        assert f"starting with {REDACTED_TEXT} password={REDACTED_TEXT}" in said
        assert "abcdefgh123" not in said and "hunter2" not in said
