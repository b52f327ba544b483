"""`ctx.caller` and `ctx.headers`: who calls, as a test sets it and as a tool sees it."""

import pytest

import afoot
from afoot import Caller, Context
from afoot.core.facts import Finished
from afoot.errors import MissingScope
from afoot.testing import run, try_tool


@afoot.tool
async def greet(ctx: Context) -> str:
    """Greet the caller."""
    return f"{ctx.caller.id} {ctx.caller.claims.get('team')} {ctx.headers.get('x-tenant')}"


@afoot.tool(scopes=["billing", "refunds"])
def refund(ctx: Context) -> bool:
    """Refund something."""
    return ctx.caller.has_scope("anything")


def test_a_test_says_who_calls() -> None:
    """F1: by default the gateway's own user."""
    assert try_tool(greet).result == "local None None"
    ada = Caller("ada", claims={"team": "blue"})
    assert try_tool(greet, caller=ada, headers={"X-Tenant": "acme"}).result == "ada blue acme"


def test_scopes_are_needed_in_tests_too() -> None:
    """F1: the error names all that are missing; the gateway's own user has every scope."""
    with pytest.raises(MissingScope, match="the scope `refunds` is needed for refund, and ada has no token"):
        try_tool(refund, caller=Caller("ada", scopes={"billing"}))
    assert try_tool(refund, caller=Caller("ada", scopes={"billing", "refunds"})).result == {"result": False}
    assert try_tool(refund).result == {"result": True}


def test_a_child_call_has_the_caller_of_its_parent() -> None:
    """F1, S3: a tool that calls a tool lends it no scopes."""

    @afoot.tool
    async def outer(ctx: Context) -> str:
        """Call the tool that needs scopes."""
        return str(await ctx.call("refund"))

    async def through(caller: Caller) -> Finished:
        async with afoot.Gateway(outer, refund) as gateway:
            end = (await gateway.call("outer", caller=caller)).end
            assert end is not None
            return end

    refused = run(through(Caller("ada")))
    assert refused.outcome == "failed" and "`billing`, `refunds`" in str(refused.failure)
    assert run(through(Caller("ada", scopes={"billing", "refunds"}))).outcome == "ok"


def test_a_caller_that_is_printed_tells_no_claims() -> None:
    """S4: a tool may log it."""
    shown = repr(Caller("ada", "editor", "1", {"billing"}, {"email": "ada@example.org"}, "mcp-http"))
    assert "ada@example" not in shown and "billing" not in shown and "editor" in shown


@pytest.mark.parametrize("scopes", ["billing", [""], ["a b"], [1], 7])
def test_scopes_of_a_tool_are_a_list_of_words(scopes: object) -> None:
    """E4: text alone would be a list of letters."""
    with pytest.raises(afoot.CallerError, match="scopes must be a list of texts"):
        afoot.tool(scopes=scopes)(lambda: None)  # pyrefly: ignore
