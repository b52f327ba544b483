"""Runs of functions on workers, as Redis stores them: the messages of gateway and worker, and the scripts.

Docket carries a call's id, its attempt and JSON to one worker. All else goes through inboxes: what the
function says to whoever owns the call by then, and answers and cancels to the worker.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import DecodeError, Raw, Struct, json

from afoot.core.facts import Limits
from afoot.core.ports import Tool
from afoot.providers.isolation.frames import FromChild, ToChild

KEEP_S: Final = 3600  # for which an inbox that nobody reads is kept
RUN_FUNCTION: Final = "afoot_run_function"  # the name of the one task that Docket carries
VERSION: Final = 1  # of what is said here; a worker refuses a call of a later one

# Notes that a call wants this attempt run, before it is queued. The call may be too new to be on record.
WANT = """
local p, call, owner, attempt = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
redis.call('HSETNX', p .. 'owners', call, owner)
redis.call('HSET', p .. 'call:' .. call, 'want', attempt)
return 1
"""

# Lets one worker begin an attempt; gives the worker that has it: another one for a second delivery, and
# nothing for a call that is over or wants another attempt by now.
BEGIN_RUN = """
local p, call, attempt, worker = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local key = p .. 'call:' .. call
if redis.call('HEXISTS', p .. 'owners', call) == 0 then return false end
if redis.call('HGET', key, 'want') ~= attempt then return false end
redis.call('HSETNX', key, 'run', attempt .. ' ' .. worker)
local run = redis.call('HGET', key, 'run')
if run:sub(1, #attempt + 1) ~= attempt .. ' ' then
  run = attempt .. ' ' .. worker
  redis.call('HSET', key, 'run', run)
end
return run:sub(#attempt + 2)
"""

# Sends messages of a function to whoever owns its call; gives 0 if nobody does any more.
TELL_OWNER = """
local p, call = ARGV[1], ARGV[2]
local owner = redis.call('HGET', p .. 'owners', call)
if not owner then return 0 end
local inbox = p .. 'inbox:' .. owner
redis.call('XADD', inbox, '*', 'c', call, 'a', ARGV[3], 'w', ARGV[4], 'f', ARGV[5])
redis.call('EXPIRE', inbox, ARGV[6])
return 1
"""

# Sends a message to the worker that runs a call.
TELL_WORKER = """
local inbox = ARGV[1] .. 'inbox:' .. ARGV[2]
redis.call('XADD', inbox, '*', 'c', ARGV[3], 'a', ARGV[4], 'f', ARGV[5])
redis.call('EXPIRE', inbox, ARGV[6])
return 1
"""

_from_worker: json.Decoder[list[FromChild]] = json.Decoder(list[FromChild])
_to_worker: json.Decoder[ToChild] = json.Decoder(ToChild)


class OfferedTool(Struct, frozen=True, omit_defaults=True):
    """A tool of a worker, as gateways need it."""

    name: str
    definition: Raw
    digest: str
    limits: Limits = Limits()
    read_only: bool = False
    idempotent: bool = False
    destructive: bool = False
    concurrency: int = 0
    queue: int = 1000
    lifecycle: str = "off"
    scopes: Sequence[str] = ()
    requires: Mapping[str, object] = {}
    task: str = ""
    on_disconnect: str = "cancel"
    join: str = ""
    approval: str = ""


class WorkerInfo(Struct, frozen=True, omit_defaults=True):
    """A worker, as it describes itself."""

    host: str = ""
    pid: int = 0
    version: str = ""
    speaks: int = VERSION
    slots: int = 0  # calls at once
    running: int = 0
    draining: bool = False
    tools: Sequence[OfferedTool] = ()


def offer(tool: Tool) -> OfferedTool:
    """A tool as a worker offers it."""
    fields = {name: getattr(tool, name) for name in OfferedTool.__struct_fields__}
    return OfferedTool(**fields)


def tool_of(offered: OfferedTool, server: str, slots: int) -> Tool:
    """The tool that a gateway offers for it. It starts only when its start is on record (D3)."""
    fields = {name: getattr(offered, name) for name in OfferedTool.__struct_fields__}
    return Tool(server=server, server_concurrency=slots, starts=True, **fields)


def read_worker(description: bytes) -> WorkerInfo | None:
    """Decode the description that a worker gives of itself; None if its version differs."""
    try:
        found = json.decode(description, type=WorkerInfo)
    except DecodeError:
        return None
    return found if found.speaks == VERSION else None


def read_from_worker(body: bytes) -> list[FromChild]:
    """The messages of a function; raises DecodeError."""
    return _from_worker.decode(body)


def read_to_worker(body: bytes) -> ToChild:
    """A message for a function; raises DecodeError."""
    return _to_worker.decode(body)
