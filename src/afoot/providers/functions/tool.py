"""`tool`, the decorator that makes a function a tool, and `FunctionProvider`, which runs such functions.

Async functions run on the engine's loop, sync functions in threads (`threads`), isolated ones in child
processes.
"""

import asyncio
import hashlib
import inspect
import logging
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, partial
from typing import Any, Final, TypeVar, Unpack, overload

import msgspec
from msgspec import Raw
from msgspec.structs import asdict, replace
from pydantic import ValidationError

from afoot.core.facts import Result
from afoot.core.large_json import encode_sized
from afoot.core.names import titled
from afoot.core.ports import Run, RunnerStart, Tool, Work
from afoot.errors import BadTool, ToolError, UnknownName
from afoot.providers.functions import output_capture
from afoot.providers.functions.context import Context, current_context, stop_call
from afoot.providers.functions.dependencies import BadDependency, type_hints
from afoot.providers.functions.lifespans import App, Lifespans, OpenLifespan
from afoot.providers.functions.loop_queue import LoopQueue
from afoot.providers.functions.options import FunctionSettings, ToolOptions, find_mistake
from afoot.providers.functions.progress import bars
from afoot.providers.functions.results import NO_ANNOTATION, ResultEncoder, ValueEncoder
from afoot.providers.functions.signature import Signature, parse_docstring
from afoot.providers.functions.threads import LoopThread, ToolThreads, collect_async
from afoot.providers.functions.watchdog import Watchdog
from afoot.providers.isolation.frames import ToolSource
from afoot.providers.isolation.pool import ChildPool
from afoot.providers.isolation.tool import DEFAULT_CONCURRENCY, IsolatedTool, make_isolated_tool

_log = logging.getLogger("afoot.providers")
TOOL_NAME: Final = re.compile(r"[A-Za-z0-9_.-]{1,128}")
_HINT_NAMES: Final = {
    "read_only": "readOnlyHint",
    "destructive": "destructiveHint",
    "idempotent": "idempotentHint",
    "open_world": "openWorldHint",
}

Positional = tuple[Any, ...]
Kwargs = dict[str, Any]
Overrides = Mapping[Callable[..., Any], Callable[..., Any]]
_F = TypeVar("_F", bound=Callable[..., Any])


@overload
def tool(function: _F, /) -> _F: ...


@overload
def tool(**options: Unpack[ToolOptions]) -> Callable[[_F], _F]: ...


def tool(function: Any = None, /, **options: Unpack[ToolOptions]) -> Any:
    """Offer a function as a tool. The function does not change: a direct call does what it did before."""
    if function is None:
        return partial(_decorate, options)
    return _decorate(options, function)


def _decorate(options: ToolOptions, function: Any) -> Any:
    declared = FunctionTool(function, options)
    refuse_second_definition(declared)
    function.__afoot_tool__ = declared
    return function


def refuse_second_definition(declared: "FunctionTool") -> None:
    """Raise BadTool if a file gives a function the name of another tool, resource or prompt in it.

    Python would keep the later one without a word. A cell of a notebook that runs again, and a module that is
    reloaded, define their functions again on purpose; both are let through.
    """
    function = inspect.unwrap(declared.function)
    module = sys.modules.get(getattr(function, "__module__", None) or "")
    name = getattr(function, "__qualname__", "")
    is_inside = "." in name  # a method, or an inner function
    if module is None or module.__name__ == "__main__" or is_inside:
        return
    there = vars(module).get(name)
    offers = getattr(there, "__afoot_offers__", None)
    found = [getattr(there, "__afoot_tool__", None)]
    found += [offer.tool for offer in offers] if isinstance(offers, list) else []
    earlier = next((one for one in found if isinstance(one, FunctionTool)), None)
    if earlier is None or inspect.unwrap(earlier.function) is function:
        return
    if earlier.module_spec is declared.module_spec:  # `importlib.reload` makes another one
        raise BadTool(
            f"{titled(declared.name)} ({declared.location}): the function {name} is defined a second time;"
            f" the first one, at {earlier.location}, would be lost. Give one of them another name"
        )


