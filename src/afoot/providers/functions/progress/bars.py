"""`patch` turns progress bars of `tqdm`, `rich.progress` and `alive_progress` in a tool into reports (P10).

Methods are patched on their classes, so that code which imported them before is patched, too. `_ImportWatch`
patches a class that is imported later, as a tool may do in its function. Outside of a call, and in their
output, the bars do not change. The outermost open bar is the call's progress; inner ones go in `data`.
"""

import re
import sys
import time
from collections.abc import Callable, Generator, Sequence
from functools import wraps
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, Final
from weakref import ref

from afoot.providers.functions.context import Context, current_context

_REPORT_INTERVAL_S: Final = 0.05  # between two reports of a bar: a person reads no faster
_DATA_INTERVAL_S: Final = 0.25  # between two reports with inner bars: each is content, and recorded
_MARKUP = re.compile(r"\[/?[a-z#@ ][^\[\]]*\]|\[/\]")

modules_seen = 0
"""The number of imported modules when `patch` last ran."""


class TrackedBar:
    """One bar in a call."""

    __slots__ = ("done", "group", "is_iterated", "is_open", "label", "owner", "total")

    def __init__(self, group: "CallBars", owner: Any) -> None:
        self.group = group
        self.owner = ref(owner)
        self.done: float = 0
        self.total: float | None = None
        self.label: str | None = None
        self.is_iterated = False  # `_iterate` counts its items; tqdm updates `n` only now and then
        self.is_open = True


class CallBars:
    """The open bars of one call, outermost first."""

    __slots__ = ("_ctx", "_data_due", "_last_report", "_open", "due")

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._open: list[TrackedBar] = []
        self.due = 0.0
        self._data_due = 0.0
        self._last_report: tuple[object, ...] = ()

    def add(self, owner: Any) -> TrackedBar:
        """Add a new bar, inside of those that are not full yet."""
        self._open = [bar for bar in self._open if bar.owner() is not None and not _is_full(bar)]
        bar = TrackedBar(self, owner)
        self._open.append(bar)
        self.due = 0.0
        return bar

    def report_progress(self, bar: TrackedBar, at_once: bool = False) -> None:
        """Report the bars, if the last report is long enough ago or `at_once`."""
        now = time.monotonic()
        if not bar.is_open or not self._open or (now < self.due and not at_once):
            return
        first = self._open[0]
        inner = self._open[1:]
        current_report = (first, first.done, first.total, first.label)
        if at_once and current_report == self._last_report:
            return
        if inner or bar is first:
            self._last_report = current_report
        if inner and now >= self._data_due:
            self._data_due = now + _DATA_INTERVAL_S
            rest = [{"label": other.label, "progress": other.done, "total": other.total} for other in inner]
            self._ctx.report(first.done, first.total, first.label, data={"bars": rest})
        elif bar is first:
            self._ctx.report(first.done, first.total, first.label)
        else:
            self._ctx.alive()
        self.due = now + _REPORT_INTERVAL_S

    def report_last(self) -> None:
        """Report the outermost bar that is still open, if it has moved since its last report."""
        if self._open:
            self.report_progress(self._open[0], at_once=True)

    def close(self, bar: TrackedBar) -> None:
        """Report the last state of a bar and remove it; the next one is then the outermost."""
        if bar.is_open and bar in self._open:
            if bar is self._open[0]:
                self.report_progress(bar, at_once=True)
            self._open.remove(bar)
        bar.is_open = False


def patch() -> None:
    """Patch these libraries, now or when they are imported. A class is patched once."""
    global modules_seen
    modules_seen = len(sys.modules)
    if _import_watch not in sys.meta_path:
        sys.meta_path.insert(0, _import_watch)
    for name in _CLASSES:
        _patch_module(name)


def _patch_module(name: str) -> None:
    classname, apply = _CLASSES[name]
    found = getattr(sys.modules.get(name), classname, None)
    if found is not None and "_afoot_patched" not in vars(found):
        found._afoot_patched = True
        apply(found)


