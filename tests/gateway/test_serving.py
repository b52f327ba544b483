"""A gateway that a Python program starts."""

import asyncio
import gc
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from mcp import Client

import afoot
from afoot.errors import CallerError

PROGRAM = """
import afoot

@afoot.tool
def add(a: int, b: int) -> int:
    "Add."
    return a + b

if __name__ == "__main__":
    afoot.serve(add, http="127.0.0.1:0", on_start=lambda url: print(url, flush=True))
    print("over", flush=True)
"""


@afoot.tool
def add(a: int, b: int) -> int:
    """Add."""
    return a + b


@pytest.fixture(autouse=True)
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A state folder of the test's own, and no config file above."""
    monkeypatch.setenv("AFOOT_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)


def test_a_program_serves_until_a_signal(tmp_path: Path) -> None:
    """F5: it blocks, as `afoot serve` does, and goes on behind the call."""
    (tmp_path / "program.py").write_text(PROGRAM)
    with subprocess.Popen([sys.executable, "program.py"], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        assert asyncio.run(sum_at(url)) == {"result": 5}
        process.send_signal(signal.SIGTERM)
        assert process.stdout.readline() == "over\n"
    assert process.returncode == 0


async def sum_at(url: str) -> object:
    """The result of a call there."""
    async with Client(url) as client:
        return (await client.call_tool("add", {"a": 2, "b": 3})).structured_content


def test_a_task_serves_until_it_is_cancelled() -> None:
    """F5: on a loop that runs; the end leaves nothing behind."""

    async def main() -> None:
        address: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        serving = asyncio.create_task(
            afoot.serve_async(add, http="127.0.0.1:0", store=":memory:", on_start=address.set_result)
        )
        await asyncio.wait([address, serving], return_when=asyncio.FIRST_COMPLETED)
        assert await sum_at(address.result()) == {"result": 5}
        serving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await serving
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(main())
    gc.collect()  # a socket that was left open is told here


def test_a_start_that_fails_is_told() -> None:
    """F5: as an error of the call."""
    with pytest.raises(CallerError, match="nothing to serve"):
        asyncio.run(afoot.serve_async(http="127.0.0.1:0", store=":memory:"))
    with pytest.raises(CallerError, match="unknown setting 'htpp'"):
        afoot.serve(add, htpp="127.0.0.1:0")


def test_the_package_of_the_surfaces_is_the_function_too() -> None:
    """F5: `afoot.serve` has both meanings, in whatever order they are used."""
    program = (
        "import afoot.serve.router, afoot; assert callable(afoot.Gateway) and callable(afoot.serve);"
        " import afoot.serve.gateway_state as shared; print(shared.__name__, afoot.serve.router.__name__)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "afoot.serve.gateway_state afoot.serve.router\n"
