"""Functions as resources and prompts: what is listed, found, refused at load, run and completed."""

import asyncio
import json
import logging
import threading
from collections.abc import Callable, Iterator
from enum import Enum
from typing import Any, Literal

import pytest
from msgspec import Raw

import afoot
from afoot.core.facts import Result
from afoot.errors import BadTool, ToolError, UnknownName
from afoot.providers.offers.provider import OfferProvider
from tests.providers.fake_run import ScriptedRun


class Color(Enum):
    """A choice."""

    RED = "red"
    GREEN = "green"


@afoot.resource("config://app", title="Config", mime_type="text/x", size=3, icon="https://i.example/i.png")
def config() -> str:
    """The config.

    More of it.
    """
    return "abc"


@afoot.resource("note://{number}{?color}", annotations={"audience": ["user"]})
async def note(number: int, color: Color = Color.RED) -> str:
    """One note."""
    return f"{number} {color.value}"


@afoot.prompt(title="Review")
def review(
    code: str, language: Literal["python", "perl"] = "python", depth: int = 1, strict: bool = False
) -> str:
    """Review some code.

    Args:
        code: the code itself
        depth: how deep
    """
    return f"{language} {depth} {strict}: {code}"


@pytest.fixture
def made() -> Iterator[Callable[..., OfferProvider]]:
    """Make a provider of these functions, closed at the end."""
    providers: list[OfferProvider] = []

    def make(*functions: Any) -> OfferProvider:
        providers.append(OfferProvider(functions))
        return providers[-1]

    yield make
    for one in providers:
        one.close()


def run(provider: OfferProvider, name: str, arguments: object) -> Result:
    """Run a call of this name."""
    work = provider.prepare(name, Raw(json.dumps(arguments).encode()))
    run = ScriptedRun()

    async def running() -> Result:
        run._thread = threading.get_ident()
        return await work(run)

    return asyncio.run(running())


def read(provider: OfferProvider, uri: str) -> str:
    """The text of a resource."""
    tool = provider.find_resource(uri)
    assert tool is not None
    found: str = json.loads(bytes(run(provider, tool.name, {"uri": uri}).content))[0]["resource"]["text"]
    return found


Make = Callable[..., OfferProvider]


def test_the_lists_say_everything_that_authors_say(made: Make) -> None:
    """F3: the words of the decorator, of the docstring and of the annotations."""
    provider = made(config, note, review)
    assert provider.problems == []
    assert provider.resources == [
        {
            "uri": "config://app", "name": "config", "title": "Config",
            "description": "The config.\n\nMore of it.", "icons": [{"src": "https://i.example/i.png"}],
            "mimeType": "text/x", "size": 3,
        }
    ]  # fmt: skip
    assert provider.templates == [
        {
            "uriTemplate": "note://{number}{?color}", "name": "note", "description": "One note.",
            "mimeType": "text/plain", "annotations": {"audience": ["user"]},
        }
    ]  # fmt: skip
    assert provider.prompts == [
        {
            "name": "review", "title": "Review", "description": "Review some code.",
            "arguments": [
                {"name": "code", "description": "the code itself", "required": True},
                {"name": "language", "description": "(one of: python, perl)", "required": False},
                {"name": "depth", "description": "how deep (integer)", "required": False},
                {"name": "strict", "description": "(one of: true, false)", "required": False},
            ],
        }
    ]  # fmt: skip


def test_values_are_of_the_types_that_the_function_names(made: Make) -> None:
    """F3: all that comes over the wire is text."""
    provider = made(config, note, review)
    assert read(provider, "note://7?color=green") == "7 green"
    assert read(provider, "config://app") == "abc"
    given = {"code": "x", "depth": "3", "strict": "true"}
    assert json.loads(bytes(run(provider, "prompt review", given).content))[0]["text"] == "python 3 True: x"


def test_a_type_that_takes_no_text_gets_the_json_that_the_text_is(made: Make) -> None:
    """F3: lists, objects and literal numbers; text stays text where text is wanted."""

    @afoot.prompt
    def pick(numbers: list[int], size: Literal[1, 2], name: str) -> str:
        return f"{numbers} {size} {name!r}"

    result = run(made(pick), "prompt pick", {"numbers": "[1, 2]", "size": "2", "name": "n"})
    assert json.loads(bytes(result.content))[0]["text"] == "[1, 2] 2 'n'"


