"""Parameters that no caller fills: the `Context`, and those with `Depends`, which functions fill (F4).

`DependencyPlan` is made once, when a tool is loaded: each function that the tool needs, in the order in which
they run. A call then only walks through the plan. Functions run where their tool runs: on its loop, or in its
thread; async functions of a sync tool run on the engine's loop, and its thread waits for them.
"""

import asyncio
import contextlib
import inspect
import typing
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping, Sequence
from functools import partial
from types import UnionType
from typing import Annotated, Any, Final, Literal, NamedTuple, TypeVar, Union, get_args, get_origin

from afoot.errors import ToolError
from afoot.providers.functions.context import Context, current_context, wait_on_loop
from afoot.providers.functions.threads import collect, collect_async

CLEAN_UP_S: Final = 60.0  # that a thread waits for the clean-up of an async dependency
# Packages whose `Context` or `Depends` somebody may have left in a tool that was moved here.
_OTHER_FRAMEWORKS: Final = {
    "docket": "Docket",
    "fastapi": "FastAPI",
    "fastmcp": "FastMCP",
    "mcp": "the mcp SDK",
    "uncalled_for": "FastMCP",
}
_CONTEXT_MANAGER_FILE: Final = contextlib.__file__
_T = TypeVar("_T")

Function = Callable[..., Any]
Kind = Literal["value", "coroutine", "generator", "async generator"]
OpenGenerator = Generator[Any, Any, Any] | AsyncGenerator[Any, Any]


class BadDependency(TypeError):
    """A dependency that cannot be filled: a cycle, a parameter without a value, another framework's."""


class Dependency:
    """The mark of a parameter that a function fills. `Depends` makes it."""

    __slots__ = ("function",)

    def __init__(self, function: Function) -> None:
        self.function = function

    def __repr__(self) -> str:
        return f"Depends({_name(self.function)})"


def Depends(function: Function) -> Any:
    """Have a parameter filled by a function: `db: Annotated[Db, Depends(get_db)]`, or as its default.

    The function may be async, and may be a generator that yields the value once and then cleans up. It may
    take a `Context` and dependencies of its own. It runs once in a call. Raises TypeError if it is none.
    """
    if not callable(function):
        raise TypeError(f"Depends takes a function, not {function!r}")
    return Dependency(function)


class _Step(NamedTuple):
    """One function of a plan. `arguments`: its parameters, and the places of their values."""

    function: Function
    kind: Kind
    arguments: tuple[tuple[str, int], ...]

    def call(self, values: Sequence[Any]) -> Any:
        if not self.arguments:
            return self.function()
        return self.function(**{name: values[at] for name, at in self.arguments})


class DependencyPlan:
    """The functions that fill the parameters of one tool, each once, those that others need first.

    The value of the context has place 0, that of each step the next place. Raises BadDependency.
    """

    __slots__ = ("_filled", "_steps")

    def __init__(
        self, parameters: Mapping[str, Dependency], overrides: Mapping[Function, Function] | None = None
    ) -> None:
        """`overrides` names functions that run in the place of others, for tests."""
        self._steps: list[_Step] = []
        places: dict[int, int] = {}
        self._filled = tuple(
            (name, self._place(one.function, overrides or {}, places, [])) for name, one in parameters.items()
        )

    def _place(
        self,
        wanted: Function,
        overrides: Mapping[Function, Function],
        places: dict[int, int],
        path: list[Function],
    ) -> int:
        """The place of a function's value; adds the steps that it needs, and its own."""
        function = overrides.get(wanted, wanted)
        if function in path:
            cycle = " → ".join(map(_name, [*path[path.index(function) :], function]))
            raise BadDependency(f"its dependencies form a cycle: {cycle}")
        if id(function) in places:
            return places[id(function)]
        inner: list[tuple[str, int]] = []
        for name, need in _needs(function).items():
            place = 0 if need is None else self._place(need.function, overrides, places, [*path, function])
            inner.append((name, place))
        self._steps.append(_Step(*_callable_kind(function), tuple(inner)))
        places[id(function)] = len(self._steps)
        return len(self._steps)

    async def run(
        self, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any], ctx: Context
    ) -> Any:
        """Call an async function, or collect an async generator, with its dependencies filled."""
        values: list[Any] = [ctx]
        opened: list[OpenGenerator] = []
        try:
            for step in self._steps:
                value = step.call(values)
                if step.kind == "coroutine":
                    value = await value
                elif step.kind != "value":
                    value = await _open(step, value, opened)
                values.append(value)
            for name, at in self._filled:
                kwargs[name] = values[at]
            result = function(*args, **kwargs)
            result = await (collect_async(result, ctx) if inspect.isasyncgen(result) else result)
        except BaseException as error:
            raised = await _close(opened, error)
            if raised is not None and raised is not error:
                raise raised from error
            raise
        if opened and (raised := await _close(opened, None)) is not None:
            raise raised
        return result

    def run_in_thread(
        self, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any], ctx: Context
    ) -> Any:
        """Do the same with a function or generator that is not async, in a thread without a loop."""
        values: list[Any] = [ctx]
        opened: list[OpenGenerator] = []
        try:
            for step in self._steps:
                if step.kind == "value":
                    value = step.call(values)
                elif step.kind == "generator":
                    value = _open_in_thread(step, step.call(values), opened)
                elif step.kind == "coroutine":
                    value = wait_on_loop(ctx, partial(_in_call, ctx, step.call, values))
                else:
                    value = wait_on_loop(ctx, partial(_in_call, ctx, _open, step, step.call(values), opened))
                values.append(value)
            for name, at in self._filled:
                kwargs[name] = values[at]
            result = function(*args, **kwargs)
            if inspect.isgenerator(result):
                result = collect(result, ctx)
            elif inspect.isasyncgen(result):  # a decorator hid that the function is async
                result = wait_on_loop(ctx, partial(_in_call, ctx, collect_async, result, ctx))
            elif inspect.isawaitable(result):
                result = wait_on_loop(ctx, partial(_in_call, ctx, _same, result))
        except BaseException as error:
            raised = _close_in_thread(opened, error, ctx)
            if raised is not None and raised is not error:
                raise raised from error
            raise
        if opened and (raised := _close_in_thread(opened, None, ctx)) is not None:
            raise raised
        return result


