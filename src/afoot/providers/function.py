"""Python functions as tools: the decorator, and the provider that runs them."""

import asyncio
import hashlib
import inspect
import re
import sys
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import cached_property, partial
from typing import Any, Final, TypeVar, Unpack, overload

import msgspec
from msgspec import Raw
from msgspec.structs import asdict, replace
from pydantic import ValidationError

from afoot.core.facts import Result
from afoot.core.ports import Run, Start, Tool, Work
from afoot.errors import BadTool, ToolError, UnknownName
from afoot.providers import bars, capture
from afoot.providers.context import Context, current, stop
from afoot.providers.docstring import parse
from afoot.providers.isolated.children import Children
from afoot.providers.isolated.frames import Source
from afoot.providers.isolated.tool import CONCURRENCY, IsolatedTool, isolated
from afoot.providers.lane import Lane
from afoot.providers.options import Options, Settings, mistake
from afoot.providers.output import NO_ANNOTATION, Output
from afoot.providers.places import OwnLoop, Threads
from afoot.providers.signature import Signature, hints_of
from afoot.providers.watchdog import Watchdog
from afoot.providers.yields import collect_async

_NAME: Final = re.compile(r"[A-Za-z0-9_.-]{1,128}")
_HINTS: Final = {
    "read_only": "readOnlyHint",
    "destructive": "destructiveHint",
    "idempotent": "idempotentHint",
    "open_world": "openWorldHint",
}
_encode = msgspec.json.Encoder().encode
Args, Named = tuple[Any, ...], dict[str, Any]
_F = TypeVar("_F", bound=Callable[..., Any])


@overload
def tool(function: _F, /) -> _F: ...


@overload
def tool(**options: Unpack[Options]) -> Callable[[_F], _F]: ...


def tool(function: Any = None, /, **options: Unpack[Options]) -> Any:
    """Offer a function as a tool. It stays what it was: a direct call does what it did before."""
    if function is None:
        return partial(_decorate, options)
    return _decorate(options, function)


def _decorate(options: Options, function: Any) -> Any:
    function.__afoot_tool__ = FunctionTool(function, options)
    return function


class FunctionTool:
    """A function and what is known of it. Annotations are read when needed: they may name later classes."""

    def __init__(self, function: Callable[..., Any], options: Options) -> None:
        self.function = function
        self.options = options
        self.name = options.get("name") or getattr(function, "__name__", type(function).__name__)
        self.own_loop = options.get("own_loop", False)
        self.is_generator = inspect.isasyncgenfunction(function)
        self.is_async = self.is_generator or inspect.iscoroutinefunction(function)
        if wrong := mistake(options):
            raise BadTool(f"tool {self.name} ({self.where}): {wrong}")
        if not _NAME.fullmatch(self.name):
            raise BadTool(f"{self.where}: {self.name!r} is no tool name: use 1 to 128 of A-Z a-z 0-9 _ . -")

    @property
    def where(self) -> str:
        """File and line, for messages."""
        code = getattr(inspect.unwrap(self.function), "__code__", None)
        return f"{code.co_filename}:{code.co_firstlineno}" if code else repr(self.function)

    @cached_property
    def signature(self) -> Signature:
        """What it takes; raises BadTool naming file, line and parameter."""
        try:
            return Signature(self.function, parse(self.function.__doc__), self.options.get("input_schema"))
        except TypeError as error:
            raise BadTool(f"tool {self.name} ({self.where}): {error}") from error

    @cached_property
    def output(self) -> Output:
        """What it gives; after `signature`, which reads the same annotations and says what is wrong there."""
        annotation = hints_of(self.function).get("return", NO_ANNOTATION)
        return Output(annotation, self.is_generator or inspect.isgeneratorfunction(self.function))

    @cached_property
    def own(self) -> OwnLoop:
        """The loop it has for itself, if it needs one."""
        return OwnLoop(self.name)

    def definition(self) -> dict[str, Any]:
        """The tool as a model sees it."""
        options: Mapping[str, Any] = self.options
        described = options.get("description") or parse(self.function.__doc__).description
        hints = {wire: options[key] for key, wire in _HINTS.items() if key in options}
        parts = {
            "name": self.name,
            "title": options.get("title"),
            "description": described,
            "inputSchema": self.signature.schema,
            "outputSchema": self.output.schema,
            "annotations": hints,
            "icons": [{"src": options["icon"]}] if "icon" in options else None,
        }
        return {key: value for key, value in parts.items() if value}

    def offer(self, server: str, settings: Settings) -> Tool:
        """The tool as the engine knows it."""
        options, limits = self.options, settings.limits
        if "idle" in options:
            limits = replace(limits, idle_s=options["idle"])
        if "ceiling" in options:
            limits = replace(limits, ceiling_s=options["ceiling"])
        definition = msgspec.json.encode(self.definition())
        return Tool(
            name=self.name,
            server=server,
            definition=Raw(definition),
            limits=limits,
            concurrency=options.get("concurrency", 0),
            queue=options.get("queue", settings.queue),
            approval=options.get("approval", ""),
            read_only=options.get("read_only", False),
            idempotent=options.get("idempotent", False),
            destructive=options.get("destructive", False),
            lifecycle=options.get("lifecycle", settings.lifecycle),
            requires=options.get("requires", {}),
            digest=hashlib.sha256(definition).hexdigest(),
            task=options.get("task", ""),
            on_disconnect=options.get("on_disconnect", "cancel"),
            join=options.get("join", ""),
        )


