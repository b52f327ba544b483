"""Runs of functions on workers, as Redis stores them: the messages of gateway and worker, and the scripts.

Docket carries a call's id, its attempt and JSON to one worker. All else goes through inboxes: what the
function says to whoever owns the call by then, and answers and cancels to the worker. What the facts of a
call must have of it is also kept in a stream, `said:CALL`, until they do: the next owner reads it there.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec import DecodeError, Raw, Struct, json
from msgspec.structs import replace

from afoot.core.facts import Limits
from afoot.core.ports import Tool
from afoot.providers.isolation.frames import (
    AskQuestion,
    CancelCall,
    FromChild,
    InvokeTool,
    IpcMessage,
    RequestReply,
)
from afoot.store.redis.scripts import OWN

KEEP_S: Final = 3600  # for which an inbox that nobody reads is kept
LARGE_BODY: Final = 64 * 1024  # bytes; a larger message is not in the inbox, if it is kept
UNREADABLE: Final = (DecodeError, UnicodeDecodeError, RecursionError)  # by `json.decode` for any bytes
RUN_FUNCTION: Final = "afoot_run_function"  # the name of the one task that Docket carries
VERSION: Final = 2  # of what is said here; a worker refuses a call of a later one

# Notes that a call wants this attempt run, before it is queued; gives 0 if another owner has the call.
# The message to the worker is kept while the call lives: from it, the next owner knows what the tool was
# given.
WANT = (
    OWN
    + """
