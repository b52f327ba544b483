"""A caller's token is between that caller and us: nobody behind us ever learns it."""

import msgspec

from afoot.core.ports import Run
from tests.serve.fake_gateway import call_request, faked, site_of, wanted

TOKEN = "a-token-of-the-caller"


async def nosy(run: Run) -> str:
    """Reports, and tells everything that it can see of its run."""
    run.report(1, 2, "half")
    seen = {name: getattr(run, name) for name in dir(Run) if not name.startswith("_")}
    return " ".join(f"{name}={value!r}" for name, value in seen.items())


@faked
async def test_a_provider_never_sees_the_callers_token() -> None:
    """T2: a further hop needs a token of its own, as it cannot have this one; nor has the history."""
    async with site_of(nosy) as gateway:
        tape = await call_request(gateway, wanted(token=TOKEN))
        assert TOKEN in str(tape.result["_meta"])
        assert TOKEN not in str(tape.result["content"])
        facts = await gateway.engine.journal.facts(tape.result["_meta"]["dev.afoot/call"])
        assert facts and TOKEN.encode() not in msgspec.json.encode(facts)
