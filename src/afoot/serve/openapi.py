"""The operator's API described for programs: OpenAPI 3.1, made from the routes and the types they use."""

import re
from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Struct

from afoot.serve.principal import ADMIN, WATCH
from afoot.serve.request import Handler

PATH_PART = re.compile(r"\{(\w+)\}")


class Problem(Struct, frozen=True):
    """What went wrong, and what to do; further fields say more."""

    message: str
    category: str


class Failed(Struct, frozen=True):
    """The answer instead of what was asked for."""

    error: Problem


class Route(Struct, frozen=True):
    """A method and a path, and who answers."""

    method: str
    path: str
    handler: Handler
    gives: type | str = "text/event-stream"  # a type is answered as JSON
    takes: type | None = None
    query: tuple[str, ...] = ()
    status: int = 200
    is_public: bool = False
    scope: tuple[str, ...] = ()  # one of these is needed; without, `watch` to read and `admin` for the rest

    @property
    def needs(self) -> tuple[str, ...]:
        """The scopes without any of which nobody is answered."""
        return self.scope or ((WATCH,) if self.method == "GET" else (ADMIN,))


def document(routes: Sequence[Route], version: str) -> dict[str, Any]:
    """The description of these routes."""
    types = [one for route in routes for one in (route.gives, route.takes) if isinstance(one, type)]
    schemas, components = msgspec.json.schema_components(
        dict.fromkeys([*types, Failed]), ref_template="#/components/schemas/{name}"
    )
    known = dict(zip(dict.fromkeys([*types, Failed]), schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, known)
    return {
        "openapi": "3.1.0",
        "info": {"title": "afoot: the operator's API", "version": version},
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"operator": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(route: Route, known: dict[type, Any]) -> dict[str, Any]:
    if isinstance(route.gives, type):
        content: dict[str, Any] = {"application/json": {"schema": known[route.gives]}}
    else:
        content = {route.gives: {"schema": {"type": "string"}}}
    wrong = {"description": "what went wrong", "content": {"application/json": {"schema": known[Failed]}}}
    operation: dict[str, Any] = {
        "summary": (route.handler.__doc__ or "").split("\n")[0],
        "parameters": _parameters(route),
        "responses": {str(route.status): {"description": "as asked", "content": content}, "default": wrong},
        "security": [] if route.is_public else [{"operator": []}],
    }
    if route.takes is not None:
        operation["requestBody"] = {"content": {"application/json": {"schema": known[route.takes]}}}
    return operation


def _parameters(route: Route) -> list[dict[str, Any]]:
    text = {"type": "string"}
    inside = [
        {"name": name, "in": "path", "required": True, "schema": text}
        for name in PATH_PART.findall(route.path)
    ]
    return inside + [{"name": name, "in": "query", "schema": text} for name in route.query]