class FunctionTool:
    """A function with its options. Its annotations are read when needed, as they may name later classes."""

    def __init__(
        self,
        function: Callable[..., Any],
        options: ToolOptions,
        overrides: Overrides | None = None,
        encoder: ValueEncoder | None = None,
    ) -> None:
        """`overrides`: functions that run in the place of its dependencies, for tests.

        `encoder`: of its values, if these are not results of a tool.
        """
        self._overrides = overrides
        self.app: App | None = None  # of the target that offers it; `loading` sets both
        self.home = ""  # the module of that target, if it has an app
        self.function = function
        module = sys.modules.get(getattr(function, "__module__", None) or "")
        self.module_spec = getattr(module, "__spec__", None)  # of the import that defined the function
        self.encoder = encoder
        self.options = options
        self.name = options.get("name") or getattr(function, "__name__", type(function).__name__)
        self.own_loop = options.get("own_loop", False)
        self.is_generator = inspect.isasyncgenfunction(function)
        self.is_async = self.is_generator or inspect.iscoroutinefunction(function)
        if wrong := find_mistake(options):
            raise BadTool(f"{titled(self.name)} ({self.location}): {wrong}")
        if encoder is None and not TOOL_NAME.fullmatch(self.name):
            raise BadTool(
                f"{self.location}: {self.name!r} is no tool name: use 1 to 128 of A-Z a-z 0-9 _ . -"
            )

    @property
    def location(self) -> str:
        """File and line of the function, for messages."""
        code = getattr(inspect.unwrap(self.function), "__code__", None)
        return f"{code.co_filename}:{code.co_firstlineno}" if code else repr(self.function)

    @cached_property
    def signature(self) -> Signature:
        """The parameters of the function; raises BadTool naming file, line and parameter."""
        try:
            doc = parse_docstring(self.function.__doc__)
            return Signature(self.function, doc, self.options.get("input_schema"), self._overrides)
        except TypeError as error:
            raise BadTool(f"{titled(self.name)} ({self.location}): {error}") from error

    @cached_property
    def result_encoder(self) -> ValueEncoder:
        """The encoder of its values. Use `signature` first: it explains errors of annotations."""
        return self.encoder or ResultEncoder(self.return_annotation, self.is_generator_function)

    @property
    def return_annotation(self) -> Any:
        """The annotation of its result."""
        return type_hints(self.function).get("return", NO_ANNOTATION)

    @property
    def is_generator_function(self) -> bool:
        """Whether the function is a generator, plain or async."""
        return bool(self.is_generator or inspect.isgeneratorfunction(self.function))

    @property
    def description(self) -> str:
        """The description that its author gave, or that of its docstring."""
        return self.options.get("description") or parse_docstring(self.function.__doc__).description

    @cached_property
    def loop_thread(self) -> LoopThread:
        """The loop for this function alone, where it has `own_loop`."""
        return LoopThread(self.name)

    def definition(self) -> dict[str, Any]:
        """The tool as a model sees it."""
        options: Mapping[str, Any] = self.options
        hints = {wire: options[key] for key, wire in _HINT_NAMES.items() if key in options}
        parts = {
            "name": self.name,
            "title": options.get("title"),
            "description": self.description,
            "inputSchema": self.signature.schema,
            "outputSchema": self.result_encoder.schema,
            "annotations": hints,
            "icons": [{"src": options["icon"]}] if "icon" in options else None,
        }
        return {key: value for key, value in parts.items() if value}

    def to_tool(self, server: str, settings: FunctionSettings) -> Tool:
        """The tool as the engine knows it."""
        options = self.options
        limits = settings.limits
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
            scopes=tuple(options.get("scopes", ())),
            digest=hashlib.sha256(definition).hexdigest(),
            task=options.get("task", ""),
            on_disconnect=options.get("on_disconnect", "cancel"),
            join=options.get("join", ""),
            worker=options.get("worker", ""),
        )


