"""What the tests of installing and undoing do: write, read, and look at afoot.toml."""

import tomllib
from typing import Any

from afoot.config import jsonc
from afoot.hosts import install, undo
from afoot.hosts.plan import InstallPlan, InstallRequest


def read(wish: InstallRequest) -> Any:
    """The host's file as a value."""
    text = wish.file.read_bytes().decode()
    return tomllib.loads(text) if wish.host.is_toml else jsonc.loads(text)


def installed(wish: InstallRequest, *, is_adopting: bool = False) -> InstallPlan:
    """Do it."""
    plan = install.plan_install(wish, is_adopting=is_adopting)
    plan.apply_install()
    return plan


def undone(wish: InstallRequest) -> InstallPlan:
    """Undo it."""
    plan = undo.plan_undo(wish)
    plan.apply_undo()
    return plan


def tables() -> dict[str, Any]:
    """The servers in afoot.toml."""
    return tomllib.loads(config_text()).get("servers", {})


def config_text() -> str:
    """The text of afoot.toml."""
    file = install.config_file(None)
    return file.read_text() if file.exists() else ""