@pytest.mark.parametrize(
    ("name", "arguments", "told"),
    [
        (
            "resource note://{number}{?color}",
            {"uri": "note://x"},
            "uri: number: Input should be a valid integer",
        ),
        ("resource note://{number}{?color}", {"uri": "note://1?color=blue"}, "uri: color: "),
        ("resource note://{number}{?color}", {"uri": "other://1"}, "does not fit"),
        ("prompt review", {}, "arguments.code: "),
        ("prompt review", {"code": "x", "languag": "y"}, "languag"),
        ("prompt review", {"code": "x", "depth": "deep"}, "arguments.depth: Input should be a valid integer"),
    ],
)
def test_a_bad_value_is_named_before_anything_runs(
    made: Make, name: str, arguments: object, told: str
) -> None:
    """F3, E4: the argument, or the variable of the URI."""
    with pytest.raises(ToolError) as caught:
        made(note, review).prepare(name, Raw(json.dumps(arguments).encode()))
    assert caught.value.category == "validation" and told in caught.value.message


def test_a_path_that_leaves_its_folder_is_refused(made: Make) -> None:
    """S1: before the function sees it."""

    @afoot.resource("file:///{+path}")
    def file(path: str) -> str:
        raise AssertionError(path)

    provider = made(file)
    for uri in ("file:///../etc/passwd", "file:///a/%2e%2e/b", "file:////etc/passwd", "file:///a%00"):
        tool = provider.find_resource(uri)
        assert tool is not None
        with pytest.raises(ToolError, match="path must not"):
            provider.prepare(tool.name, Raw(json.dumps({"uri": uri}).encode()))


def test_the_narrowest_template_is_read_whatever_the_order(made: Make) -> None:
    """F3: a fixed URI first, then a template before one that is wider."""

    @afoot.resource("f:///{+path}")
    def anything(path: str) -> str:
        return f"anything {path}"

    @afoot.resource("f:///logs/{name}")
    def log(name: str) -> str:
        return f"log {name}"

    @afoot.resource("f:///logs/today")
    def today() -> str:
        return "today"

    provider = made(anything, log, today)
    assert provider.problems == []
    uris = ("f:///logs/today", "f:///logs/x", "f:///logs/x/y")
    assert [read(provider, uri) for uri in uris] == ["today", "log x", "anything logs/x/y"]


def problem(provider: OfferProvider) -> str:
    """The one thing that is wrong."""
    [found] = provider.problems
    return found


def test_two_of_one_uri_are_an_error_and_the_first_is_served(made: Make) -> None:
    """F3: the error names both places, and the rest is served."""

    @afoot.resource("config://app")
    def other() -> str:
        return "other"

    provider = made(config, other, review)
    assert "two resources are config://app: " in problem(provider)
    assert problem(provider).count("test_provider.py:") == 2
    assert read(provider, "config://app") == "abc" and len(provider.prompts) == 1


def test_a_template_that_shadows_another_is_an_error(made: Make) -> None:
    """F3: no URI could ever reach the second one."""

    @afoot.resource("note://{id}{?color}")
    def shadowed(id: str, color: str = "") -> str:
        return "shadowed"

    provider = made(note, shadowed)
    assert "two templates are for the same URIs: note://{number}{?color} (" in problem(provider)
    assert read(provider, "note://1") == "1 red" and len(provider.templates) == 1


def test_two_prompts_of_one_name_are_an_error(made: Make) -> None:
    """F3: the first one is served."""

    @afoot.prompt(name="review")
    def other() -> str:
        return ""

    assert "two prompts are review: " in problem(made(review, other))


@pytest.mark.parametrize(
    ("uri", "told"),
    [("x://{a}", "the function has no parameter a"), ("x://{number}", "nothing gives the parameter name")],
)
def test_a_uri_that_does_not_fit_its_function_is_left_out(made: Make, uri: str, told: str) -> None:
    """F3: variables without a parameter, and parameters that nothing gives; the others are served."""

    def wrong(number: int, name: str) -> str:
        return ""

    provider = made(afoot.resource(uri)(wrong), config)
    assert told in problem(provider) and "test_provider.py:" in problem(provider)
    assert [one["uri"] for one in provider.resources] == ["config://app"] and not provider.templates


def test_a_prompt_whose_parameters_cannot_be_arguments_is_left_out(made: Make) -> None:
    """F3: the rest is served."""

    @afoot.prompt
    def wrong(*parts: str) -> str:
        return ""

    provider = made(wrong, review)
    assert "prompt wrong (" in problem(provider) and "*parts" in problem(provider)
    assert [one["name"] for one in provider.prompts] == ["review"]


