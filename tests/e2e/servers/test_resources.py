"""Official clients get what an SDK server, or the gateway itself, has besides tools, in both eras."""

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any, Final

import mcp_types as types
import pytest
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.session import ClientRequestContext
from mcp.client.subscriptions import PromptsListChanged, ResourceUpdated

from tests.conformance.gateway_setup import Arrangement, serving
from tests.conformance.suite import HERE, ROOT
from tests.conformance.upstream import WATCHED
from tests.e2e.official_client import ERAS, accept

WITHIN_S: Final = 15.0
Place = tuple[str, Any]  # the era behind, and how to reach the gateway

pytestmark = pytest.mark.timeout(90)


@pytest.fixture(scope="module", params=["auto", "2025-11-25", "stdio", "own"])
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A gateway on HTTP in front of a server of either era, or one on stdio that each client starts.

    The one that is called "own" has the same things as functions of its own, and no server behind it.
    """
    folder = tmp_path_factory.mktemp("shelf")
    if request.param == "own":
        with serving(Arrangement(own=True, carrier="none"), folder) as url:
            yield "auto", url
        return
    if request.param != "stdio":
        with serving(Arrangement(own=False, era=request.param), folder) as url:
            yield request.param, url
        return
    words = ["-m", "tests.conformance.upstream", "", "tools"]
    config = folder / "afoot.toml"
    config.write_text(f'[servers.everything]\ncommand = "{sys.executable}"\nargs = {words}\ncwd = "{ROOT}"\n')
    started = ["-m", "afoot", "serve", str(HERE / "fixture_rest.py"), "--stdio", "--config", str(config)]
    environment = {"AFOOT_HOME": str(folder / "home"), "PYTHONPATH": str(ROOT), "AFOOT_STORE": ":memory:"}
    yield "auto", StdioServerParameters(command=sys.executable, args=started, env=environment)


class Visitor:
    """A client and what it was told and asked."""

    def __init__(self, where: Any, era: str) -> None:
        self.era = era
        self.asked: list[str] = []
        self.told: list[object] = []
        self.news = asyncio.Event()
        self.client = Client(
            where,
            mode="legacy" if era == "legacy" else "2026-07-28",
            elicitation_callback=self._elicited,
            message_handler=self._heard,
        )

    async def hears(self, what: Callable[[object], bool]) -> None:
        """Wait until it has been told this."""
        async with asyncio.timeout(WITHIN_S):
            while not any(what(one) for one in self.told):
                self.news.clear()
                await self.news.wait()

    def note(self, news: object) -> None:
        """It was told something."""
        self.told.append(news)
        self.news.set()

    async def _elicited(
        self, context: ClientRequestContext, params: types.ElicitRequestParams
    ) -> types.ElicitResult:
        self.asked.append(params.message)
        return accept(context="a test")

    async def _heard(self, message: object) -> None:
        self.note(message)


@asynccontextmanager
async def visiting(place: Place, era: str) -> AsyncIterator[Visitor]:
    """A client that is connected, and sees what is there."""
    visitor = Visitor(place[1], era)
    async with visitor.client:
        async with asyncio.timeout(WITHIN_S):  # the server behind may still be starting
            while not (await visitor.client.list_prompts(cache_mode="bypass")).prompts:  # noqa: ASYNC110
                await asyncio.sleep(0.1)
        yield visitor


def visit(place: Place, era: str, work: Callable[[Visitor], Awaitable[None]]) -> None:
    """Do this as a client of this era."""

    async def run() -> None:
        async with visiting(place, era) as visitor, asyncio.timeout(60):
            await work(visitor)

    asyncio.run(run())


@pytest.mark.parametrize("era", ERAS)
def test_everything_that_the_server_has_can_be_listed_and_had(place: Place, era: str) -> None:
    """U5, F3: prompts, resources, templates and completion, as the server gives them."""

    async def work(visitor: Visitor) -> None:
        client = visitor.client
        prompts = {prompt.name for prompt in (await client.list_prompts()).prompts}
        assert {"test_simple_prompt", "test_prompt_with_arguments"} <= prompts
        assert WATCHED in {one.uri for one in (await client.list_resources()).resources}
        [template] = (await client.list_resource_templates()).resource_templates
        found = await client.read_resource(template.uri_template.replace("{id}", "7"))
        assert isinstance(found.contents[0], types.TextResourceContents)
        assert "Data for ID: 7" in found.contents[0].text
        got = await client.get_prompt("test_prompt_with_arguments", {"arg1": "one", "arg2": "two"})
        assert isinstance(got.messages[0].content, types.TextContent)
        assert "arg1='one', arg2='two'" in got.messages[0].content.text
        ref = types.PromptReference(name="test_prompt_with_arguments")
        completed = await client.complete(ref, {"name": "arg1", "value": "par"})
        assert completed.completion.values == ["paris", "park", "party"]
        for wrong, code in (("test://none", -32602 if era != "legacy" else -32002),):
            with pytest.raises(MCPError) as caught:
                await client.read_resource(wrong)
            assert caught.value.error.code == code
        with pytest.raises(MCPError, match="nearest: test_simple_prompt"):
            await client.get_prompt("test_simple_prompts")

    visit(place, era, work)


@pytest.mark.parametrize("era", ERAS)
def test_a_prompt_that_asks_is_answered(place: Place, era: str) -> None:
    """U5, Q3, F3: in the way of each side's era; only a new client cannot be asked by an old server."""

    async def work(visitor: Visitor) -> None:
        asking = visitor.client.get_prompt("test_input_required_result_prompt")
        if place[0] != "auto" and era != "legacy":
            with pytest.raises(MCPError, match="nobody to ask"):
                await asking
            return
        got = await asking
        assert visitor.asked == ["What context?"]
        assert isinstance(got.messages[0].content, types.TextContent)
        assert "a test" in got.messages[0].content.text

    visit(place, era, work)


@pytest.mark.filterwarnings("ignore:resources/:mcp.MCPDeprecationWarning")
@pytest.mark.parametrize("era", ERAS)
def test_a_client_is_told_of_changes(place: Place, era: str) -> None:
    """U5, F3: of the resource that it watches and of the lists, however the server tells."""

    async def trigger(client: Client) -> None:
        await client.call_tool("test_trigger_resource_change")
        await client.call_tool("test_trigger_prompt_change")

    async def older(visitor: Visitor) -> None:
        await visitor.client.subscribe_resource(WATCHED)
        await trigger(visitor.client)
        await visitor.hears(lambda one: isinstance(one, types.ResourceUpdatedNotification))
        await visitor.hears(lambda one: isinstance(one, types.PromptListChangedNotification))
        await visitor.client.unsubscribe_resource(WATCHED)

    async def newer(visitor: Visitor) -> None:
        client = visitor.client
        async with client.listen(prompts_list_changed=True, resource_subscriptions=[WATCHED]) as stream:
            assert stream.honored.resource_subscriptions == [WATCHED]
            await trigger(client)
            found = [await anext(stream), await anext(stream)]
        assert {type(one) for one in found} == {ResourceUpdated, PromptsListChanged}

    visit(place, era, older if era == "legacy" else newer)
