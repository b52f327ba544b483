"""The reference has a heading for everything there is, and for nothing else."""

import re
from collections.abc import Iterator
from typing import get_args

import msgspec
import pytest

import afoot
import afoot.testing
from afoot import errors
from afoot.cli import COMMANDS
from afoot.cli.client import EXIT_BY_OUTCOME
from afoot.config.settings import Settings
from afoot.config.tables import (
    CHOICES,
    AccessSettings,
    BrowserSettings,
    Hook,
    OtelSettings,
    QuotaSettings,
    RetentionSettings,
    Server,
    ToolSettings,
)
from afoot.core import facts
from afoot.core.redaction import RedactionRules
from afoot.providers.browser import page_run, views
from afoot.providers.browser.tools import page_tool_list as choice
from afoot.providers.functions.options import ToolOptions
from afoot.serve.api.router import ROUTES
from afoot.wire import browser_data, extension, jsonrpc, mcp_2026
from afoot.wire.results import CallBudget, ErrorMeta, ParentCall, ProgressMeta
from tests.docs.page import ROOT, prose, read, sections

SOURCE = {str(path.relative_to(ROOT)): path.read_text() for path in (ROOT / "src" / "afoot").rglob("*.py")}
SETTINGS = "docs/reference/settings.md"
COMMANDS_PAGE = "docs/reference/commands.md"
# Settings that nothing reads yet. May only shrink.
UNREAD: set[str] = set()


def test_every_setting_has_a_heading() -> None:
    """House: no setting without its words, and none that does not exist."""
    only = {name for text in SOURCE.values() for name in re.findall(r"AFOOT_[A-Z]{2,}", text)}
    of_settings = {f"AFOOT_{key.upper()}" for key in Settings.__struct_fields__}
    assert set(sections(SETTINGS, 3)) == {*Settings.__struct_fields__, *(only - of_settings)}


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("servers", Server),
        ("tools", ToolSettings),
        ("hooks", Hook),
        ("browser", BrowserSettings),
        ("otel", OtelSettings),
        ("redact", RedactionRules),
        ("retain", RetentionSettings),
        ("quota", QuotaSettings),
        ("access", AccessSettings),
    ],
)
def test_every_key_of_a_table_is_named_with_its_choices(name: str, kind: type[msgspec.Struct]) -> None:
    """House: the same for the tables of servers, tools and hooks."""
    told = sections(SETTINGS, 3)[name]
    assert [key for key in kind.__struct_fields__ if f"`{key}`" not in told] == []
    for choices in CHOICES.get(kind, {}).values():
        assert [choice for choice in choices if choice and f"`{choice}`" not in told.replace('"', "")] == []


def test_every_default_is_the_one_in_the_page() -> None:
    """C1: the number in the docs is the number in force."""
    told = sections(SETTINGS, 3)
    for name in Settings.__struct_fields__:
        value = getattr(Settings(), name)
        shown = "unset" if value is None else f"`{msgspec.json.encode(value).decode()}`"
        assert f"\nDefault: {shown}. " in told[name], f"{name}: {shown}"


def test_every_setting_is_read_somewhere() -> None:
    """House: a setting that changes nothing is a lie."""
    code = "\n".join(text for name, text in SOURCE.items() if not name.endswith(("config.py", "setup.py")))
    assert {
        name for name in Settings.__struct_fields__ if not re.search(rf"settings\.{name}\b", code)
    } == UNREAD


def test_every_fact_and_value_has_a_heading_with_its_fields() -> None:
    """H1: the words of the history are explained."""
    told = sections("docs/reference/facts.md", 3)
    kinds = {name: kind for name, kind in vars(facts).items() if _is_struct(kind, facts.__name__)}
    assert set(told) == set(kinds)
    for name, kind in kinds.items():
        for field in kind.__struct_fields__:
            assert f"`{field}`" in told[name], f"{name}.{field}"
    for kind in get_args(facts.Fact):
        assert f'"type": "{kind.__struct_config__.tag}"' in told[kind.__name__]