@pytest.mark.parametrize(
    ("declare", "told"),
    [
        (lambda: afoot.resource(config), "a resource needs its URI"),  # type: ignore[arg-type]
        (lambda: afoot.resource("x://a", mime="text/a")(note), "did you mean 'mime_type'"),  # type: ignore[call-arg]
        (lambda: afoot.resource("x://a", idle=-1)(note), "idle must be"),
        (lambda: afoot.resource("x://{a")(note), "without its }"),
        (lambda: afoot.prompt(name="a b")(note), "no name of a prompt"),
        (lambda: afoot.completion(print, "a"), "is no prompt and no resource"),
    ],
)
def test_a_mistake_in_a_decorator_is_told_where_it_is(declare: Callable[[], object], told: str) -> None:
    """F3: when the file is loaded, as with tools."""
    with pytest.raises(BadTool) as caught:
        declare()
    assert told in str(caught.value)


def test_a_generator_is_no_resource() -> None:
    """F3: the error says what to do instead."""

    def pieces() -> Iterator[str]:
        yield "a"

    with pytest.raises(BadTool, match="return a list"):
        afoot.resource("x://a")(pieces)


def test_a_function_may_be_a_tool_a_prompt_and_several_resources(made: Make) -> None:
    """F3: the decorators leave it as it is."""

    @afoot.resource("x://one")
    @afoot.resource("x://two")
    @afoot.prompt
    @afoot.tool
    def thing() -> str:
        return "thing"

    provider = made(thing)
    assert [one["uri"] for one in provider.resources] == ["x://two", "x://one"] and provider.prompts
    assert thing() == "thing"


def complete(
    provider: OfferProvider, ref: dict[str, str], argument: str, value: str, **given: str
) -> list[str]:
    """The values for what was typed so far."""
    return asyncio.run(provider.complete(ref, argument, value, given))


PROMPT = {"type": "ref/prompt", "name": "review"}
TEMPLATE = {"type": "ref/resource", "uri": "note://{number}{?color}"}


def test_choices_complete_by_themselves(made: Make) -> None:
    """F3: `Literal`, `Enum` and `bool`; first those that begin so, then those that contain it."""
    provider = made(note, review)
    assert complete(provider, PROMPT, "language", "P") == ["python", "perl"]
    assert complete(provider, PROMPT, "language", "er") == ["perl"]
    assert complete(provider, PROMPT, "strict", "t") == ["true"]
    assert complete(provider, PROMPT, "code", "x") == []
    assert complete(provider, TEMPLATE, "color", "") == ["red", "green"]
    assert complete(provider, {**TEMPLATE, "uri": "note://5"}, "color", "g") == ["green"]


def test_an_authors_function_completes(made: Make) -> None:
    """F3: sync in a thread, async on the loop, with what is filled in already if it wants that."""

    @afoot.prompt
    def travel(country: str, city: str) -> str:
        return ""

    threads: list[int] = []

    @afoot.completion(travel, "country")
    def countries(typed: str) -> list[str]:
        threads.append(threading.get_ident())
        return [one for one in ("France", "Finland") if one.startswith(typed)]

    @afoot.completion(travel, "city")
    async def cities(typed: str, given: dict[str, str]) -> list[str]:
        return [f"{given['country']} {typed}"]

    provider, ref = made(travel), {"type": "ref/prompt", "name": "travel"}
    assert complete(provider, ref, "country", "F") == ["France", "Finland"]
    assert complete(provider, ref, "city", "Pa", country="France") == ["France Pa"]
    assert threads != [threading.get_ident()]


def test_a_completion_of_nothing_is_named(made: Make) -> None:
    """F3: at load if its author is wrong, with the nearest if a caller is."""

    @afoot.prompt
    def travel(country: str) -> str:
        return ""

    @afoot.completion(travel, "contry")
    def countries(typed: str) -> list[str]:
        return []

    provider = made(travel)
    assert "unknown argument 'contry'; nearest: country" in problem(provider)
    assert provider.prompts
    with pytest.raises(UnknownName, match="nearest: country"):
        complete(provider, {"type": "ref/prompt", "name": "travel"}, "countr", "")
    with pytest.raises(UnknownName, match="nearest: travel"):
        complete(provider, {"type": "ref/prompt", "name": "travell"}, "country", "")


def test_a_completion_that_raises_is_logged(made: Make, caplog: pytest.LogCaptureFixture) -> None:
    """F3, E3: its caller gets a clean line, and the log has the trace."""

    @afoot.prompt
    def travel(country: str) -> str:
        return ""

    @afoot.completion(travel, "country")
    def countries(typed: str) -> list[str]:
        raise RuntimeError("secret detail")

    with caplog.at_level(logging.ERROR), pytest.raises(ToolError) as caught:
        complete(made(travel), {"type": "ref/prompt", "name": "travel"}, "country", "")
    assert "secret detail" not in caught.value.message and "secret detail" in caplog.text