class _ImportWatch(MetaPathFinder):
    """Lets the other finders find a module of `_CLASSES`, and patches it once it is loaded."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None, /
    ) -> ModuleSpec | None:
        """The spec that another finder has, with a loader that patches."""
        if fullname not in _CLASSES:
            return None
        others = (one for one in sys.meta_path if one is not self)
        found = (one.find_spec(fullname, path, target) for one in others)
        spec = next((one for one in found if one is not None), None)
        if spec is not None and spec.loader is not None:
            spec.loader = _PatchingLoader(spec.loader)
        return spec


class _PatchingLoader(Loader):
    """Loads a module with its own loader, which the module then names as its loader, and patches it."""

    def __init__(self, own: Loader) -> None:
        self._own = own

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._own.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        module.__loader__ = self._own
        if module.__spec__ is not None:
            module.__spec__.loader = self._own
        self._own.exec_module(module)
        _patch_module(module.__name__)


_import_watch: Final = _ImportWatch()


def _bars_of(ctx: Context) -> CallBars:
    if ctx._bars is None:
        ctx._bars = CallBars(ctx)
    return ctx._bars


def _is_full(bar: TrackedBar) -> bool:
    return bar.total is not None and bar.done >= bar.total


def _tqdm_bar(owner: Any) -> TrackedBar | None:
    """The bar of a tqdm object; one made before the call belongs to the call that first moves it."""
    bar = owner.__dict__.get("_afoot_bar")
    ctx = current_context.get()
    if ctx is None or (bar is not None and bar.group is ctx._bars):
        return bar
    bar = owner.__dict__["_afoot_bar"] = _bars_of(ctx).add(owner)
    _read_tqdm(bar, owner)
    return bar


def _read_tqdm(bar: TrackedBar, owner: Any) -> None:
    bar.total = owner.total
    bar.label = str(getattr(owner, "desc", "") or "").removesuffix(": ") or bar.label
    if not bar.is_iterated and not owner.disable:
        bar.done = owner.n


def _iterate(items: Generator[Any, Any, Any], owner: Any, bar: TrackedBar) -> Generator[Any, Any, Any]:
    bar.is_iterated = True
    group = bar.group
    clock = time.monotonic
    try:
        group.report_progress(bar)
        for item in items:
            yield item
            bar.done += 1
            if clock() >= group.due:
                _read_tqdm(bar, owner)
                group.report_progress(bar)
    finally:
        items.close()
        group.close(bar)


def _patch_tqdm(cls: Any) -> None:
    init = cls.__init__
    iterate = cls.__iter__

    @wraps(init)
    def patched_init(self: Any, *args: Any, **kwargs: Any) -> None:
        init(self, *args, **kwargs)
        bar = _tqdm_bar(self)
        if bar is not None and kwargs.get("desc"):  # a disabled bar drops its description
            bar.label = str(kwargs["desc"])

    @wraps(iterate)
    def patched_iter(self: Any) -> Any:
        bar = _tqdm_bar(self)
        return iterate(self) if bar is None else _iterate(iterate(self), self, bar)

    cls.__init__ = patched_init
    cls.__iter__ = patched_iter
    _patch_tqdm_moves(cls)


def _patch_tqdm_moves(cls: Any) -> None:
    update = cls.update
    refresh = cls.refresh
    close = cls.close

    @wraps(update)
    def patched_update(self: Any, n: float | None = 1) -> Any:
        out = update(self, n)
        bar = _tqdm_bar(self)
        if bar is not None and not bar.is_iterated:
            bar.done += n or 0
            _read_tqdm(bar, self)
            bar.group.report_progress(bar)
        return out

    @wraps(refresh)
    def patched_refresh(self: Any, *args: Any, **kwargs: Any) -> Any:
        bar = self.__dict__.get("_afoot_bar")
        if bar is not None and not bar.is_iterated:
            _read_tqdm(bar, self)
            bar.group.report_progress(bar)
        return refresh(self, *args, **kwargs)

    @wraps(close)
    def patched_close(self: Any) -> None:
        bar = self.__dict__.get("_afoot_bar")
        if bar is not None and not bar.is_iterated:
            _read_tqdm(bar, self)
            bar.group.close(bar)
        close(self)

    cls.update = patched_update
    cls.refresh = patched_refresh
    cls.close = patched_close


def _read_rich(progress: Any, task_id: Any) -> None:
    bar = progress.__dict__.get("_afoot_bars", {}).get(task_id)
    task = progress._tasks.get(task_id)
    if bar is None or task is None:
        return
    bar.done = task.completed
    bar.total = task.total
    bar.label = _MARKUP.sub("", str(task.description)).strip() or None
    if task.finished:
        bar.group.close(bar)
    else:
        bar.group.report_progress(bar)


def _patch_rich(cls: Any) -> None:
    add = cls.add_task
    stop = cls.stop

    @wraps(add)
    def patched_add(self: Any, *args: Any, **kwargs: Any) -> Any:
        task_id = add(self, *args, **kwargs)
        ctx = current_context.get()
        if ctx is not None:
            # Kept on the object: rich moves bars from threads of its own, which have no current call.
            self.__dict__.setdefault("_afoot_bars", {})[task_id] = _bars_of(ctx).add(self)
            _read_rich(self, task_id)
        return task_id

    @wraps(stop)
    def patched_stop(self: Any) -> None:
        stop(self)
        for bar in self.__dict__.pop("_afoot_bars", {}).values():
            bar.group.close(bar)

    def moving(method: Any) -> Any:
        @wraps(method)
        def patched(self: Any, task_id: Any, *args: Any, **kwargs: Any) -> Any:
            out = method(self, task_id, *args, **kwargs)
            _read_rich(self, task_id)
            return out

        return patched

    cls.add_task = patched_add
    cls.stop = patched_stop
    cls.update = moving(cls.update)
    cls.advance = moving(cls.advance)
    cls.reset = moving(cls.reset)


def _patch_alive(cls: Any) -> None:
    init = cls.__init__
    call = cls.__call__

    @wraps(init)
    def patched_init(self: Any, *args: Any, **kwargs: Any) -> None:
        init(self, *args, **kwargs)
        ctx = current_context.get()
        if ctx is None:
            return
        group = _bars_of(ctx)
        for bar in tuple(group._open):  # one whose `with` has ended says so in no other way
            owner = bar.owner()
            if isinstance(owner, cls) and owner._handle is None:
                group.close(bar)
        bar = self._afoot_bar = group.add(self)
        # The handle knows neither its total nor its title: both are variables of the function that makes it.
        names = sys._getframe(1).f_locals
        bar.total = names.get("logic_total")
        bar.label = getattr(names.get("config"), "title", None) or None
        group.report_progress(bar)

    @wraps(call)
    def patched_call(self: Any, *args: Any, **kwargs: Any) -> None:
        call(self, *args, **kwargs)
        bar = self.__dict__.get("_afoot_bar")
        if bar is not None and self._handle is not None:
            bar.done = self.current
            bar.group.report_progress(bar, at_once=_is_full(bar))

    cls.__init__ = patched_init
    cls.__call__ = patched_call


# By module: the class of its bars, and the function that patches it.
_CLASSES: Final[dict[str, tuple[str, Callable[[Any], None]]]] = {
    "tqdm.std": ("tqdm", _patch_tqdm),
    "rich.progress": ("Progress", _patch_rich),
    "alive_progress.core.progress": ("__AliveBarHandle", _patch_alive),
}
