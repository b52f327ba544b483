"""Resources and prompts over the operator's API."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.gateway import serving
from tests.serve.api_client import Api

SERVED = '''
import asyncio
import afoot


@afoot.resource("note://{number}")
async def note(number: int, ctx: afoot.Context) -> str:
    """A note."""
    ctx.report(1, 1, "written")
    return f"note {number}"


@afoot.resource("note://{number}")
def shadowed(number: int) -> str:
    return ""


@afoot.resource("config://app")
def config() -> dict:
    return {"a": 1}


@afoot.prompt
def greet(name: str) -> str:
    """Greets."""
    return f"Greet {name}."
'''


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """The API of a gateway with resources and a prompt, and no tool."""
    folder: Path = tmp_path_factory.mktemp("resources")
    (folder / "served.py").write_text(SERVED)
    with serving(folder, tools=[folder / "served.py"]) as gateway:
        yield Api(gateway)


def test_resources_and_prompts_are_listed(api: Api) -> None:
    """F3: as MCP lists them, and whose they are; mistakes at load are named, and the health has them, too."""
    found = api.get("/api/resources").body
    assert [(one["uri"], one["server"]) for one in found["resources"]] == [("config://app", "local")]
    assert [one["uriTemplate"] for one in found["templates"]] == ["note://{number}"]
    assert found["subscriptions"] == []
    [problem] = found["problems"]
    assert "two templates are for the same URIs" in problem
    assert problem in api.get("/healthz").body["problems"]
    [prompt] = api.get("/api/prompts").body["prompts"]
    assert prompt["name"] == "greet" and prompt["arguments"] == [{"name": "name", "required": True}]


def test_a_resource_is_read_and_a_prompt_filled_in(api: Api) -> None:
    """F3: the answer is that of MCP."""
    read = api.post("/api/resources/read", {"uri": "note://7"})
    assert read.status == 200
    assert read.body == {"contents": [{"uri": "note://7", "mimeType": "text/plain", "text": "note 7"}]}
    got = api.post("/api/prompts/get", {"name": "greet", "arguments": {"name": "Ann"}})
    assert got.body["messages"] == [{"role": "user", "content": {"type": "text", "text": "Greet Ann."}}]


def test_a_read_may_be_followed_as_a_call_and_run_again(api: Api) -> None:
    """F3, H1: with `Prefer: respond-async` the answer is where the call is."""
    answer = api.post("/api/resources/read", {"uri": "note://8"}, prefer="respond-async")
    assert answer.status == 202 and answer.body["tool"] == "resource note://{number}"
    call = str(answer.body["id"])
    ended = api.ended(call)
    assert ended["outcome"] == "ok" and ended["progress"] == 1
    again = api.post(f"/api/calls/{call}/rerun", {})
    assert again.status == 202
    assert api.ended(str(again.body["id"]))["outcome"] == "ok"


@pytest.mark.parametrize(
    ("path", "body", "status", "told"),
    [
        ("/api/resources/read", {"uri": "config://ap"}, 400, "nearest: config://app"),
        ("/api/resources/read", {"uri": "note://x"}, 400, "uri: number: "),
        ("/api/resources/read", {"url": "note://1"}, 422, "url"),
        ("/api/prompts/get", {"name": "great"}, 400, "nearest: greet"),
        ("/api/prompts/get", {"name": "greet"}, 400, "arguments.name: Field required"),
    ],
)
def test_a_wrong_request_is_told_what_is_wrong(
    api: Api, path: str, body: object, status: int, told: str
) -> None:
    """F3, E4: with the nearest name."""
    answer = api.post(path, body)
    assert answer.status == status and told in answer.error["message"]
