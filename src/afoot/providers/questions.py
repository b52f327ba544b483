"""What a tool asks and what it gets back: forms by types, and the reply."""

from collections.abc import Coroutine, Generator, Mapping
from functools import lru_cache
from typing import Any, Final

import msgspec
from msgspec import Raw
from pydantic import TypeAdapter, ValidationError

from afoot.core.facts import Answer, Result
from afoot.errors import ToolError
from afoot.providers import schema as schemas

_CONFIRM: Final = Raw(b'{"type":"object","properties":{}}')


class Reply:
    """What came back on a question: true only if it was accepted.

    In an async tool it must be awaited first; in a sync tool it is complete at once.
    """

    __slots__ = ("_action", "_content", "_pending")

    def __init__(self, action: str = "", content: Any = None) -> None:
        self._action = action
        self._content = content
        self._pending: Coroutine[Any, Any, Reply] | None = None

    @classmethod
    def later(cls, pending: "Coroutine[Any, Any, Reply]") -> "Reply":
        """A reply that has to be awaited."""
        reply = cls()
        reply._pending = pending
        return reply

    @property
    def action(self) -> str:
        """accept, decline or cancel."""
        self._check()
        return self._action

    @property
    def content(self) -> Any:
        """What was filled in, as the type that was asked for; None unless it was accepted."""
        self._check()
        return self._content

    def __bool__(self) -> bool:
        self._check()
        return self._action == "accept"

    def __await__(self) -> Generator[Any, Any, "Reply"]:
        if self._pending is not None:
            done = yield from self._pending.__await__()
            self._pending = None
            self._action, self._content = done.action, done.content
        return self

    def __repr__(self) -> str:
        return "Reply(not awaited)" if self._pending else f"Reply({self._action!r}, {self._content!r})"

    def _check(self) -> None:
        if self._pending is not None:
            raise RuntimeError("write `await ctx.ask(...)` in an async tool")


class Form:
    """What is asked for: the schema that goes out, and the reading of what comes back."""

    __slots__ = ("_adapter", "_wrapped", "body")

    def __init__(self, body: Raw, adapter: TypeAdapter[Any] | None = None, wrapped: bool = False) -> None:
        self.body = body
        self._adapter = adapter
        self._wrapped = wrapped

    def read(self, answer: Answer) -> Reply:
        """The reply; raises ToolError.validation if what was accepted does not fit the type."""
        if answer.action != "accept":
            return Reply(answer.action)
        content = bytes(answer.content) or b"{}"
        if self._adapter is None:
            return Reply("accept", msgspec.json.decode(content))
        try:
            filled = self._adapter.validate_json(content)
        except ValidationError as error:
            raise ToolError.validation(schemas.explain(error, "answer")) from error
        return Reply("accept", filled["value"] if self._wrapped else filled)


def form_of(schema: Any) -> Form:
    """The form for a JSON schema, a model, dataclass or TypedDict, a plain type (one field), or None."""
    if schema is None:
        return Form(_CONFIRM)
    if isinstance(schema, Mapping):
        return Form(Raw(msgspec.json.encode(dict(schema))))
    return _typed(schema)


@lru_cache(maxsize=256)
def _typed(schema: Any) -> Form:
    adapter = schemas.adapter(schema)
    found = schemas.json_schema(adapter, "validation")
    wrapped = not schemas.is_object(found)
    if wrapped:
        # A form is an object, so a plain type becomes its only field.
        adapter = schemas.adapter(schemas.one_field("value", schema))
        found = schemas.json_schema(adapter, "validation")
    return Form(Raw(msgspec.json.encode(schemas.form(found))), adapter, wrapped)


def value_of(answer: Answer) -> Any:
    """What a sample or roots question brought; raises ToolError.refused if it was not given."""
    if answer.action != "accept":
        raise ToolError.refused(f"the caller did not answer: {answer.action}")
    return msgspec.json.decode(bytes(answer.content) or b"null")


def roots_of(answer: Answer) -> list[Any]:
    """The roots, with or without the object around them."""
    value = value_of(answer)
    return list(value.get("roots", ()) if isinstance(value, dict) else value or ())


def returned(result: Result) -> Any:
    """What a tool below gave: its structured form, or its text where it has none."""
    if result.structured:
        return msgspec.json.decode(bytes(result.structured))
    return "".join(str(item.get("text", "")) for item in msgspec.json.decode(bytes(result.content)))
