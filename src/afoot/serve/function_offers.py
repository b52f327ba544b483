"""`FunctionOffers` are the resources and prompts of this gateway's own functions (F3).

A read, and a prompt that is filled in, is a call of the engine: the surfaces open it, follow it and answer
with its end. Completions start no call. To the `ResourceCatalog` this is one more server, and it comes first.
"""

from collections.abc import Callable, Mapping, Sequence

import msgspec
from msgspec import Raw, Struct

from afoot.config.tables import LOCAL_SERVER
from afoot.core.names import PROMPT_PREFIX, RESOURCE_PREFIX
from afoot.core.ports import CallOrigin, Tool
from afoot.engine.engine import Engine, Submission
from afoot.engine.live_call import LiveCall
from afoot.errors import CallerError, MissingScope, ToolError, UnknownName
from afoot.providers.offers.provider import OfferProvider
from afoot.serve.resources import AskCaller
from afoot.wire import resources as wire
from afoot.wire.jsonrpc import INTERNAL_ERROR, INVALID_PARAMS, Fault
from afoot.wire.resources import JsonObject, Lookup
from afoot.wire.results import Capabilities

OWNER = CallOrigin("python", is_owner=True)
MAX_COMPLETIONS = 100  # of one answer, as MCP has it

Callback = Callable[[str, str | None], object]


class OwnLookup(Struct, frozen=True):
    """The call that answers a lookup: its provider, its function, and its arguments."""

    provider: OfferProvider
    tool: Tool
    arguments: Raw


