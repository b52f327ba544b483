"""What the tests of installing and undoing do: write, read, and look at afoot.toml."""

import tomllib
from typing import Any

from afoot import jsonc
from afoot.hosts import install, undo
from afoot.hosts.plan import Plan, Wish, put_in, take_out


def read(wish: Wish) -> Any:
    """The host's file as a value."""
    text = wish.file.read_bytes().decode()
    return tomllib.loads(text) if wish.host.is_toml else jsonc.loads(text)


def installed(wish: Wish, *, is_adopting: bool = False) -> Plan:
    """Do it."""
    plan = install.plan(wish, is_adopting=is_adopting)
    put_in(plan)
    return plan


def undone(wish: Wish) -> Plan:
    """Undo it."""
    plan = undo.plan(wish)
    take_out(plan)
    return plan


def tables() -> dict[str, Any]:
    """The servers in afoot.toml."""
    return tomllib.loads(config_text()).get("servers", {})


def config_text() -> str:
    """The text of afoot.toml."""
    file = install.config_file(None)
    return file.read_text() if file.exists() else ""
