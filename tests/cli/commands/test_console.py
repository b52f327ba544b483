"""`afoot console`, and the console in what `afoot serve` says: links that log one browser in."""

import json
import stat
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from tests.cli.commands.test_serve import read, serve
from tests.cli.conftest import Run, program
from tests.e2e.gateway import TOOLS, Gateway, until
from tests.serve.api_client import Answer, Api


def log_in(api: Api, url: str) -> Answer:
    """What a page that is opened by this link does."""
    assert url.startswith(f"{api.url}/#login="), url
    return api.post("/api/session", {"code": url.partition("#login=")[2]}, authorization="")


def pretend_browser(folder: Path) -> tuple[dict[str, str], Path]:
    """A program that notes the address it is to open, and the environment that names it the browser."""
    seen, script = folder / "opened", folder / "browser"
    script.write_text(f'#!/bin/sh\nprintf %s "$1" > "{seen}.part" && mv "{seen}.part" "{seen}"\n')
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return {"BROWSER": f"{script} %s"}, seen


def test_a_fresh_link_logs_a_browser_in_once(run: Run, api: Api) -> None:
    """S1, V2: the link alone on stdout, and another one the next time; the token is in neither."""
    first, second = run("console"), run("console")
    assert first.returncode == 0 and len(first.stdout.splitlines()) == 1
    assert "once, within 10 minutes" in first.stderr and first.stdout != second.stdout
    assert api.token not in first.stdout + first.stderr
    assert log_in(api, first.stdout.strip()).status == 201
    assert log_in(api, first.stdout.strip()).status == 403
    assert log_in(api, second.stdout.strip()).status == 201


def test_json_has_the_link_and_its_end(run: Run, api: Api) -> None:
    """V4: one object."""
    told = json.loads(run("console", "--json").stdout)
    assert set(told) == {"code", "url", "expires"} and log_in(api, told["url"]).status == 201


def test_who_is_logged_in_is_listed_and_logged_out(run: Run, api: Api) -> None:
    """S1: sessions are listed, and revoked."""
    made = log_in(api, run("console").stdout.strip()).body
    assert made["id"] in run("console", "list").stdout
    listed = [json.loads(line) for line in run("console", "list", "--json").stdout.splitlines()]
    assert made["id"] in [one["id"] for one in listed] and made["token"] not in json.dumps(listed)
    assert run("console", "revoke", made["id"]).stdout == f"logged out {made['id']}\n"
    assert api.get("/api/calls", authorization=f"Bearer {made['token']}").status == 401
    again = run("console", "revoke", made["id"])
    assert again.returncode == 2 and made["id"] in again.stderr


def test_the_link_is_opened_where_there_is_a_browser(gateway: Gateway, api: Api, tmp_path: Path) -> None:
    """V2: `--open` hands it to the person's browser."""
    browser, seen = pretend_browser(tmp_path)
    done = program(("console", "--open"), {**gateway.environment, **browser})
    assert done.returncode == 0
    assert until(seen.exists, "a browser") and seen.read_text() == done.stdout.strip()


def test_without_a_browser_the_link_is_there_to_copy(gateway: Gateway) -> None:
    """V2: and nothing takes over the terminal."""
    bare = {k: v for k, v in gateway.environment.items() if "DISPLAY" not in k and k != "BROWSER"}
    done = program(("console", "--open"), bare)
    assert done.returncode == 0 and "#login=" in done.stdout and "open the link" in done.stderr


def test_without_a_gateway_it_says_how_to_start_one(lone: dict[str, str]) -> None:
    """V2: exit 6."""
    done = program(("console",), lone)
    assert done.returncode == 6 and "afoot serve" in done.stderr


@pytest.mark.parametrize("words", [(), ("--json",)], ids=["text", "json"])
def test_serve_begins_with_a_link_and_opens_another(
    lone: dict[str, str], tmp_path: Path, words: tuple[str, ...]
) -> None:
    """S1: in its first lines and in its JSON; `--open` uses up none of them."""
    browser, seen = pretend_browser(tmp_path)
    arguments = [str(TOOLS), "--http", "127.0.0.1:0", "--open", *words]
    with serve(arguments, {**lone, **browser}) as serving:
        lines = read(serving, "{" if words else "Ctrl-C")
        if words:
            url = json.loads(lines[0])["console"]
        else:
            [url] = [line.split()[1] for line in lines if line.startswith("  console ")]
        until(seen.exists, "a browser")
        opened = seen.read_text()
        assert opened.partition("#")[0] == url.partition("#")[0] and opened != url
        token = (Path(lone["AFOOT_HOME"]) / "token").read_text().strip()
        assert token not in opened + url
        for link in (url, opened):
            assert _logs_in(link)


def _logs_in(url: str) -> bool:
    """Whether a page would be let in."""
    base, _, code = url.partition("#login=")
    asked = Request(
        f"{base}api/session", json.dumps({"code": code}).encode(), {"content-type": "application/json"}
    )
    with urlopen(asked, timeout=10) as response:
        return bool(response.status == 201)