class FunctionProvider:
    """Runs functions: async ones on the engine's loop, sync ones in threads, isolated ones in `children`."""

    def __init__(
        self,
        functions: Iterable[Callable[..., Any]],
        name: str = "local",
        settings: Settings = Settings(),  # noqa: B008
        watchdog: Watchdog | None = None,
        children: Children | None = None,
    ) -> None:
        self._name = name
        self._settings = settings
        self._functions: dict[str, FunctionTool] = {}
        for function in functions:
            self._add(getattr(function, "__afoot_tool__", None) or FunctionTool(function, {}))
        self._children, self._has_own = children or Children(settings.isolation), children is None
        self._isolated: dict[str, IsolatedTool] = {}
        self._offers = tuple(self._offer(found) for found in self._functions.values())
        self.threads = Threads(settings.stuck_limit, settings.cancel_waits)
        self._watchdog = watchdog or Watchdog()  # one that was never started only counts
        self._watchdog.codes.add(FunctionProvider._here.__code__)
        self._lane: Lane | None = None

    @property
    def name(self) -> str:
        """The server's name."""
        return self._name

    def tools(self) -> Sequence[Tool]:
        """What is offered."""
        return self._offers

    def prepare(self, tool: str, arguments: Raw) -> Work:
        """The work of one attempt; raises UnknownName, or ToolError.validation naming the fields."""
        function = self._functions.get(tool)
        if function is None:
            raise UnknownName("tool", tool, self._functions)
        signature = function.signature
        if tool in self._isolated:
            signature.bind(arguments)  # what is wrong is said before anything starts
            return partial(self._isolated[tool].work, arguments)
        if signature.is_empty and bytes(arguments) == b"{}":
            return partial(self._work, function, (), {})
        if signature.check is not None:
            try:
                named = signature.check(bytes(arguments) or b"{}").__dict__
                return partial(self._work, function, (), named)
            except ValidationError:
                pass  # `bind` says what is wrong, in our words
        args, named = signature.bind(arguments)
        return partial(self._work, function, args, named)

    def start(self, tool: str, caller: str) -> Start | None:
        """A child process, for an isolated tool of which none is ready."""
        return self._isolated[tool].start() if tool in self._isolated else None

    def sources(self) -> set[Source]:
        """The modules of isolated tools."""
        return {one.source for one in self._isolated.values()}

    def close(self) -> None:
        """Stop the loops that tools had for themselves, and child processes that are nobody else's."""
        for function in self._functions.values():
            function.own.close()
        if self._has_own:
            self._children.close()

    def _offer(self, function: FunctionTool) -> Tool:
        offer = function.offer(self._name, self._settings)
        found = isolated(function, offer, self._settings, self._children)
        if found is None:
            return offer
        self._isolated[function.name] = found
        uses, concurrency = asdict(found.limits), offer.concurrency or CONCURRENCY
        return replace(offer, starts=True, concurrency=concurrency, isolation=uses)

    def _add(self, function: FunctionTool) -> None:
        other = self._functions.setdefault(function.name, function)
        if other is not function:
            both = f"two tools are named {function.name}: {other.where} and {function.where}"
            raise BadTool(f'{both}; give one another name, as @afoot.tool(name="…")')

    async def _work(self, function: FunctionTool, args: Args, named: Named, run: Run) -> Result:
        lane = self._lane
        if lane is None or lane.loop is not asyncio.get_running_loop():
            lane = self._lane = Lane(asyncio.get_running_loop())
        ctx = Context(run, lane, self._settings.message_limit)
        if function.signature.context is not None:
            named[function.signature.context] = ctx
        if self._settings.capture and type(sys.stdout) is not capture.Stream:
            capture.install()
        if len(sys.modules) != bars.seen:
            bars.patch()
        token = current.set(ctx)
        try:
            if function.is_async and not function.own_loop:
                value = await self._here(function, args, named, ctx)
            else:
                value = await self._elsewhere(function, partial(function.function, *args, **named), ctx, lane)
        except (asyncio.CancelledError, SystemExit) as error:
            raise _meant(error, run) from None
        finally:
            current.reset(token)
            if ctx._output is not None:
                ctx._output.end(ctx)
            if ctx._asking:
                stop(ctx, "the call is over")
        if type(value) is str and function.output.is_plain and value.isascii():
            return Result(Raw(b'[{"type":"text","text":' + _encode(value) + b"}]"))  # the commonest
        return function.output.encode(value)

    async def _here(self, function: FunctionTool, args: Args, named: Named, ctx: Context) -> Any:
        """On the engine's loop, in the task that supervises the call. The watchdog knows this frame."""
        watchdog = self._watchdog
        watchdog.active += 1
        if watchdog.is_asleep:
            watchdog.wake()
        try:
            if function.is_generator:
                return await collect_async(function.function(*args, **named), ctx)
            return await function.function(*args, **named)
        finally:
            watchdog.active -= 1

    async def _elsewhere(
        self, function: FunctionTool, call: Callable[[], Any], ctx: Context, lane: Lane
    ) -> Any:
        try:
            if function.is_async:
                start: Callable[[], Awaitable[Any]] = call
                if function.is_generator:
                    start = lambda: collect_async(call(), ctx)  # noqa: E731
                return await function.own.run(ctx, lane, start)
            value = await self.threads.run(ctx, lane, function.name, call)
            # A decorator may hide that the function is async: then its thread only made the coroutine.
            if inspect.isawaitable(value):
                value = await value
            return await collect_async(value, ctx) if inspect.isasyncgen(value) else value
        finally:
            stop(ctx, ctx.cancelled or "the call is over")


def _meant(error: asyncio.CancelledError | SystemExit, run: Run) -> BaseException:
    """What it means when a tool is cancelled, or calls exit: let through, that would end the gateway."""
    if isinstance(error, SystemExit):
        return ToolError.internal(f"the tool called exit({error.code!r})", code="exit")
    task = asyncio.current_task()
    if run.cancelled is None and not (task and task.cancelling()):
        return ToolError.internal("the tool cancelled itself", code="self_cancelled")
    return error
