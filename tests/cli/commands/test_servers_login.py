"""`afoot servers login` and `logout`: with a gateway and without, and with a browser (U7)."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest

from tests.cli.commands.test_serve import read, serve
from tests.cli.conftest import program
from tests.providers.upstream.oauth_server import Office, browse, open_shop

# What stands for a browser: it goes where it is sent, and wherever that leads.
BROWSER = f"{sys.executable} -c 'import sys,urllib.request;urllib.request.urlopen(sys.argv[1]).read()' %s"


@pytest.fixture
def office() -> Iterator[Office]:
    """An authorization server, and a shop."""
    with open_shop() as opened:
        yield opened


@pytest.fixture
def folder(office: Office, tmp_path: Path) -> Path:
    """Where a config names the shop."""
    (tmp_path / "afoot.toml").write_text(f'[servers.shop]\nurl = "{office.url}/mcp"\nauth = "oauth"\n')
    return tmp_path


def logins(folder: Path) -> list[Path]:
    """The files of logins."""
    return sorted((folder / "home" / "logins").glob("*"))


def test_a_login_without_a_gateway_counts_for_the_next_one(
    office: Office, folder: Path, lone: dict[str, str]
) -> None:
    """U7, V2: the browser is opened; tokens stay where the gateway finds them, and nowhere else."""
    done = program(("servers", "login", "shop"), {**lone, "BROWSER": BROWSER}, folder)
    assert (done.returncode, done.stdout) == (0, "logged in to shop\n"), done
    assert done.stderr.startswith(f"Log in here:\n  {office.url}/authorize?") and done.stderr.count("\n") == 2
    assert not any(token in done.stderr for token in (*office.tokens, *office.refreshes))
    with serve(["--http", "127.0.0.1:0"], lone, folder) as serving:
        assert read(serving, "Ctrl-C")[0].startswith("afoot serves 3 tools")
        listed = program(("servers",), lone, folder).stdout
        assert "ready, logged in" in listed
        done = program(("call", "count", "n=3"), lone, folder)
        assert (done.returncode, done.stdout.strip()) == (0, "3"), done
    assert len(logins(folder)) == 1


def test_a_login_through_the_gateway_and_a_logout(office: Office, folder: Path, lone: dict[str, str]) -> None:
    """U7: what needs a login says so; after it calls succeed, and after the logout they say so again."""
    with serve(["--http", "127.0.0.1:0"], lone, folder) as serving:
        read(serving, "Ctrl-C")
        assert "needs login" in program(("servers",), lone, folder).stdout
        words = [sys.executable, "-m", "afoot", "servers", "login", "shop", "--no-browser", "--json"]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        with subprocess.Popen(words, env=lone, cwd=folder, **pipes) as command:
            assert command.stderr is not None
            assert command.stderr.readline() == "Log in here:\n"
            assert browse(command.stderr.readline().strip())[0] == 200
            said, errors = command.communicate(timeout=20)
        assert (json.loads(said), errors) == ({"server": "shop", "login": "logged in"}, "")
        assert program(("call", "whoami"), lone, folder).returncode == 0

        assert program(("servers", "logout", "shop"), lone, folder).stdout == "logged out of shop\n"
        assert logins(folder) == []
        failed = program(("call", "whoami"), lone, folder)
        assert failed.returncode == 1
        assert "run `afoot servers login shop`" in failed.stderr + failed.stdout


def test_what_cannot_be_logged_in_to_is_one_line(folder: Path, lone: dict[str, str]) -> None:
    """E5, U7: an unknown name gets the nearest; a login that is refused is exit 1."""
    done = program(("servers", "login", "shoppe"), lone, folder)
    assert (done.returncode, done.stderr) == (2, "afoot: unknown server 'shoppe'; nearest: shop\n")
    (folder / "afoot.toml").write_text('[servers.own]\ncommand = "true"\n')
    done = program(("servers", "login", "own"), lone, folder)
    assert (done.returncode, done.stderr) == (2, "afoot: server own takes no login: it has no url\n")


def test_a_refused_login_is_exit_1(office: Office, folder: Path, lone: dict[str, str]) -> None:
    """U7: with the reason."""
    office.is_refusing = True
    done = program(("servers", "login", "shop"), {**lone, "BROWSER": BROWSER}, folder)
    assert done.returncode == 1
    assert done.stderr.endswith("afoot: the login was refused: access_denied\n")
    assert logins(folder) == []


def test_a_logout_needs_no_gateway(office: Office, folder: Path, lone: dict[str, str]) -> None:
    """U7: and no config that still has the server."""
    assert program(("servers", "login", "shop"), {**lone, "BROWSER": BROWSER}, folder).returncode == 0
    (folder / "afoot.toml").unlink()
    done = program(("servers", "logout", "shop", "--json"), lone, folder)
    assert json.loads(done.stdout) == {"server": "shop", "had_login": True}
    assert logins(folder) == []
    assert program(("servers", "logout", "shop"), lone, folder).stdout == "nobody was logged in to shop\n"


@pytest.mark.parametrize("with_gateway", [True, False])
def test_all_logins_are_deleted_at_once(
    office: Office, folder: Path, lone: dict[str, str], with_gateway: bool
) -> None:
    """U7: with a gateway and without, and also where no config has the server any more."""
    (folder / "afoot.toml").write_text(
        "".join(
            f'[servers.{name}]\nurl = "{office.url}/mcp"\nauth = "oauth"\n'
            for name in ("shop", "second-shop")
        )
    )
    for name in ("shop", "second-shop"):
        done = program(("servers", "login", name), {**lone, "BROWSER": BROWSER}, folder)
        assert done.returncode == 0, done
    assert program(("logout",), lone, folder).returncode == 2
    assert program(("logout", "shop", "--all"), lone, folder).returncode == 2
    assert len(logins(folder)) == 2
    with serve(["--http", "127.0.0.1:0"], lone, folder) if with_gateway else nullcontext() as serving:
        if serving is not None:
            read(serving, "Ctrl-C")
            assert program(("call", "shop/whoami"), lone, folder).returncode == 0
        done = program(("logout", "--all"), lone, folder)
        assert sorted(done.stdout.splitlines()) == ["logged out of second-shop", "logged out of shop"], done
        assert logins(folder) == []
        if serving is not None:
            assert program(("servers",), lone, folder).stdout.count("needs login") == 2
        assert program(("logout", "--all"), lone, folder).stdout == "nobody was logged in to any server\n"
