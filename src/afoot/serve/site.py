"""What every surface of one gateway shares."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from msgspec import Raw, Struct, field, json

from afoot.config import Settings
from afoot.core.ports import Tool
from afoot.engine.bell import Bell
from afoot.engine.engine import Engine, Submission
from afoot.engine.live import Live
from afoot.engine.recovery import recall
from afoot.engine.submission import Claim
from afoot.errors import CallerError, OverQuota, Refused, UnknownName
from afoot.providers.browser.browser import Browser
from afoot.providers.browser.link import Lines
from afoot.providers.servers import Servers
from afoot.serve.admission import Admission
from afoot.serve.callers import Callers, Keys
from afoot.serve.shelf import Library, Shelf
from afoot.serve.ways import Ways
from afoot.wire import bookmark, headers
from afoot.wire.jsonrpc import INTERNAL_ERROR, INVALID_PARAMS, Fault
from afoot.wire.mcp import missing_capability
from afoot.wire.messages import ErrorMeta, Wanted, early

MOST_WORDS = 4000  # characters of a server's instructions
OPENING_S = 10.0  # how long a list waits for a server that was never seen before
LEFT = "the client closed the stream"


class Site(Struct):
    """The engine, the settings in force, and the secrets of one gateway."""

    engine: Engine
    settings: Settings
    version: str
    key: bytes = b""  # seals bookmarks
    token: str = ""  # the operator's
    url: str = ""
    public: str = ""  # the address by which others know us
    instructions: str = ""
    counted: dict[str, int] = {}
    bells: list[Bell] = []  # rung when the gateway closes, so that open streams end
    info: Raw = Raw()  # who we are, encoded
    mirrored: dict[str, list[headers.Mirror]] = {}  # by tool digest
    servers: Servers | None = None
    browser: Browser | None = None
    lines: Lines | None = None  # browsers that the extension connects
    problems: list[str] = []  # what is wrong with the settings that were read last
    shelves: Callable[[], Sequence[Shelf]] = tuple  # the servers there are now
    all_shelves: Library | None = None
    all_callers: Callers | None = None
    keys: Keys = field(default_factory=Keys)  # by which callers mean calls again
    watching: Counter[str] = field(default_factory=Counter)  # streams of everything, by session
    admission: Admission | None = None  # browsers that the operator let in
    ways: Ways | None = None  # for others to prove who they are
    began: float = 0.0

    def __post_init__(self) -> None:
        self.info = Raw(json.encode({"name": "afoot", "version": self.version}))
        self.began = self.engine.clock.now()

    @property
    def library(self) -> Library:
        """What all servers offer besides tools."""
        if self.all_shelves is None:
            self.all_shelves = Library(self.engine.catalog, lambda: self.shelves())
        return self.all_shelves

    @property
    def callers(self) -> Callers:
        """Who is there."""
        if self.all_callers is None:
            self.all_callers = Callers(self.engine)
        return self.all_callers

    def guidance(self) -> str:
        """What models are told of the servers, in their own words."""
        servers = self.servers.list() if self.servers is not None else []
        told = [f"{one.name}: {one.instructions[:MOST_WORDS]}" for one in servers if one.instructions]
        return "\n\n".join([self.instructions, *told] if self.instructions else told)

    def count(self, what: str, times: int = 1) -> None:
        """Something odd happened that is worth a number."""
        self.counted[what] = self.counted.get(what, 0) + times

    def why_left(self, caller: str) -> str:
        """Why a request of this caller is answered no more: it has left, or is let in no longer (S2)."""
        return (self.ways.parting.get(caller) if self.ways is not None else None) or LEFT

    async def bell_or_beat(self, bell: Bell) -> None:
        """Wait for a bell, or for the next keepalive."""
        clock = self.engine.clock
        timer = clock.at(clock.now() + self.settings.keepalive_s, bell.ring)
        await bell.wait()
        timer.cancel()

    async def settled(self) -> None:
        """Wait, within reason, for servers that are opened for the first time: a host may ask only once."""
        if self.servers is not None:
            await self.servers.settled(OPENING_S)

    async def recorded(self) -> None:
        """Wait until the facts that are still on their way into the history are there."""
        await self.engine.recorder.recorded()

    def tool(self, name: str) -> Tool | None:
        """The tool that a name means now, also as server/name; None if it is none, or not to be had."""
        try:
            return self.engine.catalog.get(name)[1]
        except CallerError:
            return None  # whoever opens a call of it says why

    def open(self, want: Wanted, caller: str, sent: Mapping[str, str] | None) -> Live:
        """Start a call that wants more than the ordinary; raises Fault."""
        self._fits(want)
        if sent is not None:
            self._check_params(want, sent)
        early_answers = {key: early(given, caller) for key, given in want.answers.items()}
        above = want.parent
        submission = Submission(
            want.name, want.arguments, caller, want.budget.idle_s, want.budget.left_s, early_answers,
            above.call if above else None, above.weight if above else 1.0, want.capabilities.can("form"),
            claim=Claim(want.key, want.task) if want.key or want.task else None,
            trace=want.trace,
        )  # fmt: skip
        try:
            return self.engine.submit(submission)
        except CallerError as error:
            raise self.refusal(error) from None

    def refusal(self, error: CallerError) -> Fault:
        """The protocol's error for a call that was not opened."""
        if isinstance(error, UnknownName):
            return Fault(INVALID_PARAMS, f"params.name: {error}", data={"nearest": error.nearest})
        if isinstance(error, OverQuota):
            told = ErrorMeta("rate_limit", "over_quota", True, error.retry_after)
            return Fault(INTERNAL_ERROR, str(error), data={"dev.afoot/error": told}, status=429)
        retry = error.retry_after if isinstance(error, Refused) else None
        return Fault(INTERNAL_ERROR, str(error), data=retry and {"retry_after_s": retry}, status=503)

    def too_large(self) -> Fault:
        """The answer to arguments over the limit."""
        limit = self.settings.max_arguments_bytes
        return Fault(INVALID_PARAMS, f"params.arguments: over {limit} bytes (raise max_arguments_bytes)")

    async def find(self, want: Wanted, caller: str) -> tuple[Live, bookmark.Bookmark]:
        """The call that a retry belongs to; raises Fault."""
        mark = bookmark.unseal(want.state or "", self.key, self.engine.clock.now())
        bookmark.match(mark, caller, bookmark.digest(want.name, bytes(want.arguments)))
        try:
            return await recall(self.engine, mark.call), mark
        except UnknownName:
            raise Fault(INVALID_PARAMS, "params.requestState: its call is no longer known") from None

    def seal(self, live: Live, want: Wanted, caller: str, round_number: int) -> str:
        """A bookmark for the caller's next request of this call, which must be the same again."""
        call, limits = live.call, live.call.opened.limits
        expires = self.engine.clock.now() + limits.answer_s + limits.ceiling_s
        digest = bookmark.digest(want.name, bytes(want.arguments))
        mark = bookmark.Bookmark(call.id, round_number, caller, digest, expires, len(call.questions))
        return bookmark.seal(mark, self.key)

    def _check_params(self, want: Wanted, sent: Mapping[str, str]) -> None:
        """Arguments that are mirrored in headers must say the same there; raises Fault."""
        tool = self.tool(want.name)
        if tool is None:
            return  # said when the call is opened
        wanted = self.mirrored.get(tool.digest)
        if wanted is None:
            wanted = self.mirrored[tool.digest] = headers.mirrors(bytes(tool.definition))
        if wanted:
            headers.check(wanted, bytes(want.arguments), sent)

    def _fits(self, want: Wanted) -> None:
        if len(want.arguments) > self.settings.max_arguments_bytes:
            raise self.too_large()
        try:
            requires: Mapping[str, object] = self.engine.catalog.get(want.name)[1].requires
        except UnknownName:
            return  # submit says so, with the nearest names
        except Refused as error:
            raise Fault(INVALID_PARAMS, f"params.name: {error}") from None
        lacking = {
            name: value for name, value in requires.items() if getattr(want.capabilities, name, None) is None
        }
        if lacking:
            raise missing_capability(lacking)
