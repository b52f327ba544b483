"""Bars of `tqdm` and `rich.progress` inside a tool, turned into reports without changing the tool (P10).

Methods are patched on their classes, so whoever imported them before has them too. Outside of a call, and in
what they print, they are as before. The outermost open bar is the call's progress; inner ones go in `data`.
"""

import re
import sys
import time
from collections.abc import Generator
from functools import wraps
from typing import Any, Final
from weakref import ref

from afoot.providers.context import Context, current

_EVERY_S: Final = 0.05  # a bar is for eyes: between two reports of it
_DATA_EVERY_S: Final = 0.25  # inner bars are content, each one recorded
_MARKUP = re.compile(r"\[/?[a-z#@ ][^\[\]]*\]|\[/\]")

seen = 0
"""How many modules there were when `patch` last looked."""


class Bar:
    """One bar in a call."""

    __slots__ = ("counted", "done", "group", "is_open", "label", "owner", "total")

    def __init__(self, group: "Bars", owner: Any) -> None:
        self.group = group
        self.owner = ref(owner)
        self.done: float = 0
        self.total: float | None = None
        self.label: str | None = None
        self.counted = False  # it is being iterated over, and counted there
        self.is_open = True


class Bars:
    """The open bars of one call, outermost first."""

    __slots__ = ("_ctx", "_data_due", "_open", "_said", "due")

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._open: list[Bar] = []
        self.due = 0.0
        self._data_due = 0.0
        self._said: tuple[object, ...] = ()

    def add(self, owner: Any) -> Bar:
        """A new bar, inside of those that are still at work."""
        self._open = [bar for bar in self._open if bar.owner() is not None and not _is_full(bar)]
        bar = Bar(self, owner)
        self._open.append(bar)
        self.due = 0.0
        return bar

    def moved(self, bar: Bar, at_once: bool = False) -> None:
        """Report where things stand, if it is time."""
        now = time.monotonic()
        if not bar.is_open or not self._open or (now < self.due and not at_once):
            return
        first = self._open[0]
        inner = self._open[1:]
        says = (first, first.done, first.total, first.label)
        if at_once and says == self._said:
            return
        self._said = says if inner or bar is first else self._said
        if inner and now >= self._data_due:
            self._data_due = now + _DATA_EVERY_S
            rest = [{"label": other.label, "progress": other.done, "total": other.total} for other in inner]
            self._ctx.report(first.done, first.total, first.label, data={"bars": rest})
        elif bar is first:
            self._ctx.report(first.done, first.total, first.label)
        else:
            self._ctx.alive()
        self.due = now + _EVERY_S

    def close(self, bar: Bar) -> None:
        """The last state of a bar; then the next one is the outermost."""
        if bar.is_open and bar in self._open:
            if bar is self._open[0]:
                self.moved(bar, at_once=True)
            self._open.remove(bar)
        bar.is_open = False


def patch() -> None:
    """Patch what has been imported by now. Repeating it costs and changes nothing."""
    global seen
    seen = len(sys.modules)
    for name, classname, apply in (
        ("tqdm.std", "tqdm", _patch_tqdm),
        ("rich.progress", "Progress", _patch_rich),
    ):
        found = getattr(sys.modules.get(name), classname, None)
        if found is not None and "_afoot_patched" not in vars(found):
            found._afoot_patched = True
            apply(found)


def _group(ctx: Context) -> Bars:
    if ctx._bars is None:
        ctx._bars = Bars(ctx)
    return ctx._bars


def _is_full(bar: Bar) -> bool:
    return bar.total is not None and bar.done >= bar.total


def _tqdm_bar(owner: Any) -> Bar | None:
    """The bar of this object; a tqdm made before the call joins the call that first moves it."""
    bar = owner.__dict__.get("_afoot_bar")
    ctx = current.get()
    if ctx is None or (bar is not None and bar.group is ctx._bars):
        return bar
    bar = owner.__dict__["_afoot_bar"] = _group(ctx).add(owner)
    _read_tqdm(bar, owner)
    return bar


