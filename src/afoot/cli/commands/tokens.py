"""`afoot tokens` manages access tokens in the token file, which the gateway reads again when it changes."""

import sys
import time
from typing import Annotated, Any

from cyclopts import App, Parameter

from afoot.cli.options import JsonOption
from afoot.cli.terminal.listing import output_width, to_json_line
from afoot.cli.terminal.text import clean, format_time, truncate
from afoot.config import state_folder
from afoot.serve.access.principal import CALL
from afoot.serve.access.tokens import NamedToken, NamedTokens

DAY_S = 86_400.0
tokens_app = App(
    "tokens", default_parameter=Parameter(negative=(), show_default=False), help_format="plaintext"
)


@tokens_app.default
@tokens_app.command(name="list")
def list_tokens(*, json: JsonOption = False) -> int:
    """List the tokens. Their secrets are not stored."""
    found = _token_store().all()
    for one in found:
        print(to_json_line(_token_view(one)) if json else truncate(_token_line(one), output_width()))
    if not found and not json:
        print("nobody else has a token; one is made by: afoot tokens add NAME")
    return 0


@tokens_app.command
def add(
    name: str,
    /,
    *,
    scope: Annotated[
        str, Parameter(help="call, watch, answer, admin, or a scope of your tools; several with commas")
    ] = CALL,
    days: Annotated[
        float | None, Parameter(help="days until it expires; default: until it is revoked")
    ] = None,
    renew: Annotated[
        bool, Parameter(help="a new secret for the same person: an older token with this name ends")
    ] = False,
    json: JsonOption = False,
) -> int:
    """Make a token and print its secret, this one time only.

    Args:
        name: the owner's name; calls with this token show it
    """
    scopes = [one.strip() for one in scope.split(",") if one.strip()]
    secret, token = _token_store().add(name, scopes, None if days is None else days * DAY_S, renew)
    if json:
        print(to_json_line({**_token_view(token), "secret": secret}))
        return 0
    print(secret, flush=True)
    print(f"it is shown this once; sent as `Authorization: Bearer …` it is {token.name}", file=sys.stderr)
    return 0


@tokens_app.command(name="revoke")
def revoke_token(name: str, /, *, json: JsonOption = False) -> int:
    """Revoke a token: its owner is no longer let in.

    Args:
        name: its name, or the id that the list shows
    """
    token = _token_store().revoke(name)
    print(to_json_line(_token_view(token)) if json else f"revoked {token.name}")
    return 0


def _token_store() -> NamedTokens:
    """The token file; the running gateway reads it again when it has changed."""
    return NamedTokens(state_folder.StoredList("tokens.json", NamedToken), time.time)


def _token_view(one: NamedToken) -> dict[str, Any]:
    return {"id": one.id, "name": one.name, "scopes": one.scopes, "since": one.since, "expires": one.expires}


def _token_line(one: NamedToken) -> str:
    until = "until it is revoked" if one.expires is None else f"until {format_time(one.expires)}"
    if one.expires is not None and one.expires <= time.time():
        until = f"expired {format_time(one.expires)}"
    return f"{one.id}  {clean(one.name)}  {', '.join(one.scopes)}  since {format_time(one.since)}, {until}"
