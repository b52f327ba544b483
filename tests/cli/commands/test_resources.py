"""`afoot resources`, `read`, `prompts` and `prompt` at a real gateway."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import program
from tests.e2e.gateway import Gateway, serving

SERVED = '''
import time
import afoot


@afoot.resource("note://{number}")
def note(number: int, ctx: afoot.Context) -> str:
    """A note."""
    ctx.report(1, 2, "half")
    return f"note {number}"


@afoot.resource("data://raw", mime_type="image/png")
def raw() -> bytes:
    return bytes([0, 255])


@afoot.prompt
def greet(name: str, loudly: bool = False) -> str:
    """Greets."""
    return f"Greet {name}{'!' * loudly}"


@afoot.prompt(name="greet")
def shadowed() -> str:
    return ""
'''


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A gateway with resources and a prompt."""
    folder = tmp_path_factory.mktemp("resources")
    (folder / "served.py").write_text(SERVED)
    with serving(folder, tools=[folder / "served.py"]) as gateway:
        yield gateway


def run(gateway: Gateway, *words: str) -> subprocess.CompletedProcess[str]:
    """Run the program where the gateway is found."""
    return program(words, gateway.environment)


def test_what_is_there_is_listed(served: Gateway) -> None:
    """F3, V2: a line each, or a JSON object each."""
    assert run(served, "resources").stdout.splitlines() == ["data://raw", "note://{number}  A note."]
    assert run(served, "prompts").stdout.splitlines() == ["greet name=… [loudly=…]  Greets."]
    lines = run(served, "resources", "--json").stdout.splitlines()
    assert [json.loads(line)["server"] for line in lines] == ["local", "local"]
    assert json.loads(run(served, "prompts", "--json").stdout)["name"] == "greet"


def test_a_resource_is_read_with_its_progress(served: Gateway, tmp_path: Path) -> None:
    """F3, V2: the contents alone go to stdout."""
    done = run(served, "read", "note://7")
    assert done.returncode == 0 and done.stdout == "note 7\n" and "1/2 half" in done.stderr
    assert json.loads(run(served, "read", "note://7", "--json").stdout)["contents"][0]["text"] == "note 7"
    saved = tmp_path / "raw.png"
    assert run(served, "read", "data://raw", "--output", str(saved)).returncode == 0
    assert saved.read_bytes() == bytes([0, 255])


def test_a_prompt_is_filled_in(served: Gateway) -> None:
    """F3, V2: arguments are key=value."""
    assert run(served, "prompt", "greet", "name=Ann", "loudly=true").stdout == "Greet Ann!\n"
    found = json.loads(run(served, "prompt", "greet", "name=Ann", "--json").stdout)
    assert found["messages"][0]["role"] == "user" and found["description"] == "Greets."


def test_the_doctor_and_the_status_say_what_could_not_be_offered(served: Gateway) -> None:
    """F3: with the place in the file."""
    for words in (("doctor",), ("status",)):
        assert "two prompts are greet: " in run(served, *words).stdout
    assert "two prompts are greet: " in run(served, "resources").stderr


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("read", "note://x"), "uri: number: "),
        (("read", "node://7"), "nearest: note://{number}"),
        (("prompt", "greet"), "arguments.name: Field required"),
        (("prompt", "great", "name=x"), "nearest: greet"),
        (("prompt", "greet", "Ann"), "key=value"),
        (("read", "note://1", "--json", "--output", "x"), "exclude each other"),
    ],
)
def test_a_mistake_is_wrong_usage(served: Gateway, words: tuple[str, ...], told: str) -> None:
    """F3, V2, E4: exit 2, and what is wrong."""
    done = run(served, *words)
    assert done.returncode == 2 and told in done.stderr
