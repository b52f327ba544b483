"""Bad days from end to end: full disks, clocks that are set, what is stolen, and a purge under load."""

import os
import socket
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from http.client import HTTPException
from pathlib import Path
from threading import Thread
from typing import Any, Final

import pytest

from afoot.core.facts import Finished, Opened, Released
from tests.e2e import history
from tests.e2e.access.test_tokens import ask, bearing, token
from tests.e2e.gateway import TOOLS, Gateway, until
from tests.e2e.gateway_with_servers import Front, fronting
from tests.e2e.raw_client import EVERYTHING, Http, Message, call, events, hello, modern, request
from tests.serve.api_client import Api

BAD: Final = TOOLS.parent / "failures" / "fault_tools.py"
DAY_S: Final = 86_400.0
ADA: Final = {"name": {"action": "accept", "content": {"name": "Ada"}}}
KEY: Final = "dev.afoot/idempotency"
HELLO: Final = request("initialize", hello(EVERYTHING))

pytestmark = pytest.mark.timeout(120)


# The disk


@contextmanager
def by_limit(folder: Path) -> Iterator[Callable[[Front, bool], None]]:
    """A disk on which nothing may grow; anybody can have that."""

    def set_full(gateway: Front, is_full: bool) -> None:
        told = ("fill_disk", {"store": str(gateway.store)}) if is_full else ("free_disk", {})
        assert "error" not in ask(gateway, call(*told))[1]

    yield set_full


@contextmanager
def by_filling(folder: Path) -> Iterator[Callable[[Front, bool], None]]:
    """A real disk that is small and full; only root, or who may become it, can have that."""
    folder.mkdir()
    root = ["sudo", "-n"] if os.geteuid() else []
    mount = [*root, "mount", "-t", "tmpfs", "-o", f"size=1m,uid={os.geteuid()}", "none", str(folder)]
    try:
        subprocess.run(mount, capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"no file system can be mounted here: {error}")

    def set_full(gateway: Front, is_full: bool) -> None:
        filler = folder / "filler"
        if not is_full:
            filler.unlink()
            return
        with filler.open("wb", buffering=0) as file, pytest.raises(OSError, match="No space left"):
            while True:
                file.write(bytes(4096))

    try:
        yield set_full
    finally:
        subprocess.run([*root, "umount", "-l", str(folder)], check=True)


@pytest.mark.parametrize("disk", [by_limit, by_filling])
def test_a_full_disk_costs_no_call_and_no_fact_once_it_is_back(tmp_path: Path, disk: Any) -> None:
    """H1: calls go on and say that they are not recorded; later all is there, and survives kill -9."""
    with disk(tmp_path / "gate") as set_full, fronting(tmp_path / "gate", {}, own=(TOOLS, BAD)) as gateway:
        api, ids = Api(gateway), list[str]()
        assert told(add(gateway)) == (3, None)
        crossing = api.start("count_up", n=100_000, step_s=0.02)
        set_full(gateway, True)
        for _ in range(200):  # a log may have some room left
            ids.append(id_of(result := add(gateway)))
            if told(result)[1] == "unrecorded":
                break
        assert told(result) == (3, "unrecorded")
        health = until(lambda: degraded(api), "the gateway says so")
        assert "history" in health["why"]
        ids += [id_of(add(gateway)) for _ in range(50)]
        assert api.call(ids[-1])["outcome"] == "ok"  # memory has it
        set_full(gateway, False)
        until(lambda: api.get("/healthz").body["status"] == "ok", "the history is back")
        assert told(add(gateway)) == (3, None)
        assert api.call(crossing)["state"] == "running"
        gateway.kill()
        for one in ids:
            facts = history.facts(gateway.store, one)
            assert [type(facts[0]), type(facts[-1])] == [Opened, Released] and Finished in map(type, facts)
        sound(gateway)
        gateway.start()
        assert Api(gateway).call(crossing)["outcome"] == "uncertain"


def test_where_history_is_required_a_full_disk_stops_new_calls(tmp_path: Path) -> None:
    """H1: they are told why and when to come again; what runs goes on."""
    settings = {"history": "required"}
    with by_limit(tmp_path) as set_full, fronting(tmp_path, {}, settings, (TOOLS, BAD)) as gateway:
        api = Api(gateway)
        crossing = api.start("until_file", file=str(tmp_path / "go"))
        set_full(gateway, True)
        error = until(lambda: refused(gateway), "a refusal")
        assert "history cannot be written" in error["message"] and error["data"]["retry_after_s"] > 0
        assert api.post("/api/calls", {"tool": "add", "arguments": {"a": 1, "b": 2}}).status == 503
        assert api.call(crossing)["state"] == "running"
        (tmp_path / "go").touch()
        assert api.ended(crossing)["outcome"] == "ok"


def add(gateway: Front) -> Message:
    """The result of one small call."""
    status, answer, _ = ask(gateway, call("add", {"a": 1, "b": 2}))
    assert status == 200, answer
    found: Message = answer["result"]
    return found


def refused(gateway: Front) -> dict[str, Any]:
    """Why a small call was not taken, if it was not."""
    return dict(ask(gateway, call("add", {"a": 1, "b": 2}))[1].get("error", {}))


def told(result: Message) -> tuple[int, str | None]:
    """What came out, and whether it is recorded."""
    return result["structuredContent"]["sum"], result["_meta"].get("dev.afoot/history")


def id_of(result: Message) -> str:
    """The call it is of."""
    return str(result["_meta"]["dev.afoot/call"])


def degraded(api: Api) -> dict[str, Any]:
    """What the gateway says of itself, if that is not well."""
    found = api.get("/healthz").body
    return dict(found) if found["status"] == "degraded" else {}


