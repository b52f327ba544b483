"""Servers that nobody here wrote, behind a gateway: everything, files, and two that drive a browser."""

import asyncio
import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import mcp_types as types
import pytest
from mcp import Client, MCPError

from tests.e2e import npm
from tests.e2e.gateway import until
from tests.e2e.gateway_with_servers import Front, fronting
from tests.e2e.official_client import ERAS, Peer, Peers, Seen, accept, peers, text
from tests.e2e.processes import free_port, listening

pytestmark = pytest.mark.timeout(90)  # other people's programs take their time to start
EVERYTHING: Final = "@modelcontextprotocol/server-everything"
FILES: Final = "@modelcontextprotocol/server-filesystem"
# Every tool of `everything`, with arguments, and a part of its result.
TOOLS: Final[dict[str, tuple[dict[str, Any], str]]] = {
    "echo": ({"message": "x"}, "Echo: x"),
    "get-annotated-message": ({"messageType": "success"}, "Operation completed successfully"),
    "get-env": ({}, "PATH"),
    "get-resource-links": ({"count": 2}, "Here are 2 resource links"),
    "get-resource-reference": ({"resourceId": 1, "resourceType": "Text"}, "Returning resource reference"),
    "get-roots-list": ({}, "file:///srv-me"),
    "get-structured-content": ({"location": "Chicago"}, "temperature"),
    "get-sum": ({"a": 1, "b": 2}, "The sum of 1 and 2 is 3"),
    "get-tiny-image": ({}, "Here's the image you requested"),
    "gzip-file-as-resource": ({"name": "a.gz", "data": "data:text/plain,x", "outputType": "resource"}, ""),
    "simulate-research-query": ({"topic": "python", "ambiguous": True}, "Topic**: python"),
    "toggle-simulated-logging": ({}, "simulated"),
    "toggle-subscriber-updates": ({}, "simulated"),
    "trigger-elicitation-request": ({}, "declined"),
    "trigger-long-running-operation": ({"duration": 0.1, "steps": 2}, "Long running operation completed"),
    "trigger-sampling-request": ({"prompt": "the capital of France?"}, "Paris"),
    "trigger-url-elicitation": ({"url": "https://example.org/", "message": "?", "elicitationId": "e2"}, ""),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the file server may touch."""
    return tmp_path_factory.mktemp("files")


@pytest.fixture(scope="module")
def front(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Front]:
    """A gateway in front of everything twice, near on a pipe and far on HTTP, and of files."""
    port = free_port()
    command = npm.program(EVERYTHING, "streamableHttp")
    with ExitStack() as stack:
        stack.enter_context(listening(command, {**os.environ, "PORT": str(port)}, port))
        servers = {
            "near": npm.server(EVERYTHING, "stdio"),
            "far": {"url": f"http://127.0.0.1:{port}/mcp"},
            "files": npm.server(FILES, str(folder)),
        }
        yield stack.enter_context(fronting(tmp_path_factory.mktemp("front"), servers, own=()))


@pytest.fixture(scope="module")
def clients(front: Front) -> Iterator[Peers]:
    """Official clients, by era."""
    with peers({"http": front}) as found:
        for era in ERAS:
            peer = found("http", era)
            until(lambda peer=peer: len(peer.run(peer.client.list_tools).tools) > 40, "all tools", 30)
        yield found


@pytest.fixture(params=ERAS)
def peer(request: pytest.FixtureRequest, clients: Peers) -> Peer:
    """One of both."""
    return clients("http", request.param)


@pytest.fixture(params=["near", "far"])
def server(request: pytest.FixtureRequest) -> str:
    """Everything, on a pipe or on HTTP."""
    return str(request.param)


def test_every_tool_of_it_can_be_called(peer: Peer, server: str) -> None:
    """U9, U5: all 17, also the one that runs only as a task, by a client that knows no tasks."""
    listed = [tool.name for tool in peer.run(peer.client.list_tools).tools]
    assert len([name for name in listed if name.startswith(server)]) == len(TOOLS) == 17
    peer.reply = lambda message: types.ElicitResult(action="decline")
    for name, (arguments, said) in TOOLS.items():
        result = peer.call(f"{server}/{name}", **arguments)
        told = "\n".join(part.text for part in result.content if isinstance(part, types.TextContent))
        assert not result.is_error and said in told, (name, told)


def test_a_task_of_it_is_a_call_with_progress_and_questions(peer: Peer, server: str) -> None:
    """U9: the status of the task is shown as it changes, its question is asked, and its result comes back."""
    seen: Seen = []
    peer.reply = lambda message: accept(interpretation="snake")
    result = peer.call(f"{server}/simulate-research-query", seen, topic="python", ambiguous=True)
    assert "Clarification**: snake" in text(result)
    assert len(peer.asked) == 1 and "multiple interpretations" in peer.asked[0]
    stages = [message for _, _, message in seen]
    # A stage takes a second, and so does the server's poll interval: between two polls one may pass unseen.
    later = {"Analyzing content...", "Synthesizing findings...", "Generating report..."}
    assert "Gathering sources..." in stages and later & set(stages)


def test_a_long_operation_shows_live_progress(peer: Peer, server: str) -> None:
    """U6, P6: each step as it is made, and long before the result."""
    seen: Seen = []
    result = peer.call(f"{server}/trigger-long-running-operation", seen, duration=1, steps=4)
    assert "Long running operation completed" in text(result)
    until(lambda: len(seen) >= 4, "four steps")
    assert seen == [(n, 4, None) for n in range(1, 5)]


def test_it_asks_the_person_at_the_client(peer: Peer, server: str) -> None:
    """Q3, Q2: its form with a dozen fields, and a page to visit, reach the client, and the answers it."""
    peer.reply = lambda message: accept(name="Ada", check=True, integer=7)
    asked = peer.call(f"{server}/trigger-elicitation-request")
    assert peer.asked == ["Please provide inputs for the following fields:"]
    said = "\n".join(part.text for part in asked.content if isinstance(part, types.TextContent))
    assert "- Name: Ada" in said and "- Favorite Integer: 7" in said
    peer.reply = lambda message: types.ElicitResult(action="decline")
    assert "declined" in text(peer.call(f"{server}/trigger-elicitation-request"))


def test_it_has_a_page_visited(peer: Peer, server: str) -> None:
    """Q2: the address goes to the client, which says that the person went there."""
    peer.reply = lambda message: types.ElicitResult(action="accept")
    result = peer.call(
        f"{server}/trigger-url-elicitation",
        url="https://example.org/pay",
        message="Pay there",
        elicitationId="e1",
    )
    assert peer.asked == ["Pay there"] and "https://example.org/pay" in text(result)


def test_it_uses_the_clients_model(peer: Peer, server: str) -> None:
    """Q3: its sampling request is answered by the client's model."""
    result = peer.call(f"{server}/trigger-sampling-request", prompt="the capital of France?", maxTokens=10)
    assert "Paris" in text(result)


def test_its_results_pass_as_they_are(peer: Peer, server: str) -> None:
    """U5: structured content, images, links to resources."""
    weather = peer.call(f"{server}/get-structured-content", location="Chicago")
    assert set(weather.structured_content or {}) == {"temperature", "conditions", "humidity"}
    image = peer.call(f"{server}/get-tiny-image").content[1]
    assert isinstance(image, types.ImageContent) and image.mime_type == "image/png"
    links = peer.call(f"{server}/get-resource-links", count=3).content
    assert sum(isinstance(part, types.ResourceLink) for part in links) == 3


def test_what_it_has_besides_tools_passes(peer: Peer) -> None:
    """U5: resources, templates, prompts and completion."""
    client = peer.client
    templates = peer.run(client.list_resource_templates).resource_templates
    assert "demo://resource/dynamic/text/{resourceId}" in {one.uri_template for one in templates}
    (found,) = peer.run(lambda: client.read_resource("demo://resource/dynamic/text/7")).contents
    assert isinstance(found, types.TextResourceContents) and found.text.startswith("Resource 7")
    prompts = {prompt.name for prompt in peer.run(client.list_prompts).prompts}
    name = next(name for name in sorted(prompts) if name.endswith("completable-prompt"))
    chosen = {"department": "Sales", "name": "Eve"}
    said = peer.run(lambda: client.get_prompt(name, chosen)).messages[0].content
    assert isinstance(said, types.TextContent) and "promote Eve to the head of the Sales" in said.text
    ref = types.PromptReference(name=name)
    completed = peer.run(lambda: client.complete(ref, {"name": "department", "value": "S"}))
    assert completed.completion.values == ["Sales", "Support"]


@pytest.mark.filterwarnings("ignore:The logging capability is deprecated")
@pytest.mark.parametrize("era", ERAS)
def test_its_log_passes(front: Front, server: str, era: str) -> None:
    """U5: what a tool logs while it runs reaches a client that wants it; its level is drawn by lot."""
    said: list[str] = []

    async def heard(params: types.LoggingMessageNotificationParams) -> None:
        said.append(str(params.data))

    async def listen() -> None:
        mode = "legacy" if era == "legacy" else "2026-07-28"
        async with Client(front.url, mode=mode, logging_callback=heard, log_level="debug") as client:
            if era == "legacy":
                await client.set_logging_level("debug")
            for _ in range(40):  # each second time it is switched on, and says something at once
                await client.call_tool(f"{server}/toggle-simulated-logging")
                if said:
                    break

    asyncio.run(asyncio.wait_for(listen(), 20))
    assert said and "message" in said[0]


def test_files_are_listed_read_and_written(peer: Peer, folder: Path) -> None:
    """U5, A1: it works in its folder; what it calls destructive is asked about first."""
    (folder / "note.txt").write_text("steadfast")
    assert "[FILE] note.txt" in text(peer.call("list_directory", path=str(folder)))
    assert text(peer.call("read_text_file", path=str(folder / "note.txt"))) == "steadfast"
    written = folder / f"{peer.era}.txt"
    peer.reply = lambda message: accept(decision="run")
    peer.call("write_file", path=str(written), content="tin")
    assert written.read_text() == "tin" and "write_file" in peer.asked[0]
    peer.reply = lambda message: types.ElicitResult(action="decline")
    assert peer.call("write_file", path=str(written), content="lead").is_error
    assert written.read_text() == "tin"


def test_a_file_outside_its_folder_is_its_own_error(peer: Peer) -> None:
    """U5: what a server says of a failure reaches the model in its words."""
    result = peer.call("read_text_file", path="/etc/hostname")
    assert result.is_error and "outside allowed directories" in text(result)


def test_what_is_missing_is_told(peer: Peer) -> None:
    """E4, E5: a wrong argument by its name before the server sees it, a wrong name with the nearest."""
    result = peer.call("read_text_file", paths="x")
    assert result.is_error and "arguments.path: missing" in text(result)
    with pytest.raises(MCPError, match="files/read_text_file|read_text_file"):
        peer.call("read_text_fil", path="x")