async def _in_call(ctx: Context, start: Callable[..., Awaitable[Any]], *args: Any) -> Any:
    """Start something for a thread and await it, as a part of its call."""
    current_context.set(ctx)
    return await start(*args)


def _same(awaitable: Awaitable[_T]) -> Awaitable[_T]:
    return awaitable


async def _open(step: _Step, generator: Any, opened: list[OpenGenerator]) -> Any:
    """The value that a generator of either kind yields; it is then open."""
    if step.kind == "generator":
        return _open_in_thread(step, generator, opened)
    try:
        value = await generator.__anext__()
    except StopAsyncIteration:
        raise _yielded_nothing(step) from None
    opened.append(generator)
    return value


def _open_in_thread(step: _Step, generator: Any, opened: list[OpenGenerator]) -> Any:
    try:
        value = next(generator)
    except StopIteration:
        raise _yielded_nothing(step) from None
    opened.append(generator)
    return value


async def _close(opened: list[OpenGenerator], error: BaseException | None) -> BaseException | None:
    """Let every generator clean up, the last first; the error to raise, if any.

    Each one sees the error of the call at its `yield`, and may raise another in its place. It cannot make a
    failed call a good one: there would be no result.
    """
    for generator in reversed(opened):
        if isinstance(generator, Generator):
            error = _end(generator, error)
            continue
        try:
            if error is None:
                await generator.__anext__()
            else:
                await generator.athrow(error)
        except StopAsyncIteration:
            continue
        except BaseException as raised:
            error = raised
        else:
            await generator.aclose()
            error = error or _yielded_twice(generator)
    return error


def _close_in_thread(
    opened: list[OpenGenerator], error: BaseException | None, ctx: Context
) -> BaseException | None:
    for generator in reversed(opened):
        if isinstance(generator, Generator):
            error = _end(generator, error)
            continue
        try:
            # Not through the requests of the call, which are refused once it is cancelled.
            closing = _in_call(ctx, _close, [generator], error)
            error = asyncio.run_coroutine_threadsafe(closing, ctx._queue.loop).result(CLEAN_UP_S)
        except BaseException as raised:  # the loop is closed, or it takes too long
            error = raised
    return error


def _end(generator: Generator[Any, Any, Any], error: BaseException | None) -> BaseException | None:
    try:
        next(generator) if error is None else generator.throw(error)
    except StopIteration:
        return error
    except BaseException as raised:
        return raised
    generator.close()
    return error or _yielded_twice(generator)


def _yielded_nothing(step: _Step) -> ToolError:
    return ToolError.internal(f"the dependency {_name(step.function)} ended without a yield")


def _yielded_twice(generator: OpenGenerator) -> ToolError:
    return ToolError.internal(f"the dependency {_name(generator)} yielded twice; it yields its value once")


# Reading parameters, when a tool is loaded.