def _read_tqdm(bar: Bar, owner: Any) -> None:
    bar.total = owner.total
    bar.label = str(getattr(owner, "desc", "") or "").removesuffix(": ") or bar.label
    if not bar.counted and not owner.disable:
        bar.done = owner.n


def _counted(items: Generator[Any, Any, Any], owner: Any, bar: Bar) -> Generator[Any, Any, Any]:
    bar.counted = True
    group, clock = bar.group, time.monotonic
    try:
        group.moved(bar)
        for item in items:
            yield item
            bar.done += 1
            if clock() >= group.due:
                _read_tqdm(bar, owner)
                group.moved(bar)
    finally:
        items.close()
        group.close(bar)


def _patch_tqdm(cls: Any) -> None:
    init, iterate = cls.__init__, cls.__iter__

    @wraps(init)
    def patched_init(self: Any, *args: Any, **named: Any) -> None:
        init(self, *args, **named)
        bar = _tqdm_bar(self)
        if bar is not None and named.get("desc"):  # a disabled bar forgets its name
            bar.label = str(named["desc"])

    @wraps(iterate)
    def patched_iter(self: Any) -> Any:
        bar = _tqdm_bar(self)
        return iterate(self) if bar is None else _counted(iterate(self), self, bar)

    cls.__init__, cls.__iter__ = patched_init, patched_iter
    _patch_tqdm_moves(cls)


def _patch_tqdm_moves(cls: Any) -> None:
    update, refresh, close = cls.update, cls.refresh, cls.close

    @wraps(update)
    def patched_update(self: Any, n: float | None = 1) -> Any:
        out = update(self, n)
        bar = _tqdm_bar(self)
        if bar is not None and not bar.counted:
            bar.done += n or 0
            _read_tqdm(bar, self)
            bar.group.moved(bar)
        return out

    @wraps(refresh)
    def patched_refresh(self: Any, *args: Any, **named: Any) -> Any:
        bar = self.__dict__.get("_afoot_bar")
        if bar is not None and not bar.counted:
            _read_tqdm(bar, self)
            bar.group.moved(bar)
        return refresh(self, *args, **named)

    @wraps(close)
    def patched_close(self: Any) -> None:
        bar = self.__dict__.get("_afoot_bar")
        if bar is not None and not bar.counted:
            _read_tqdm(bar, self)
            bar.group.close(bar)
        close(self)

    cls.update, cls.refresh, cls.close = patched_update, patched_refresh, patched_close


def _read_rich(progress: Any, task_id: Any) -> None:
    bar = progress.__dict__.get("_afoot_bars", {}).get(task_id)
    task = progress._tasks.get(task_id)
    if bar is None or task is None:
        return
    bar.done, bar.total = task.completed, task.total
    bar.label = _MARKUP.sub("", str(task.description)).strip() or None
    if task.finished:
        bar.group.close(bar)
    else:
        bar.group.moved(bar)


def _patch_rich(cls: Any) -> None:
    add, stop = cls.add_task, cls.stop

    @wraps(add)
    def patched_add(self: Any, *args: Any, **named: Any) -> Any:
        task_id = add(self, *args, **named)
        ctx = current.get()
        if ctx is not None:
            # Bound to the object: rich moves bars from threads of its own, which know no call.
            self.__dict__.setdefault("_afoot_bars", {})[task_id] = _group(ctx).add(self)
            _read_rich(self, task_id)
        return task_id

    @wraps(stop)
    def patched_stop(self: Any) -> None:
        stop(self)
        for bar in self.__dict__.pop("_afoot_bars", {}).values():
            bar.group.close(bar)

    def moving(method: Any) -> Any:
        @wraps(method)
        def patched(self: Any, task_id: Any, *args: Any, **named: Any) -> Any:
            out = method(self, task_id, *args, **named)
            _read_rich(self, task_id)
            return out

        return patched

    cls.add_task, cls.stop = patched_add, patched_stop
    cls.update, cls.advance, cls.reset = moving(cls.update), moving(cls.advance), moving(cls.reset)