def test_every_command_has_a_heading_and_its_help() -> None:
    """V2: the help itself is run and compared with all other blocks."""
    told = sections(COMMANDS_PAGE, 2)
    assert set(told) == {f"afoot {name}" for name in COMMANDS}
    for title, text in told.items():
        assert f"```bash\n{title} --help\n```\n\n```text\nUsage: {title} " in text
        below = {f"{title} {name}" for name in _below(text) if f"Usage: {title} COMMAND" in text}
        assert {name for name in sections(COMMANDS_PAGE, 3) if name.startswith(f"{title} ")} == below
        assert all(f"```text\nUsage: {name} " in text for name in below)


def _below(text: str) -> list[str]:
    """The commands that the help of a command lists."""
    box = text.partition("╭─ Commands ─")[2].partition("╰")[0]
    return re.findall(r"^│ ([\w-]+) ", box, re.MULTILINE)


def test_every_meta_key_has_a_heading_with_its_fields() -> None:
    """P7, E2: what travels beside the plain fields."""
    told = sections("docs/reference/meta.md", 3)
    keys = {key for text in SOURCE.values() for key in re.findall(r'"(dev\.afoot/[a-z]+)"', text)}
    assert set(told) == keys
    kinds = {"budget": CallBudget, "parent": ParentCall, "progress": ProgressMeta, "error": ErrorMeta}
    for key, kind in kinds.items():
        for field in kind.__struct_fields__:
            assert f"`{field}`" in told[f"dev.afoot/{key}"], f"{key}: {field}"


def test_every_route_has_a_heading_with_its_query() -> None:
    """V4: the API as it is."""
    told = sections("docs/reference/http-api.md", 3)
    known = {f"{route.method} {route.path}": route for route in ROUTES}
    assert set(told) == {*known, "POST /mcp", "GET /mcp", "DELETE /mcp", "GET /"}
    for title, route in known.items():
        for name in route.query:
            assert f"`{name}`" in told[title], f"{title}: {name}"


def test_every_frame_of_the_link_has_a_heading_with_its_way_and_its_fields() -> None:
    """B1: what a browser and the gateway say to each other, and nothing else."""
    told = sections("docs/reference/link.md", 3)
    values = {
        name: kind for name, kind in vars(browser_data).items() if _is_struct(kind, browser_data.__name__)
    }
    assert set(told) == {*extension.FROM_BROWSER, *extension.TO_BROWSER, *values}
    for method in {*extension.FROM_BROWSER, *extension.TO_BROWSER}:
        kinds = {ways: kind[method] for ways, kind in _ways().items() if method in kind}
        words = "Both ways" if len(kinds) == 2 else next(iter(kinds))
        assert told[method].splitlines()[1].startswith(words), method
        values[method] = next(iter(kinds.values()))
    for name, kind in values.items():
        for field in msgspec.structs.fields(kind):
            assert f"`{field.encode_name}`" in told[name], f"{name}: {field.encode_name}"


def test_every_code_that_closes_a_link_is_in_its_table() -> None:
    """B7: what an extension may see at the end of its socket."""
    code = "\n".join(
        text for name, text in SOURCE.items() if re.search(r"extension(/\w+)?\.py$|api/browsers\.py$", name)
    )
    told = set(re.findall(r"^\| (4\d{3}) \|", read("docs/reference/link.md"), re.MULTILINE))
    assert told == set(re.findall(r"\b4[4-9]\d\d\b", code)) and told


def _ways() -> dict[str, dict[str, type[msgspec.Struct]]]:
    return {"From the browser": {**extension.FROM_BROWSER}, "To the browser": {**extension.TO_BROWSER}}


def _is_struct(kind: object, module: str) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct) and kind.__module__ == module


PYTHON = "docs/reference/python.md"


def test_every_public_name_has_a_heading() -> None:
    """House: the public face is the documented one."""
    names = {f"afoot.{name}" for name in afoot.__all__}
    names |= {f"afoot.testing.{name}" for name in afoot.testing.__all__}
    assert set(sections(PYTHON, 3)) == names