class FunctionProvider:
    """Runs functions: async ones on the engine's loop, sync ones in threads, isolated ones in `pool`."""

    def __init__(
        self,
        functions: Iterable[Callable[..., Any] | FunctionTool],
        name: str = "local",
        settings: FunctionSettings = FunctionSettings(),  # noqa: B008
        watchdog: Watchdog | None = None,
        pool: ChildPool | None = None,
        overrides: Overrides | None = None,
        lifespans: Lifespans | None = None,
    ) -> None:
        """`lifespans` knows the lifespan of every app of these functions; without it, none has a state."""
        self._name = name
        self._settings = settings
        self._functions: dict[str, FunctionTool] = {}
        self.apps: set[App] = set()  # whose lifespans its tools use
        self._lifespans: dict[str, OpenLifespan] = {}  # by tool
        self._broken: dict[str, BadTool] = {}  # left out: somebody may call them all the same
        for function in functions:
            if isinstance(function, FunctionTool):
                declared = function
            else:
                declared = getattr(function, "__afoot_tool__", None) or FunctionTool(function, {})
            if overrides:
                app = declared.app
                declared = FunctionTool(declared.function, declared.options, overrides, declared.encoder)
                declared.app = app
            self._add_function(declared)
        self._pool = pool or ChildPool(settings.isolation)
        self._owns_pool = pool is None
        self._isolated: dict[str, IsolatedTool] = {}
        self._tools = tuple(self._build_tool(function, lifespans) for function in self._functions.values())
        self._watchdog = watchdog or Watchdog()  # one that is never entered does nothing
        self.threads = ToolThreads(settings.stuck_limit, settings.cancel_waits, self._watchdog)
        self._watchdog.codes.add(FunctionProvider._run_on_engine_loop.__code__)
        self._queue: LoopQueue | None = None

    @property
    def name(self) -> str:
        """The server's name."""
        return self._name

    def tools(self) -> Sequence[Tool]:
        """The tools of this provider."""
        return self._tools

    def prepare(self, tool: str, arguments: Raw) -> Work:
        """The work of one attempt; raises UnknownName, or ToolError.validation naming the fields."""
        function = self._functions.get(tool)
        if function is None:
            raise UnknownName("tool", tool, self._functions)
        if tool in self._broken:
            raise ToolError.internal(str(self._broken[tool]), code="bad_tool")
        signature = function.signature
        if tool in self._isolated:
            signature.bind(arguments)  # raises before a child process is started
            return partial(self._isolated[tool].work, arguments)
        # Two short cuts for the commonest tools: no parameters, and plain parameters. Both skip `bind`.
        if signature.is_empty and bytes(arguments) == b"{}":
            return partial(self._work, function, (), {})
        if signature.validate is not None:
            try:
                kwargs = signature.validate(bytes(arguments) or b"{}").__dict__
                return partial(self._work, function, (), kwargs)
            except ValidationError as error:
                raise signature.misfit(error) from error
        args, kwargs = signature.bind(arguments)
        return partial(self._work, function, args, kwargs)

    def start(self, tool: str, caller: str) -> RunnerStart | None:
        """The start of a child process, for an isolated tool that has none ready; or of a lifespan."""
        if tool in self._isolated:
            return self._isolated[tool].start()
        return self._lifespans[tool].start() if tool in self._lifespans else None

    def sources(self) -> set[ToolSource]:
        """The modules of isolated tools."""
        return {isolated.source for isolated in self._isolated.values()}

    def close(self) -> None:
        """Stop the loops of single tools, and the pool if it was made here."""
        for function in self._functions.values():
            function.loop_thread.close()
        if self._owns_pool:
            self._pool.close()

    def _build_tool(self, function: FunctionTool, lifespans: Lifespans | None) -> Tool:
        try:
            tool = function.to_tool(self._name, self._settings)
        except BadTool as error:
            # The other tools are served: this one may be the work of somebody else, who changed a dependency.
            if not isinstance(error.__cause__, BadDependency):
                raise
            _log.error("%s; it is left out", error)
            self._broken[function.name] = error
            nothing = Raw(msgspec.json.encode({"name": function.name, "inputSchema": {"type": "object"}}))
            return Tool(function.name, self._name, nothing, gone=True)
        isolated = make_isolated_tool(function, tool, self._settings, self._pool)
        if isolated is None:
            if lifespans is None or function.app is None or function.app.lifespan is None:
                return tool
            self.apps.add(function.app)
            self._lifespans[function.name] = lifespans.open(function.app)
            return replace(tool, starts=True)
        self._isolated[function.name] = isolated
        return replace(
            tool,
            starts=True,
            concurrency=tool.concurrency or DEFAULT_CONCURRENCY,
            per_process=not tool.concurrency,
            isolation=asdict(isolated.limits),
        )

    def _add_function(self, function: FunctionTool) -> None:
        other = self._functions.setdefault(function.name, function)
        if other is not function:
            both = f"two tools are named {function.name}: {other.location} and {function.location}"
            raise BadTool(f'{both}; give one another name, as @afoot.tool(name="…")')

    async def _work(self, function: FunctionTool, args: Positional, kwargs: Kwargs, run: Run) -> Result:
        queue = self._queue
        if queue is None or queue.loop is not asyncio.get_running_loop():
            queue = self._queue = LoopQueue(asyncio.get_running_loop())
        ctx = Context(run, queue, self._settings.message_limit)
        lifespan = self._lifespans.get(function.name) if self._lifespans else None
        if lifespan is not None:
            lifespan.begin_call()
            ctx._state = lifespan.state
        if function.signature.context is not None:
            kwargs[function.signature.context] = ctx
        if self._settings.capture and type(sys.stdout) is not output_capture.CapturingStream:
            output_capture.install()
        if len(sys.modules) != bars.modules_seen:  # something was imported since, perhaps tqdm or rich
            bars.patch()
        token = current_context.set(ctx)
        try:
            if function.is_async and not function.own_loop:
                value = await self._run_on_engine_loop(function, args, kwargs, ctx)
            else:
                value = await self._run_off_engine_loop(function, args, kwargs, ctx, queue)
        except (asyncio.CancelledError, SystemExit) as error:
            raise _error_to_raise(error, run) from None
        finally:
            current_context.reset(token)
            # The last report comes before the end, also from a thread of a bar, and from a bar never closed.
            if queue.is_scheduled:
                queue.deliver_now(ctx)
            if ctx._bars is not None and run.cancelled is None:
                ctx._bars.report_last()
            if ctx._output is not None:
                ctx._output.end(ctx)
            if ctx._requests:
                stop_call(ctx, "the call is over")
            if lifespan is not None:
                lifespan.end_call()
        # The commonest result, without a call in between: ASCII text of a function that promises no schema.
        if type(value) is str and function.result_encoder.schema is None and value.isascii():
            return Result(Raw(b'[{"type":"text","text":' + encode_sized(value, len(value)) + b"}]"))
        return function.result_encoder.encode(value)

    async def _run_on_engine_loop(
        self, function: FunctionTool, args: Positional, kwargs: Kwargs, ctx: Context
    ) -> Any:
        """Run a function in the task that supervises the call.

        The watchdog finds this frame on the stack and reads its locals `function` and `ctx`.
        """
        watchdog = self._watchdog
        watchdog.active += 1
        if watchdog.is_asleep:
            watchdog.wake()
        try:
            if function.signature.plan is not None:
                return await function.signature.plan.run(function.function, args, kwargs, ctx)
            if function.is_generator:
                return await collect_async(function.function(*args, **kwargs), ctx)
            return await function.function(*args, **kwargs)
        finally:
            watchdog.active -= 1

    async def _run_off_engine_loop(
        self, function: FunctionTool, args: Positional, kwargs: Kwargs, ctx: Context, queue: LoopQueue
    ) -> Any:
        plan = function.signature.plan
        try:
            if function.is_async:
                function.loop_thread.watchdog = self._watchdog
                run = _run_async if plan is None else plan.run
                start = partial(run, function.function, args, kwargs, ctx)
                return await function.loop_thread.run(ctx, queue, start)
            if plan is None:
                call = partial(function.function, *args, **kwargs)
            else:
                call = partial(plan.run_in_thread, function.function, args, kwargs, ctx)
            value = await self.threads.run(ctx, queue, function.name, call)
            # A decorator may hide that the function is async: then its thread only made the coroutine.
            if inspect.isawaitable(value):
                value = await value
            return await collect_async(value, ctx) if inspect.isasyncgen(value) else value
        finally:
            stop_call(ctx, ctx.cancelled or "the call is over")


async def _run_async(function: Callable[..., Any], args: Positional, kwargs: Kwargs, ctx: Context) -> Any:
    value = function(*args, **kwargs)
    return await (collect_async(value, ctx) if inspect.isasyncgen(value) else value)


def _error_to_raise(error: asyncio.CancelledError | SystemExit, run: Run) -> BaseException:
    """The error for a tool that was cancelled or called exit. As they are, both would end the gateway."""
    if isinstance(error, SystemExit):
        return ToolError.internal(f"the tool called exit({error.code!r})", code="exit")
    task = asyncio.current_task()
    if run.cancelled is None and not (task and task.cancelling()):
        return ToolError.internal("the tool cancelled itself", code="self_cancelled")
    return error
