"""`afoot tokens`: who else may use this gateway: named tokens, made, listed, revoked."""

import sys
import time
from typing import Annotated, Any

from cyclopts import App, Parameter

from afoot import state
from afoot.cli.calls import Json, dumped, width
from afoot.observe.terminal import at as moment
from afoot.observe.terminal import clean, cut
from afoot.serve.principal import CALL
from afoot.serve.tokens import Token, Tokens

app = App("tokens", default_parameter=Parameter(negative=(), show_default=False), help_format="plaintext")
DAY_S = 86_400.0


@app.default
@app.command(name="list")
def listed(*, json: Json = False) -> int:
    """List the tokens; their secrets are known to their owners alone."""
    found = _tokens().all()
    for one in found:
        print(dumped(_told(one)) if json else cut(_line(one), width()))
    if not found and not json:
        print("nobody else has a token; one is made by: afoot tokens add NAME")
    return 0


@app.command
def add(
    name: str,
    /,
    *,
    scope: Annotated[
        str, Parameter(help="call, watch, answer, admin: one, or several with commas between")
    ] = CALL,
    days: Annotated[float | None, Parameter(help="how long it is good; without: until it is revoked")] = None,
    json: Json = False,
) -> int:
    """Make a token, and print its secret, this once.

    Args:
        name: whose it is; calls that are made with it bear the name
    """
    scopes = [one.strip() for one in scope.split(",") if one.strip()]
    secret, token = _tokens().add(name, scopes, None if days is None else days * DAY_S)
    if json:
        print(dumped({**_told(token), "secret": secret}))
        return 0
    print(secret, flush=True)
    print(f"it is shown this once; sent as `Authorization: Bearer …` it is {token.name}", file=sys.stderr)
    return 0


@app.command
def revoke(name: str, /, *, json: Json = False) -> int:
    """Take a token back: whoever has it is let in no more.

    Args:
        name: its name, or the id that the list shows
    """
    token = _tokens().revoke(name)
    print(dumped(_told(token)) if json else f"revoked {token.name}")
    return 0


def _tokens() -> Tokens:
    """The running gateway reads the file whenever it has changed."""
    return Tokens(state.Kept("tokens.json", Token), time.time)


def _told(one: Token) -> dict[str, Any]:
    return {"id": one.id, "name": one.name, "scopes": one.scopes, "since": one.since, "expires": one.expires}


def _line(one: Token) -> str:
    until = "until it is revoked" if one.expires is None else f"until {moment(one.expires)}"
    if one.expires is not None and one.expires <= time.time():
        until = f"expired {moment(one.expires)}"
    return f"{one.id}  {clean(one.name)}  {', '.join(one.scopes)}  since {moment(one.since)}, {until}"