@pytest.mark.parametrize("kind", ["Context", "Content", "Gateway", "ToolError", "testing.Outcome"])
def test_every_public_method_has_a_heading(kind: str) -> None:
    """House: and so are its methods, both ways."""
    owner: object = afoot
    for part in kind.split("."):
        owner = getattr(owner, part)
    assert set(_inner(f"afoot.{kind}")) == set(_methods(owner))


def _inner(title: str) -> Iterator[str]:
    found = re.findall(r"^#### `(\w+)`$", sections(PYTHON, 3)[title], re.MULTILINE)
    assert len(found) == len(set(found))
    yield from found


def _methods(owner: object) -> Iterator[str]:
    fields = getattr(owner, "__struct_fields__", ()) if owner is afoot.testing.Outcome else ()
    data = {*getattr(owner, "__struct_fields__", ()), "engine", "watchdog"}
    yield from fields
    yield from (name for name in vars(owner) if not name.startswith("_") and name not in data)


def test_every_option_of_a_tool_is_named() -> None:
    """House: all that the decorator takes."""
    told = sections(PYTHON, 3)["afoot.tool"]
    assert [name for name in ToolOptions.__annotations__ if f"`{name}`" not in told] == []


ERRORS = "docs/reference/errors.md"


def test_every_error_has_a_heading() -> None:
    """E1: the tree of errors."""
    kinds = {name for name, kind in vars(errors).items() if isinstance(kind, type) and _is_error(kind)}
    assert set(sections(ERRORS, 3)) == kinds


def _is_error(kind: type) -> bool:
    return issubclass(kind, errors.AfootError)


def test_every_category_code_and_outcome_is_in_its_table() -> None:
    """E1, E2: what a program may meet, and nothing that it may not."""
    told = sections(ERRORS, 2)
    categories = {error.category for error in map(_made, _factories())}
    assert set(_cells(told["Categories"])) == categories
    for error in map(_made, _factories()):
        assert re.search(
            rf"\| `{error.category}` \| .* \| {'yes' if error.retryable else 'no'} \|", prose(ERRORS)
        )
    code = "\n".join(SOURCE.values())
    missing = [name for name in _cells(told["Codes of our own"]) if not _is_said(name, code)]
    assert not missing
    said = set(re.findall(r'code="(\w+)"', code)) - set(_cells(told["Codes of our own"]))
    assert not said
    assert set(_cells(told["Outcomes"])) == set(EXIT_BY_OUTCOME)
    for outcome, number in EXIT_BY_OUTCOME.items():
        assert f"| `{outcome}` | {number} |" in told["Outcomes"]


def _factories() -> list[str]:
    names = vars(errors.ToolError)
    return [name for name in names if not name.startswith("_") and name != "from_status"]


def _made(name: str) -> errors.ToolError:
    error = getattr(errors.ToolError, name)("")
    assert isinstance(error, errors.ToolError)
    return error


def _cells(table: str) -> Iterator[str]:
    for line in table.splitlines():
        yield from re.findall(r"`(\w+)`", line.split("|")[1]) if line.startswith("| `") else ()


def _is_said(name: str, code: str) -> bool:
    return f'"{name}"' in code or (name.endswith("_limit") and '{clock}_limit"' in code)


def test_every_code_of_the_protocol_is_in_its_table() -> None:
    """E4, E5: numbers that clients meet."""
    known = {value for module in (jsonrpc, mcp_2026) for value in vars(module).values() if type(value) is int}
    told = {int(number) for number in re.findall(r"^\| (-\d+) \|", read(ERRORS), re.MULTILINE)}
    assert told == {value for value in known if value < 0}


BROWSER = "docs/how-to/browser.md"


def test_every_state_of_a_tab_and_every_end_of_a_call_there_says_what_to_do() -> None:
    """B2, B6: whoever meets a reason finds it in the page."""
    told = sections(BROWSER, 2)["When something is not right"]
    for words in views.WHY_UNAVAILABLE.values():
        assert f"| {words} |" in told
    codes = {code for code, *_ in vars(page_run)["_ENDINGS"].values()} | {choice.NO_TAB, "tab_not_ready"}
    assert set(re.findall(r"^\| `(\w+)` \|", told, re.MULTILINE)) == codes
