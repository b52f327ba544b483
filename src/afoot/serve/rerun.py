"""A call that somebody wants once more: a new one, linked to the old, and approved anew."""

from msgspec import UNSET, Raw, Struct, UnsetType, json

from afoot.core.redact import redacted
from afoot.engine.engine import Submission
from afoot.serve.calls import Start, asked, check
from afoot.serve.request import Request, Wrong
from afoot.serve.view import view


class Rerun(Struct, frozen=True, forbid_unknown_fields=True):
    """The same tool once more, with the same arguments or with these."""

    arguments: Raw | UnsetType = UNSET


async def rerun(request: Request) -> None:
    """Start a new call of the same tool, linked to this one, and approved anew."""
    want = await request.body(Rerun)
    site = request.site
    before = (await asked(request)).call
    arguments = before.opened.arguments if want.arguments is UNSET else want.arguments
    _complete(before.opened.arguments, arguments)
    start = Start(before.opened.tool, arguments or Raw(b"{}"))
    check(start, bytes(arguments or b"{}"), site.settings.max_arguments_bytes)
    live = site.engine.submit(
        Submission(start.tool, arguments or Raw(b"{}"), request.who.caller, rerun_of=before.id)
    )
    await site.recorded()  # what is acknowledged is not lost (H1)
    place = (b"location", f"/api/calls/{live.call.id}".encode())
    await request.answer(202, view(live.call, site.engine.clock.now()), place)


def _complete(before: Raw, arguments: Raw) -> None:
    """What was a secret is not kept, so it has to be given again; raises Wrong naming each field."""
    missing = [one for one in redacted(before) if _lacks(arguments, one)]
    if missing := sorted({*missing, *redacted(arguments)}):
        told = [
            {"field": one, "message": "was a secret, which is not kept: give it again"} for one in missing
        ]
        text = f"arguments: {', '.join(missing)} must be given again: secrets are not kept"
        raise Wrong(422, text, code="redacted", fields=told)


def _lacks(arguments: Raw, pointer: str) -> bool:
    """Whether a field is missing where there is something to hold it."""
    at = json.decode(arguments or b"{}")
    *above, last = [one.replace("~1", "/").replace("~0", "~") for one in pointer.split("/")[1:]]
    for step in above:
        if isinstance(at, list) and step.isdecimal() and int(step) < len(at):
            at = at[int(step)]
        elif isinstance(at, dict) and step in at:
            at = at[step]
        else:
            return False
    return isinstance(at, dict) and last not in at