def dependencies_of(
    parameters: Mapping[str, inspect.Parameter], hints: Mapping[str, Any]
) -> dict[str, Dependency]:
    """The parameters with `Depends`; raises BadDependency for those of another framework."""
    found: dict[str, Dependency] = {}
    for name, parameter in parameters.items():
        marks = [*_annotated_marks(hints.get(name)), parameter.default]
        _refuse_foreign(name, hints.get(name), marks)
        for mark in marks:
            if isinstance(mark, Dependency):
                found[name] = mark
    return found


def takes_context(annotation: Any) -> bool:
    """Whether a parameter with this annotation receives the Context (P2)."""
    return any(option is Context for option in _plain_types(annotation))


def type_hints(function: Function) -> dict[str, Any]:
    """The annotations of a function, with strings resolved; raises TypeError naming one that cannot be."""
    target = inspect.unwrap(function)
    if inspect.isclass(target):
        target = target.__init__
    elif not inspect.isroutine(target):
        target = getattr(target, "func", type(target).__call__)
    # Context may be imported for the type checker alone.
    names = {"Context": Context, **getattr(target, "__globals__", {})}
    try:
        return typing.get_type_hints(target, globalns=names, include_extras=True)
    except (NameError, AttributeError, SyntaxError) as error:
        must = "name what is at the top of its module"
        raise TypeError(f"an annotation cannot be resolved: {error}; {must}") from error


def _needs(function: Function) -> dict[str, Dependency | None]:
    """The parameters of a dependency that are filled; None for the context. Raises BadDependency."""
    try:
        parameters = dict(inspect.signature(function).parameters)
        hints = type_hints(function)
    except (TypeError, ValueError) as error:
        raise BadDependency(f"the dependency {_name(function)}: {error}") from error
    found: dict[str, Dependency | None] = {}
    inner = dependencies_of(parameters, hints)
    for name, parameter in parameters.items():
        if takes_context(hints.get(name)):
            found[name] = None
        elif name in inner:
            found[name] = inner[name]
        elif parameter.default is parameter.empty and parameter.kind not in (
            parameter.VAR_POSITIONAL,
            parameter.VAR_KEYWORD,
        ):
            must = "annotate it with Context or with afoot.Depends, or give it a default"
            raise BadDependency(f"the dependency {_name(function)} has a parameter {name}: {must}")
        if name in found and parameter.kind is parameter.POSITIONAL_ONLY:
            raise BadDependency(f"the dependency {_name(function)}: {name} can be given by position only")
    return found


def _callable_kind(function: Function) -> tuple[Function, Kind]:
    """A function and how its value is had; of a context manager made by `contextlib` the generator."""
    code = getattr(function, "__code__", None)
    if code is not None and code.co_filename == _CONTEXT_MANAGER_FILE:
        function = getattr(function, "__wrapped__", function)
    if inspect.isasyncgenfunction(function):
        return function, "async generator"
    if inspect.isgeneratorfunction(function):
        return function, "generator"
    is_async = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004
    )
    return function, "coroutine" if is_async else "value"


def _annotated_marks(annotation: Any) -> Sequence[Any]:
    return get_args(annotation)[1:] if get_origin(annotation) is Annotated else ()


def _plain_types(annotation: Any) -> list[Any]:
    """The types that an annotation allows, without `Annotated` and unions around them."""
    if get_origin(annotation) is Annotated:
        return _plain_types(get_args(annotation)[0])
    if get_origin(annotation) in (Union, UnionType):
        return [plain for option in get_args(annotation) for plain in _plain_types(option)]
    return [annotation]


def _refuse_foreign(name: str, annotation: Any, marks: Sequence[Any]) -> None:
    """Raise BadDependency for a Context or a dependency of another framework, with the name of ours."""
    for option in _plain_types(annotation):
        kind = get_origin(option) or option
        framework = _OTHER_FRAMEWORKS.get(str(getattr(kind, "__module__", "")).partition(".")[0])
        if framework and getattr(kind, "__name__", "") == "Context":
            raise BadDependency(f"parameter {name} takes the Context of {framework}; use afoot.Context")
    for mark in marks:
        kind = type(mark)
        framework = _OTHER_FRAMEWORKS.get(kind.__module__.partition(".")[0])
        is_other = any("Depend" in base.__name__ for base in kind.__mro__)
        if framework and is_other:
            raise BadDependency(f"parameter {name} has a dependency of {framework}; use afoot.Depends")


def _name(function: object) -> str:
    return str(getattr(function, "__name__", None) or type(function).__name__)
