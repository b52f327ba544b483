"""The files and the memory of a gateway: other users read neither, and a broken file is explained."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.attack.user.other_uid import NOBODY
from tests.e2e.gateway import Gateway, serving


def test_a_gateway_takes_the_rights_of_others_away_when_it_starts(tmp_path: Path) -> None:
    """S6, S1: after a backup was restored without its modes."""
    home = tmp_path / "home"
    home.mkdir(0o755)
    (home / "token").write_text("t" * 48)
    (home / "token").chmod(0o644)
    with serving(tmp_path) as gateway:
        assert home.stat().st_mode & 0o777 == 0o700
        assert (home / "token").stat().st_mode & 0o777 == 0o600
        assert "other users had rights there" in gateway.said()


def test_a_gateway_leaves_no_core_dump(gateway: Gateway) -> None:
    """S6: it would have every secret in it."""
    limits = Path(f"/proc/{gateway.process.pid}/limits").read_text().splitlines()
    [line] = [one for one in limits if one.startswith("Max core file size")]
    assert line.split()[4] == "0"


@pytest.mark.parametrize(
    ("name", "content"),
    [("key", "restored in par"), ("token", "admin"), ("key", "\u00e4"), ("token", "\u00e4")],
)
def test_a_broken_secret_is_one_line_at_the_start(tmp_path: Path, name: str, content: str) -> None:
    """S6: which file, and what to do; no traceback."""
    gateway = Gateway(tmp_path)
    (tmp_path / "home").mkdir(0o700)
    (tmp_path / "home" / name).write_text(content, "latin-1")
    done = subprocess.run(
        gateway.command("--http", "127.0.0.1:0"),
        env=gateway.environment, capture_output=True, timeout=60, check=False, text=True,
    )  # fmt: skip
    assert done.returncode != 0 and "Traceback" not in done.stderr
    assert f"home/{name}" in done.stderr.strip().splitlines()[-1] and "move it away" in done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to another user")
@pytest.mark.parametrize(
    ("owner", "says"), [(NOBODY - 1, "belongs to another user"), (NOBODY, "made"), (0, "cannot")]
)
def test_a_state_folder_of_another_user_is_not_used(owner: int, says: str) -> None:
    """S6: who made it first could replace every key and token in it."""
    use = (
        "import os; from afoot.config import state_folder; from afoot.errors import CallerError\n"
        f"os.setuid({NOBODY})\n"
        "try:\n    state_folder.operator_token(); print('made')\n"
        "except CallerError as error:\n    print(error)\n"
    )
    with tempfile.TemporaryDirectory() as folder:  # not below pytest's, which only root may enter
        Path(folder).chmod(0o755)
        home = Path(folder, "state")
        home.mkdir()
        home.chmod(0o755 if owner in (0, NOBODY) else 0o777)
        os.chown(home, owner, owner)
        done = subprocess.run(
            [sys.executable, "-c", use],
            env={**os.environ, "AFOOT_HOME": str(home)},
            capture_output=True, timeout=60, check=True, text=True,
        )  # fmt: skip
        assert says in done.stdout and (says == "made") == (home / "token").exists()