class FunctionOffers:
    """The resources and prompts of functions, and those who listen to their changes."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._provider = OfferProvider(())
        self._callbacks: list[Callback] = []
        engine.resource_listeners.append(self.changed)

    def replace(self, provider: OfferProvider) -> None:
        """Offer these from now on, and notify clients of changed lists; running calls continue."""
        before, self._provider = self._provider, provider
        if (before.resources, before.templates) != (provider.resources, provider.templates):
            self._tell("resources", None)
        if before.prompts != provider.prompts:
            self._tell("prompts", None)

    def changed(self, uri: str) -> None:
        """Tell the listeners of this resource that it has changed."""
        self._tell("resource", uri)

    @property
    def is_empty(self) -> bool:
        """Whether nothing is offered."""
        return not self._provider

    @property
    def problems(self) -> list[str]:
        """The functions that could not be offered, and why."""
        return self._provider.problems

    @property
    def name(self) -> str:
        """The server to which functions belong."""
        return LOCAL_SERVER

    @property
    def state(self) -> str:
        """`ready`, as it needs no connection."""
        return "ready"

    @property
    def capabilities(self) -> Mapping[str, object]:
        """The capabilities of an MCP server that has all of this."""
        return {
            "resources": {"subscribe": True, "listChanged": True},
            "prompts": {"listChanged": True},
            "completions": {},
        }

    @property
    def resources(self) -> Sequence[JsonObject]:
        """The resources with a fixed URI."""
        return self._provider.resources

    @property
    def templates(self) -> Sequence[JsonObject]:
        """The templates of URIs."""
        return self._provider.templates

    @property
    def prompts(self) -> Sequence[JsonObject]:
        """The prompts."""
        return self._provider.prompts

    def has(self, uri: str) -> bool:
        """Whether a function reads this URI, or has it as its template."""
        return self._provider.find_referenced({"uri": uri}) is not None

    def find(self, lookup: Lookup) -> OwnLookup | None:
        """The call that answers this lookup; None if it is a completion, or no function of ours answers."""
        subject = lookup.subject
        if lookup.method == "resources/read":
            tool = self._provider.find_resource(subject)
            arguments: object = {"uri": subject}
        elif lookup.method == "prompts/get":
            tool = self._provider.find_prompt(subject.removeprefix(f"{LOCAL_SERVER}/"))
            arguments = lookup.params.get("arguments") or dict[str, object]()
        else:
            return None
        return None if tool is None else OwnLookup(self._provider, tool, Raw(msgspec.json.encode(arguments)))

    def hidden_from(self, origin: CallOrigin) -> set[str]:
        """The URIs, templates and names of prompts whose scopes this caller lacks (F1)."""
        prefixes = RESOURCE_PREFIX, PROMPT_PREFIX
        return {
            tool.name.removeprefix(prefixes[0]).removeprefix(prefixes[1])
            for tool in self._provider.tools()
            if tool.scopes and origin.lacks(tool.scopes)
        }

    def is_hidden(self, uri: str, origin: CallOrigin) -> bool:
        """Whether a function reads this URI only for callers with scopes that this one lacks (F1)."""
        tool = self._provider.find_resource(uri)
        return tool is not None and bool(tool.scopes) and bool(origin.lacks(tool.scopes))

    def check_lookup(self, lookup: Lookup, origin: CallOrigin) -> None:
        """Raise MissingScope if what is looked up is of our own functions, and for other callers.

        A completion is judged by the offer that completes it: the text of a template may fit another one.
        """
        own = self.find(lookup)
        tool = None if own is None else own.tool
        if lookup.method == "completion/complete" and isinstance(ref := lookup.params.get("ref"), dict):
            tool = self._provider.find_referenced(_own_ref(ref))
        _check_scopes(tool, lookup.caller, origin)

    def check_watch(self, uri: str, caller: str, origin: CallOrigin) -> None:
        """Raise MissingScope if the resource with this URI is for other callers."""
        _check_scopes(self._provider.find_resource(uri), caller, origin)

    def called(self, name: str) -> tuple[OfferProvider, Tool] | None:
        """The offer whose calls have this name; None if there is none."""
        tool = next((tool for tool in self._provider.tools() if tool.name == name), None)
        return None if tool is None else (self._provider, tool)

    async def request(
        self, method: str, params: JsonObject, caller: str = "", ask: AskCaller | None = None
    ) -> JsonObject:
        """Answer a lookup whole, for a caller that follows no call; raises Fault.

        What a function asks meanwhile is a question for the operator.
        """
        if method == "completion/complete":
            return await self._complete(params)
        subject = str(params.get("uri" if method == "resources/read" else "name"))
        lookup = Lookup(0, method, params, subject, caller, Capabilities())
        return await self.answer_of(self.submit(lookup, OWNER), method)

    async def answer_of(self, live: LiveCall, method: str) -> JsonObject:
        """The contents or the messages of a call, once it has ended; raises Fault."""
        try:
            end = await self._engine.wait_for_end(live)
        except BaseException:  # nobody waits for it any more
            self._engine.cancel(live, "caller", "the caller cancelled it")
            raise
        if end.failure is not None:
            raise wire.own_failure(method, live.call, end.failure, modern=True)
        assert end.result is not None, "a call without a failure has a result"
        found: JsonObject = msgspec.json.decode(msgspec.json.encode(wire.own_fields(method, end.result)))
        return found

    def submit(self, lookup: Lookup, origin: CallOrigin) -> LiveCall:
        """Open the call of a lookup; raises Fault, MissingScope."""
        own = self.find(lookup)
        if own is None:
            raise wire.unknown_resource(lookup.subject)
        offer = own.provider, own.tool
        submission = Submission(own.tool.name, own.arguments, lookup.caller, offer=offer, origin=origin)
        try:
            return self._engine.submit(submission)
        except MissingScope:
            raise
        except CallerError as error:
            raise Fault(INTERNAL_ERROR, str(error), status=503) from None

    def listen(self, callback: Callback) -> Callable[[], object]:
        """Call a function for each change; the returned function ends this."""
        self._callbacks.append(callback)
        return lambda: self._callbacks.remove(callback)

    async def subscribe(self, uri: str) -> None:
        """Do nothing: every change is told; raises Fault for a URI that no function reads."""
        if not self.has(uri):
            raise wire.unknown_resource(uri)

    async def unsubscribe(self, uri: str) -> None:
        """Do nothing."""

    async def _complete(self, params: JsonObject) -> JsonObject:
        ref, argument = params.get("ref"), params.get("argument")
        assert isinstance(ref, dict) and isinstance(argument, dict)  # both were checked when it was read
        context = params.get("context")
        given = context.get("arguments") if isinstance(context, dict) else None
        try:
            values = await self._provider.complete(
                ref, str(argument["name"]), str(argument["value"]), given if isinstance(given, dict) else {}
            )
        except UnknownName as error:
            raise Fault(INVALID_PARAMS, f"params: {error}", data={"nearest": error.nearest}) from None
        except ToolError as error:
            raise Fault(INTERNAL_ERROR, error.message, status=200) from None
        shown = values[:MAX_COMPLETIONS]
        more = len(values) > len(shown)
        return {"completion": {"values": shown, "total": len(values), "hasMore": more}}

    def _tell(self, kind: str, uri: str | None) -> None:
        for callback in list(self._callbacks):
            callback(kind, uri)


def _own_ref(ref: JsonObject) -> JsonObject:
    """The reference of a completion as our functions know it: the name of a prompt without its server."""
    name = ref.get("name")
    return {**ref, "name": name.removeprefix(f"{LOCAL_SERVER}/")} if isinstance(name, str) else ref


def _check_scopes(tool: Tool | None, caller: str, origin: CallOrigin) -> None:
    if tool is not None and tool.scopes and (lacking := origin.lacks(tool.scopes)):
        raise MissingScope(tool.name, caller, lacking)
