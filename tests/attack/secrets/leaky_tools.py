"""Tools that tell everything they are given, in every way a tool has."""

import json
import logging
import threading
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

import afoot
from afoot import Context, ToolError

RECEIVED = Path(__file__).parent.parent / "received.json"  # beside the folder that is searched
Secret = Annotated[str, Field(json_schema_extra={"writeOnly": True})]


def _crash(text: str) -> None:
    raise ValueError(f"in a thread {text} secret=plantedvaluetoolthreadzq")


def _tell(ctx: Context, given: object) -> None:
    print(f"printed {given}")
    logging.getLogger("bank").error("logged %s", given)
    crashing = threading.Thread(target=_crash, args=(f"{given}",))
    crashing.start()
    crashing.join()
    ctx.log(f"told {json.dumps(given)}, token: plantedvaluetoollogzq")
    ctx.report(1, 2, f"reported {given} api_key=plantedvaluetoolprogresszq")
    ctx.report(2, 2, "with data", data={"said": f"{given}"})


@afoot.tool
async def leak_all(ctx: Context, given: dict[str, Any], door: Secret = "", fails: str = "") -> int:
    """Tells what it is given, and then ends as it is told."""
    if door:
        RECEIVED.write_text(json.dumps({**given, "door": door}))
    _tell(ctx, {**given, "door": door})
    if fails == "crash":
        raise RuntimeError(f"with {given} {door} password=plantedvaluetoolcrashzq")
    if fails == "error":
        raise ToolError(f"{given} {door} at https://me:plantedvaluetoolerrorzq@host.invalid/")
    return 1


@afoot.tool
async def ask_and_leak(ctx: Context) -> int:
    """Asks for secrets, and tells them."""
    properties = {"password": {"type": "string"}, "word": {"type": "string", "writeOnly": True}}
    answer = await ctx.ask("who are you?", {"type": "object", "properties": properties})
    _tell(ctx, answer.content)
    raise RuntimeError(f"with {answer.content}")