local call, attempt = ARGV[2], ARGV[5]
if not own(call, ARGV[3], tonumber(ARGV[4])) then return 0 end
redis.call('HSET', p .. 'call:' .. call, 'want', attempt)
redis.call('HSET', p .. 'task:' .. call, 'run', ARGV[6])
return 1
"""
)

# Takes this back, if no worker has begun the attempt; gives 1 if none will.
UNWANT = """
local p, call, owner, number, attempt = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4]), ARGV[5]
local h = redis.call('HMGET', p .. 'call:' .. call, 'o', 'n', 'want', 'run')
if h[1] ~= owner or tonumber(h[2]) ~= number or h[3] ~= attempt then return 0 end
if h[4] and h[4]:sub(1, #attempt + 1) == attempt .. ' ' then return 0 end
redis.call('HDEL', p .. 'call:' .. call, 'want')
return 1
"""

# Lets one delivery to a worker begin an attempt; gives the worker and the delivery that have it: others for a
# second delivery, and nothing for a call that is over or wants another attempt by now.
BEGIN_RUN = """
local p, call, attempt, run = ARGV[1], ARGV[2], ARGV[3], ARGV[4] .. ' ' .. ARGV[5]
local key = p .. 'call:' .. call
if redis.call('HEXISTS', p .. 'owners', call) == 0 then return false end
if redis.call('HGET', key, 'want') ~= attempt then return false end
local known = redis.call('HGET', key, 'run')
if known and known:sub(1, #attempt + 1) == attempt .. ' ' then return known:sub(#attempt + 2) end
redis.call('HSET', key, 'run', attempt .. ' ' .. run)
return run
"""

# Sends messages of a function to whoever owns its call. Those with a number are kept until the facts of the
# call have them; the same number again changes nothing. Gives 1; 2 if the call is over, and its last owner
# was told; 0 if nobody wants this attempt any more; -1 if Redis knows nothing of the call: it may be lost.
TELL_OWNER = """
local p, call, attempt, worker, number, body = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
local key = p .. 'call:' .. call
local h = redis.call('HMGET', key, 'want', 'run', 'o', 'e')
local mine = attempt .. ' ' .. worker .. ' '
if h[1] and h[1] ~= attempt then return 0 end
local owner = redis.call('HGET', p .. 'owners', call)
if not owner and not h[4] then return -1 end
if not h[2] and owner then
  redis.call('HSET', key, 'run', mine .. 'lost')  -- a Redis that came back without its newest second
elseif not h[2] or h[2]:sub(1, #mine) ~= mine then
  return 0
end
if owner and number ~= '' then
  redis.pcall('XADD', p .. 'said:' .. call, attempt .. '-' .. number, 'w', worker, 'f', body)
  if ARGV[8] == '1' then redis.call('HSET', key, 'done', attempt) end
end
local now, lease = redis.call('TIME')[1], redis.call('ZSCORE', p .. 'gateways', owner or h[3])
-- A dead gateway reads nothing any more; if it was only cut off, it reads what is kept.
if not lease or tonumber(lease) < tonumber(now) then return owner and 1 or 2 end
local inbox = p .. 'inbox:' .. (owner or h[3])
local entry = {'XADD', inbox, '*', 'c', call, 'a', attempt, 'w', worker, 'k', number}
if not owner or number == '' or #body <= tonumber(ARGV[9]) then
  entry[#entry + 1] = 'f'
  entry[#entry + 1] = body
end
redis.call(unpack(entry))
redis.call('EXPIRE', inbox, ARGV[7])
return owner and 1 or 2
"""

# Sends a message to the worker that runs a call, and keeps an answer that it has; gives 0 if the call belongs
# to another owner by now.
TELL_WORKER = """
local p, worker, call, owner, number = ARGV[1], ARGV[2], ARGV[3], ARGV[4], tonumber(ARGV[5])
local h = redis.call('HMGET', p .. 'call:' .. call, 'o', 'n')
if h[1] ~= owner or tonumber(h[2]) ~= number then return 0 end
if ARGV[9] ~= '' and redis.call('HEXISTS', p .. 'owners', call) == 1 then
  redis.call('HSET', p .. 'task:' .. call, ARGV[9], ARGV[10])
end
local inbox = p .. 'inbox:' .. worker
redis.call('XADD', inbox, '*', 'c', call, 'a', ARGV[6], 'f', ARGV[7])
redis.call('EXPIRE', inbox, ARGV[8])
return 1
"""


class OwnerChanged(IpcMessage, frozen=True, tag="owner"):
    """Another gateway owns the call now, and asks for the requests of the function that are open."""


class OpenRequests(IpcMessage, frozen=True, tag="open"):
    """The requests of a function that had no reply when its call had another owner."""

    asked: Sequence[AskQuestion] = ()
    invoked: Sequence[InvokeTool] = ()


FromWorker = FromChild | OpenRequests
ToWorker = CancelCall | RequestReply | OwnerChanged

_from_worker: json.Decoder[list[FromWorker]] = json.Decoder(list[FromWorker])
_to_worker: json.Decoder[ToWorker] = json.Decoder(ToWorker)


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
    per_process: bool = False
    queue: int = 1000
    lifecycle: str = "off"
    scopes: Sequence[str] = ()
    requires: Mapping[str, object] = {}
    task: str = ""
    on_disconnect: str = "cancel"
    join: str = ""
    approval: str = ""
    worker: str = ""  # the label of the workers that run it


class _Definition(Struct):
    """The least that a definition has."""

    name: str
    inputSchema: Mapping[str, Any]


class WorkerInfo(Struct, frozen=True, omit_defaults=True):
    """A worker, as it describes itself."""

    host: str = ""
    pid: int = 0
    version: str = ""
    speaks: int = VERSION
    slots: int = 0  # calls at once
    label: str = ""  # of the tools that it runs; empty: those that ask for none
    running: int = 0
    draining: bool = False
    tools: Sequence[OfferedTool] = ()


def offer(tool: Tool) -> OfferedTool:
    """A tool as a worker offers it."""
    fields = {name: getattr(tool, name) for name in OfferedTool.__struct_fields__}
    return OfferedTool(**fields)


def tool_of(offered: OfferedTool, server: str) -> Tool:
    """The tool that a gateway offers for it. It starts only when its start is on record (D3)."""
    fields = {name: getattr(offered, name) for name in OfferedTool.__struct_fields__}
    return Tool(server=server, starts=True, **fields)


def read_worker(description: bytes) -> WorkerInfo | None:
    """Decode the description that a worker gives of itself; None if its version differs."""
    try:
        found = json.decode(description, type=WorkerInfo)
    except UNREADABLE:
        return None
    if found.speaks != VERSION:
        return None
    return replace(found, tools=[tool for tool in found.tools if _is_definition(tool.definition)])


def _is_definition(body: Raw) -> bool:
    """Whether this defines a tool: one that does not would keep all other tools from being offered."""
    try:
        json.decode(body, type=_Definition)
    except UNREADABLE:
        return False
    return True


def read_from_worker(body: bytes) -> list[FromWorker]:
    """The messages of a function; raises DecodeError."""
    return _from_worker.decode(body)


def read_to_worker(body: bytes) -> ToWorker:
    """A message for a function; raises DecodeError."""
    return _to_worker.decode(body)