def sound(gateway: Gateway) -> None:
    """Check the file of the history itself."""
    with closing(sqlite3.connect(gateway.store)) as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_a_damaged_history_is_told_and_left_as_it_is(tmp_path: Path) -> None:
    """H1: half of it is missing; the gateway says what to do, and makes nothing worse."""
    with fronting(tmp_path, {}) as gateway:
        for n in range(50):
            assert "result" in ask(gateway, call("add", {"a": n, "b": 1}))[1]
    size = gateway.store.stat().st_size
    os.truncate(gateway.store, size // 2 // 4096 * 4096)
    half = gateway.store.read_bytes()
    done = subprocess.run(
        gateway.command("--http", "127.0.0.1:0"), capture_output=True, text=True, timeout=30, check=False,
        env=gateway.environment,
    )  # fmt: skip
    assert done.returncode == 2 and "the file is damaged: move it away" in done.stderr, done.stderr
    assert "Traceback" not in done.stderr and gateway.store.read_bytes() == half


# The clock, and what runs out


def test_a_token_runs_out_by_the_time_of_day_also_where_a_stream_is_open(tmp_path: Path) -> None:
    """S2: as after a sleep of the machine; what it listens to ends, what it had begun goes on."""
    with fronting(tmp_path, {}, {"keepalive_s": 0.2}, (TOOLS, BAD)) as gateway:
        secret = token(gateway, "brief", "--days", "1", "--scope", "call,watch")
        api = bearing(gateway, secret)
        running = api.start("until_file", file=str(tmp_path / "go"))
        with Http(gateway.url) as http, api.stream("/api/events") as feed:
            wanted = modern("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
            heard = events(http.post(wanted, authorization=f"Bearer {secret}"))
            assert next(feed).event == "snapshot" and isinstance(next(heard), dict)
            assert ask(gateway, call("set_clock", {"by_s": 2 * DAY_S}))[0] == 200
            assert len(list(heard)) < 1000 and len(list(feed)) < 1000  # both come to their end
        status, error, _ = ask(gateway, call("add", {"a": 1, "b": 2}), secret)
        assert status == 401 and "'brief' has expired" in error["error"]["message"]
        assert Api(gateway).call(running)["state"] == "running"
        (tmp_path / "go").touch()
        assert Api(gateway).ended(running)["outcome"] == "ok"


@pytest.mark.parametrize("by_s", [DAY_S, -DAY_S], ids=["forward", "back"])
def test_a_clock_that_is_set_ends_no_call_and_keeps_none(tmp_path: Path, by_s: float) -> None:
    """C1: limits are lengths; calls of before and after stand in the history in their order."""
    with fronting(tmp_path, {}, own=(TOOLS, BAD)) as gateway:
        api = Api(gateway)
        running = api.start("until_file", file=str(tmp_path / "go"))
        silent = api.start("paced", pauses=[10.0])  # its silence may last for 0.6 s
        assert ask(gateway, call("set_clock", {"by_s": by_s}))[0] == 200
        assert api.ended(silent)["failure"]["code"] == "idle_limit"
        assert api.call(running)["state"] == "running"
        (tmp_path / "go").touch()
        assert api.ended(running)["outcome"] == "ok"
        later = id_of(add(gateway))
        assert later > running
        assert api.get("/api/calls").body["calls"][0]["id"] == later


# A purge under load


def test_a_purge_under_load_takes_nothing_that_lives_and_may_be_killed(tmp_path: Path) -> None:
    """H6, H1: fifty calls run and are written meanwhile; each is whole or gone, also after kill -9."""
    with fronting(tmp_path, {}, own=(TOOLS, BAD)) as gateway:
        api = Api(gateway)
        with Http(gateway.url) as http:
            http.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # else 40 ms each
            for n in range(600):
                http.ask(call("add", {"a": n, "b": 1}))
        running = [api.start("count_up", n=100_000, step_s=0.1) for _ in range(50)]
        old = Thread(target=purge, args=(api, 450))
        old.start()
        ended = [id_of(add(gateway)) for _ in range(100)]
        old.join()
        assert {api.call(one)["state"] for one in running} == {"running"}
        assert {api.call(one)["outcome"] for one in ended} == {"ok"}
        left = listed(gateway)
        assert left <= 550
        last_one = Thread(target=purge, args=(api, 0))
        last_one.start()
        until(lambda: listed(gateway) < left, "the first to go")
        gateway.kill()
        last_one.join()
        whole(gateway, running)
        gateway.start()
        outcomes = {Api(gateway).call(one)["outcome"] for one in running}
        assert outcomes == {"uncertain"}


def purge(api: Api, keep: int) -> None:
    """Have all calls go but so many; the gateway may die over it."""
    with suppress(OSError, HTTPException):
        api.post("/api/purge", {"keep": keep})


def listed(gateway: Gateway) -> int:
    """How many calls the list has."""
    with closing(sqlite3.connect(gateway.store, timeout=5)) as db:
        return int(db.execute("SELECT count(*) FROM calls").fetchone()[0])


def whole(gateway: Gateway, running: list[str]) -> None:
    """Check that of every call there is everything or nothing."""
    sound(gateway)
    stories: dict[str, list[type]] = {}
    for entry in history.entries(gateway.store):
        stories.setdefault(entry.call, []).append(type(entry.fact))
    assert {call for call, kinds in stories.items() if Finished not in kinds} == set(running)
    over = [kinds for kinds in stories.values() if Finished in kinds]
    assert all((kinds[0], kinds[-1]) == (Opened, Released) for kinds in over)
    assert len(over) >= listed(gateway)  # the newest may not be in the list yet
