"""`GatewayState` is the state that MCP, the HTTP API and the extension of one gateway share."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from weakref import WeakValueDictionary

from msgspec import Raw, Struct, field, json

from afoot.config.client_limits import ClientLimits
from afoot.config.settings import Settings
from afoot.core.call import INSTEAD, Call, ProgressSeries
from afoot.core.facts import Answer, Question
from afoot.core.ports import CallOrigin, Cluster, TimerHandle, Tool
from afoot.core.sealing_keys import SealingKey
from afoot.engine.engine import RETRY_HISTORY_S, Engine, Submission
from afoot.engine.followers import Wakeup
from afoot.engine.live_call import Claim, LiveCall
from afoot.engine.recovery import load_call
from afoot.errors import AfootError, CallerError, MissingScope, OverQuota, Refused, StoreError, UnknownName
from afoot.observe.prometheus import KeptFigures
from afoot.providers.browser.extension import ExtensionLinks
from afoot.providers.browser.provider import BrowserProvider
from afoot.providers.upstream.servers import Servers
from afoot.serve.access.browser_sessions import BrowserSessions
from afoot.serve.access.tokens import TokenChecks
from afoot.serve.caller_presence import Callers, known_requests
from afoot.serve.function_offers import FunctionOffers
from afoot.serve.resources import ChangeListener, ResourceCatalog, ServerResources
from afoot.serve.unread_results import UnreadResults
from afoot.wire import mcp_2026, sealed_state
from afoot.wire.jsonrpc import INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, Fault
from afoot.wire.mcp_2026 import missing_capability
from afoot.wire.passthrough import declared_extensions, sorted_extensions
from afoot.wire.resources import Lookup
from afoot.wire.results import Capabilities, ErrorMeta, ToolCall, read_early_answer

INSTRUCTIONS_MAX_CHARS = 4000  # of one server's instructions
FIRST_OPEN_WAIT_S = 10.0  # how long a list waits for a server that was never seen before
MAX_EXTENSIONS_BYTES = 16 * 1024  # that a caller declares; they are kept, and tell connections apart
CLIENT_LEFT = "the client closed the stream"


def unknown_key() -> Fault:
    """The answer to a state whose key is unknown."""
    return Fault(
        INVALID_PARAMS, "params.requestState: not one of ours, or sealed with a key that has expired"
    )


class PendingCancel(Struct, frozen=True):
    """A cancel that comes at a time, unless its timer is cancelled before; `by`: who asked for it."""

    due: float
    timer: TimerHandle
    by: str = ""


class GatewayState(Struct):
    """The engine, the settings in force, and the secrets of one gateway."""

    engine: Engine
    settings: Settings
    version: str
    key: bytes = b""  # of digests in the history; if the gateway is alone, it also seals what clients keep
    token: str = ""  # the operator's
    url: str = ""
    public: str = ""  # the address by which others know us
    instructions: str = ""
    counters: dict[str, int] = {}  # of odd things that happened
    wakeups: list[Wakeup] = []  # of open streams; woken when the gateway closes, so that they end
    info: Raw = Raw()  # name and version of this server, encoded
    param_headers: dict[str, list[mcp_2026.ParamHeader]] = {}  # by tool digest
    servers: Servers | None = None
    browser: BrowserProvider | None = None
    lines: ExtensionLinks | None = None  # browsers that the extension connects
    problems: list[str] = []  # what is wrong with the settings that were read last
    resource_servers: Callable[[], Sequence[ServerResources]] = tuple  # the servers there are now
    made_resource_catalog: ResourceCatalog | None = None
    made_function_offers: FunctionOffers | None = None
    made_callers: Callers | None = None
    # One for each caller and idempotency key that is being looked up.
    key_locks: WeakValueDictionary[tuple[str, str], asyncio.Lock] = field(default_factory=WeakValueDictionary)
    watching: Counter[str] = field(default_factory=Counter)  # streams of everything, by session
    browser_sessions: BrowserSessions | None = None  # browsers that the operator let in
    token_checks: TokenChecks | None = None  # for others to prove who they are
    started_at: float = 0.0
    client_limits: ClientLimits = field(default_factory=ClientLimits)  # how long clients wait, by name
    made_unread: UnreadResults | None = None
    cluster: Cluster | None = None  # if this gateway is one of several
    figures: KeptFigures | None = None  # of its calls, for `/metrics`
    pending_cancels: dict[str, PendingCancel] = {}  # by call

    def __post_init__(self) -> None:
        self.info = Raw(json.encode({"name": "afoot", "version": self.version}))
        self.started_at = self.engine.clock.now()

    def cancel_due(self, call: Call) -> float | None:
        """The time of a pending cancel of this call; None if there is none, or if the call is over."""
        pending = self.pending_cancels.get(call.id)
        return None if pending is None or call.end is not None else pending.due

    @property
    def resource_catalog(self) -> ResourceCatalog:
        """The resources, prompts and completions of all servers."""
        if self.made_resource_catalog is None:
            self.made_resource_catalog = ResourceCatalog(
                self.engine.catalog, lambda: self.resource_servers(), self.function_offers
            )
        return self.made_resource_catalog

    @property
    def function_offers(self) -> FunctionOffers:
        """The resources and prompts of our own functions."""
        if self.made_function_offers is None:
            self.made_function_offers = FunctionOffers(self.engine)
        return self.made_function_offers

    @property
    def unread(self) -> UnreadResults:
        """The large results that are being sent."""
        if self.made_unread is None:
            self.made_unread = UnreadResults(lambda: self.settings.max_unread_bytes)
        return self.made_unread

    @property
    def callers(self) -> Callers:
        """The callers that are connected."""
        if self.made_callers is None:
            self.made_callers = Callers(self.engine)
        return self.made_callers

    def instructions_for_models(self) -> str:
        """Our instructions, and those of each server in its own words."""
        servers = self.servers.list() if self.servers is not None else []
        told = [
            f"{one.name}: {one.instructions[:INSTRUCTIONS_MAX_CHARS]}" for one in servers if one.instructions
        ]
        return "\n\n".join([self.instructions, *told] if self.instructions else told)

    def headers_for_tools(self, headers: Mapping[str, str]) -> dict[str, str]:
        """The headers of a request that tools may see, by their names in lower case (F1)."""
        return {name: headers[name] for name in self.settings.tool_headers if name in headers}

    def count(self, what: str, times: int = 1) -> None:
        """Count something odd that happened."""
        self.counters[what] = self.counters.get(what, 0) + times

    def leave_reason(self, caller: str) -> str:
        """Why a request of this caller is not answered: it has left, or its token has expired (S2)."""
        ended = None if self.token_checks is None else self.token_checks.ending.get(caller)
        return ended or CLIENT_LEFT

    async def wait_or_keep_alive(self, wakeup: Wakeup) -> None:
        """Wait until the wakeup is woken, or the next keepalive is due."""
        clock = self.engine.clock
        timer = clock.at(clock.now() + self.settings.keepalive_s, wakeup.wake)
        await wakeup.wait()
        timer.cancel()

    async def wait_until_servers_ready(self) -> None:
        """Wait, within reason, for servers that are opened for the first time: a host may ask only once."""
        if self.servers is not None:
            await self.servers.wait_until_opened(FIRST_OPEN_WAIT_S)

    async def wait_until_recorded(self) -> None:
        """Wait until all facts so far are stored in the history.

        So it is for commands to other gateways of a cluster.
        """
        await self.engine.recorder.recorded()
        if self.engine.others is not None:
            await self.engine.others.sent()

    @asynccontextmanager
    async def turn_of_key(self, caller: str, key: str) -> AsyncIterator[None]:
        """Let requests of a caller with one idempotency key take turns; raises Fault."""
        async with self.key_locks.setdefault((caller, key), asyncio.Lock()):
            if self.engine.others is None:
                yield
                return
            try:
                async with self.engine.others.turn(caller, key):
                    yield
            except StoreError as error:
                told = ErrorMeta("unavailable", "history_unreadable", True, RETRY_HISTORY_S)
                text = f"nobody knows whether this key has a call; nothing was opened: {error}"
                raise Fault(INTERNAL_ERROR, text, data={"dev.afoot/error": told}, status=503) from None

    async def own_call(self, call_id: str, caller: str) -> LiveCall:
        """A call that this caller opened, living or from the history.

        Raises UnknownName, the same for a call that does not exist and for one of somebody else (S3).
        """
        live = await load_call(self.engine, call_id)
        if live.call.opened.caller != caller:
            raise UnknownName("call", call_id)
        return live

    def decline_unanswerable(self, questions: Iterable[Question], able: Capabilities | None = None) -> None:
        """Decline the questions for a model or for roots that this caller, `able` to do so much, lacks.

        Nobody else could answer them: an operator has no model and no roots. What to do instead is asked only
        of the one who rejected a call.
        """
        for one in list(questions):
            is_for_caller = one.kind in ("sample", "roots") or one.key == INSTEAD
            if is_for_caller and not (able is not None and able.may_answer(one)):
                with suppress(AfootError):  # it was answered meanwhile, or its call is being cancelled
                    self.engine.answer(one.id, Answer("decline", by="engine"))

    def tool(self, name: str) -> Tool | None:
        """The tool of a name or of server/name; None if there is none, or if it cannot be offered now."""
        try:
            return self.engine.catalog.get(name)[1]
        except CallerError:
            return None  # opening a call of it says why

    def open(
        self,
        tool_call: ToolCall,
        caller: str,
        origin: CallOrigin,
        headers: Mapping[str, str] | None,
        *,
        stays: bool = False,
    ) -> LiveCall:
        """Open a call that wants more than the ordinary; raises Fault. `stays`: see `Submission`."""
        self._check_size_and_capabilities(tool_call)
        if headers is not None:
            self._check_param_headers(tool_call, headers)
        early_answers = {key: read_early_answer(given, caller) for key, given in tool_call.answers.items()}
        above = tool_call.parent
        budget = tool_call.budget
        submission = Submission(
            tool_call.name, tool_call.arguments, caller, budget.idle_s, budget.left_s, early_answers,
            above.call if above else None, above.weight if above else 1.0,
            tool_call.capabilities.can("form"),
            claim=self._claim(tool_call, caller),
            trace=tool_call.trace, more=tool_call.unknown_params(),
            origin=origin.of_client(tool_call.client, tool_call.client_version), stays=stays,
        )  # fmt: skip
        self._check_extensions(tool_call.capabilities)
        if self.servers is not None:
            self.servers.clients.note_extensions(caller, declared_extensions(submission.more))
        try:
            return self.engine.submit(submission)
        except CallerError as error:
            raise self.refusal(error) from None

    def _claim(self, tool_call: ToolCall, caller: str) -> Claim | None:
        """The way in which the caller finds its call again; None if it did not ask for one. Raises Fault."""
        if not tool_call.key:
            return Claim(task=True) if tool_call.task else None
        mac = sealed_state.arguments_mac(self.key, caller, tool_call.key, bytes(tool_call.arguments))
        return Claim(tool_call.key, tool_call.task, mac)

    def check_lookup(self, lookup: Lookup, origin: CallOrigin) -> None:
        """Check that the caller may look this up, and declares not too much; raises Fault (F1)."""
        self._check_extensions(lookup.capabilities)
        try:
            self.function_offers.check_lookup(lookup, origin)
        except MissingScope as error:
            raise self.refusal(error) from None

    async def watch_resource(
        self, uri: str, listener: ChangeListener, caller: str, origin: CallOrigin
    ) -> None:
        """Tell a listener of this caller when a resource changes; raises Fault."""
        try:
            self.function_offers.check_watch(uri, caller, origin)
        except MissingScope as error:
            raise self.refusal(error) from None
        listener.origin = origin
        await self.resource_catalog.watch(uri, listener)

    def refusal(self, error: CallerError) -> Fault:
        """The protocol's error for a call that was not opened."""
        if isinstance(error, UnknownName):
            return Fault(INVALID_PARAMS, f"params.name: {error}", data={"nearest": error.nearest})
        if isinstance(error, OverQuota):
            told = ErrorMeta("rate_limit", "over_quota", True, error.retry_after)
            return Fault(INTERNAL_ERROR, str(error), data={"dev.afoot/error": told}, status=429)
        if isinstance(error, MissingScope):
            told = ErrorMeta("auth", "insufficient_scope", False)
            fault = Fault(INVALID_REQUEST, str(error), data={"dev.afoot/error": told}, status=403)
            fault.missing_scopes = error.scopes
            return fault
        retry = error.retry_after if isinstance(error, Refused) else None
        return Fault(INTERNAL_ERROR, str(error), data=retry and {"retry_after_s": retry}, status=503)

    def arguments_too_large(self) -> Fault:
        """The answer to arguments over the limit."""
        limit = self.settings.max_arguments_bytes
        return Fault(INVALID_PARAMS, f"params.arguments: over {limit} bytes (raise max_arguments_bytes)")

    async def find_retried_call(
        self, tool_call: ToolCall, caller: str
    ) -> tuple[LiveCall, sealed_state.RequestState]:
        """The call that a retry belongs to, and what its request state says; raises Fault."""
        sealed = tool_call.state or ""
        key = await self.key_of(sealed)
        if key is None:
            raise unknown_key()
        state = sealed_state.unseal_request_state(sealed, key, self.engine.clock.now())
        digest = sealed_state.request_digest(tool_call.name, bytes(tool_call.arguments))
        sealed_state.check_binding(state, caller, digest)
        if self.engine.others is not None and not self._knows(state):
            with suppress(StoreError):
                await self.engine.others.caught_up()
        try:
            return await self.own_call(state.call, caller), state
        except UnknownName:
            raise Fault(INVALID_PARAMS, "params.requestState: its call is no longer known") from None

    def _knows(self, state: sealed_state.RequestState) -> bool:
        """Whether all is known here that was on record when a state was sealed, maybe at another gateway."""
        return state.call in self.engine and self.engine[state.call].recorded >= state.seq

    def seal_request_state(
        self,
        live: LiveCall,
        tool_call: ToolCall,
        caller: str,
        number: int,
        series: ProgressSeries | None = None,
    ) -> str:
        """The request state for round `number`, whose request must be the same again."""
        call, limits = live.call, live.call.opened.limits
        now = self.engine.clock.now()
        expires = now + limits.answer_s + limits.ceiling_s
        digest = sealed_state.request_digest(tool_call.name, bytes(tool_call.arguments))
        told = (None, None) if series is None else (series.last, series.total)
        requests = known_requests(live)
        taken = (0, 0) if requests is None else requests.taken
        state = sealed_state.RequestState(
            call.id, number, caller, digest, expires, len(call.questions), now, *told, call.seq, taken
        )
        key = self.sealing_key()
        return sealed_state.seal(state, key.secret, key.id)

    def sealing_key(self) -> SealingKey:
        """The key that seals now; in a cluster all gateways know it."""
        if self.cluster is None:
            return SealingKey("", self.key)
        return self.cluster.sealing_keys.sealing(self.engine.clock.now())

    def longest_state_s(self) -> float:
        """The longest time for which a request state may be valid that is sealed by now."""
        limits = [one.limits for one in self.engine.catalog]
        limits += [live.call.opened.limits for live in self.engine.calls()]
        usual_s = self.settings.answer_s + self.settings.ceiling_s
        return max([usual_s, *(one.answer_s + one.ceiling_s for one in limits)])

    async def key_of(self, sealed: str) -> bytes | None:
        """The key that a sealed string names; None if it is gone, or was never one. Raises Fault."""
        id = sealed_state.key_id(sealed)
        if self.cluster is None:
            return None if id else self.key
        try:
            found = await self.cluster.find_key(id)
        except StoreError as error:
            told = ErrorMeta("unavailable", "keys_unreadable", True, RETRY_HISTORY_S)
            text = f"the key of what was sent back cannot be read now: {error}"
            raise Fault(INTERNAL_ERROR, text, data={"dev.afoot/error": told}, status=503) from None
        return None if found is None else found.secret

    def _check_extensions(self, declared: Capabilities) -> None:
        """Check that the extensions which a caller declares are not too large; raises Fault."""
        if declared.extensions and len(sorted_extensions(declared.extensions)) > MAX_EXTENSIONS_BYTES:
            where = "params._meta.io.modelcontextprotocol/clientCapabilities.extensions"
            raise Fault(INVALID_PARAMS, f"{where}: over {MAX_EXTENSIONS_BYTES} bytes")

    def _check_param_headers(self, tool_call: ToolCall, headers: Mapping[str, str]) -> None:
        """Check that headers which mirror arguments say the same; raises Fault."""
        tool = self.tool(tool_call.name)
        if tool is None:
            return  # opening the call says so
        mirrored = self.param_headers.get(tool.digest)
        if mirrored is None:
            mirrored = self.param_headers[tool.digest] = mcp_2026.param_headers(bytes(tool.definition))
        if mirrored:
            mcp_2026.check_param_headers(mirrored, bytes(tool_call.arguments), headers)

    def _check_size_and_capabilities(self, tool_call: ToolCall) -> None:
        """Check that the arguments are not too large, and the caller can do what the tool requires."""
        if len(tool_call.arguments) > self.settings.max_arguments_bytes:
            raise self.arguments_too_large()
        try:
            requires: Mapping[str, object] = self.engine.catalog.get(tool_call.name)[1].requires
        except UnknownName:
            return  # submit says so, with the nearest names
        except Refused as error:
            raise Fault(INVALID_PARAMS, f"params.name: {error}") from None
        capabilities = tool_call.capabilities
        lacking = {
            name: value for name, value in requires.items() if getattr(capabilities, name, None) is None
        }
        if lacking:
            raise missing_capability(lacking)
