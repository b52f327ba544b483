"""A library in two forms, and three clients in both eras: all see the same.

`library_fastmcp.py` is a server of FastMCP, unchanged; `library_afoot.py` is its port.
"""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import fastmcp
import mcp_types as types
import pytest
from fastmcp.client.elicitation import ElicitResult
from mcp import Client
from mcp.client.session import ClientRequestContext

from tests.e2e.clients.test_typescript_1 import RUN_S, modules, node
from tests.e2e.gateway import Gateway
from tests.e2e.gateway_with_servers import ROOT, fronting
from tests.e2e.npm import package

FOLDER: Final = Path(__file__).parent
FORMS: Final = {"fastmcp": FOLDER / "library_fastmcp.py", "afoot": FOLDER / "library_afoot.py"}
CALLS: Final[list[tuple[str, dict[str, Any]]]] = [
    ("add", {"a": 2, "b": 3}),
    ("find", {"title": "Emma"}),
    ("find", {"title": "Ulysses"}),
    ("scan", {"pages": 2}),
    ("choose", {}),
]
# Everything that a client sees there.
EXPECTED: Final[dict[str, Any]] = {
    "tools": ["add", "choose", "find", "keep", "scan"],
    "calls": {
        "add 2,3": [False, "5", {"result": 5}],
        "find Emma": [False, '{"title":"Emma","pages":474}', {"title": "Emma", "pages": 474}],
        "find Ulysses": [True, "there is no book Ulysses", None],
        "scan 2": [False, "2 pages", {"result": "2 pages"}],
        "choose ": [False, "reading Emma", {"result": "reading Emma"}],
    },
    "rises": True,
    "resources": ["library://titles"],
    "templates": ["library://books/{title}"],
    "read": ["Emma, Dracula", "Emma has 474 pages"],
    "prompts": [["review", ["title", "tone"]]],
    "prompt": [["user", "Write a kind review of Emma."]],
    "completion": ["Emma"],
}
Seen = dict[str, Any]


@pytest.fixture(scope="module", params=FORMS)
def library(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """`afoot serve FILE`, and nothing else."""
    with fronting(tmp_path_factory.mktemp("library"), {}, own=[FORMS[request.param]]) as gateway:
        yield gateway


async def look(client: Any, call: Callable[..., Any]) -> Seen:
    """Everything that a Python client sees; both have these methods, with lists or with results."""
    progress: list[float] = []

    async def note(value: float, total: float | None, message: str | None) -> None:
        progress.append(value)

    calls = {f"{name} {','.join(map(str, given.values()))}": await call(name, given) for name, given in CALLS}
    await call("scan", {"pages": 3}, note)
    read = [await client.read_resource(uri) for uri in ("library://titles", "library://books/Emma")]
    ref = types.PromptReference(type="ref/prompt", name="review")
    completion = await client.complete(ref, {"name": "title", "value": "E"})
    messages = (await client.get_prompt("review", {"title": "Emma"})).messages
    return {
        "tools": sorted(one.name for one in plain(await client.list_tools(), "tools")),
        "calls": calls,
        "rises": bool(progress) and progress == sorted(set(progress)),
        "resources": [str(one.uri) for one in plain(await client.list_resources(), "resources")],
        "templates": [
            one.uri_template
            for one in plain(await client.list_resource_templates(), "resource_templates")
        ],
        "read": [plain(one, "contents")[0].text for one in read],
        "prompts": [
            [one.name, [argument.name for argument in one.arguments]]
            for one in plain(await client.list_prompts(), "prompts")
        ],
        "prompt": [[one.role, one.content.text] for one in messages],
        "completion": list(getattr(completion, "completion", completion).values),
    }  # fmt: skip


def plain(result: Any, key: str) -> list[Any]:
    """The list of a result, or the list that it is already."""
    found: list[Any] = result if isinstance(result, list) else getattr(result, key)
    return found


def told(result: Any) -> list[Any]:
    """What a call came to."""
    return [bool(result.is_error), result.content[0].text, result.structured_content]


async def elicited(context: ClientRequestContext, params: types.ElicitRequestParams) -> types.ElicitResult:
    """Choose a book."""
    return types.ElicitResult(action="accept", content={"value": "Emma"})


async def chosen(message: str, *more: object) -> ElicitResult[Any]:
    """Choose a book, for FastMCP's client."""
    return ElicitResult(action="accept", content={"value": "Emma"})


async def python_client(url: str, era: str) -> Seen:
    """The official client."""
    async with Client(url, mode=era, elicitation_callback=elicited) as client:

        async def call(name: str, given: dict[str, Any], note: Any = None) -> list[Any]:
            return told(await client.call_tool(name, given, progress_callback=note))

        return await look(client, call)


async def fastmcp_client(url: str, era: str) -> Seen:
    """FastMCP's client."""
    async with fastmcp.Client(url, elicitation_handler=chosen, mode=era) as client:

        async def call(name: str, given: dict[str, Any], note: Any = None) -> list[Any]:
            return told(await client.call_tool(name, given, progress_handler=note, raise_on_error=False))

        return await look(client, call)


async def typescript_client(url: str, era: str) -> Seen:
    """The TypeScript client 2."""
    package("@modelcontextprotocol/client")
    plan = {"url": url, "era": "legacy" if era == "legacy" else "auto", "calls": CALLS}
    command = [node(), str(ROOT / "tests/e2e/library.mjs"), str(modules()), json.dumps(plan)]
    done = await asyncio.to_thread(
        subprocess.run, command, capture_output=True, text=True, timeout=RUN_S, check=False
    )
    assert done.returncode == 0, done.stderr
    seen: Seen = json.loads(done.stdout)
    return seen


@pytest.mark.parametrize("era", ["legacy", "2026-07-28"])
@pytest.mark.parametrize("client", [python_client, fastmcp_client, typescript_client])
def test_every_client_sees_the_same_library(library: Gateway, client: Callable[..., Any], era: str) -> None:
    """F6, U5, U10: tools, progress, questions, resources, prompts, completion; lifespan and dependencies."""
    assert asyncio.run(client(library.url, era)) == EXPECTED


@pytest.mark.parametrize("era", ["legacy", "2026-07-28"])
def test_a_word_is_kept_from_call_to_call(library: Gateway, era: str) -> None:
    """F6, U10: the state of the session."""

    async def keep() -> str:
        async with Client(library.url, mode=era) as client:
            await client.call_tool("keep", {"word": f"first {era}"})
            return str(told(await client.call_tool("keep", {"word": "second"}))[1])

    assert asyncio.run(keep()) == f"first {era}"


@pytest.mark.parametrize("form", FORMS)
def test_the_command_line_calls_a_tool_of_the_file(form: str, tmp_path: Path) -> None:
    """F6, V2: without a gateway that runs."""
    command = [sys.executable, "-m", "afoot", "call", "--target", str(FORMS[form]), "find", "title=Emma"]
    environment = {**os.environ, "AFOOT_HOME": str(tmp_path)}
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=RUN_S, check=False, env=environment
    )
    assert done.returncode == 0 and '"pages":474' in done.stdout, done.stderr
