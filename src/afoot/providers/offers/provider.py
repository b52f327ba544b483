"""`OfferProvider` runs the functions that are resources and prompts, and completes their arguments.

An offer that cannot be served is left out, with a line in `problems`; the others are served.
"""

import asyncio
import inspect
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from afoot.config.tables import LOCAL_SERVER
from afoot.core.facts import Result
from afoot.core.names import PROMPT_PREFIX, RESOURCE_PREFIX
from afoot.core.ports import Run, RunnerStart, Tool, Work
from afoot.engine.catalog import EffectiveSettings
from afoot.errors import BadTool, ToolError, UnknownName
from afoot.providers.functions.lifespans import Lifespans
from afoot.providers.functions.options import FunctionSettings
from afoot.providers.functions.tool import FunctionProvider, Overrides
from afoot.providers.functions.watchdog import Watchdog
from afoot.providers.isolation.pool import ChildPool
from afoot.providers.offers.offer import (
    Arguments,
    Encode,
    FunctionPrompt,
    FunctionResource,
    Json,
    Offer,
    choices,
    function_offers,
)

log = logging.getLogger("afoot.providers")


class OfferProvider:
    """The resources and prompts of these functions. It runs them as `FunctionProvider` runs tools."""

    def __init__(
        self,
        functions: Iterable[Callable[..., Any]],
        settings: FunctionSettings = FunctionSettings(),  # noqa: B008
        watchdog: Watchdog | None = None,
        pool: ChildPool | None = None,
        overrides: Overrides | None = None,
        lifespans: Lifespans | None = None,
    ) -> None:
        self.problems: list[str] = []
        self._resources: dict[str, FunctionResource] = {}
        self._templates: list[FunctionResource] = []  # a narrower one before a wider one
        self._prompts: dict[str, FunctionPrompt] = {}
        for function in functions:
            for offer in function_offers(function):
                self._add(offer)
        self._offers: dict[str, Offer] = {offer.tool.name: offer for offer in self._all()}
        self._inner = FunctionProvider(
            (offer.tool for offer in self._all()),
            settings=settings,
            watchdog=watchdog,
            pool=pool,
            overrides=overrides,
            lifespans=lifespans,
        )
        self.apps = self._inner.apps
        self._tools = {tool.name: _effective(tool, settings) for tool in self._inner.tools()}
        self.resources: Sequence[Json] = [one.definition() for one in self._resources.values()]
        self.templates: Sequence[Json] = [one.definition() for one in self._templates]
        self.prompts: Sequence[Json] = [one.definition() for one in self._prompts.values()]

    @property
    def name(self) -> str:
        """The server's name."""
        return LOCAL_SERVER

    def __bool__(self) -> bool:
        return bool(self._offers)

    def tools(self) -> Sequence[Tool]:
        """The calls that read resources and fill in prompts; they are no tools for a model."""
        return tuple(self._tools.values())

    def find_resource(self, uri: str) -> Tool | None:
        """The call that reads this URI: a resource of exactly this URI, else the narrowest template."""
        found = self._resources.get(uri) or self._template_of(uri)
        return None if found is None else self._tools[found.tool.name]

    def find_prompt(self, name: str) -> Tool | None:
        """The call that fills in the prompt of this name."""
        return self._tools.get(PROMPT_PREFIX + name)

    def find_referenced(self, ref: Mapping[str, Any]) -> Tool | None:
        """The call of the prompt or resource whose arguments are completed."""
        found = self._referenced(ref)
        return None if found is None else self._tools[found.tool.name]

    def prepare(self, tool: str, arguments: Raw) -> Work:
        """The work of one attempt; raises UnknownName, or ToolError.validation naming the arguments."""
        offer = self._offers.get(tool)
        if offer is None:
            raise UnknownName("resource or prompt", tool, self._offers)
        given, encode = offer.read(arguments)
        try:
            return partial(_run, self._prepare_texts(tool, given), encode)
        except ToolError as error:
            if offer.kind == "prompt":
                raise
            raise ToolError.validation(f"uri: {error.message.replace('arguments.', '')}") from None

    def start(self, tool: str, caller: str) -> RunnerStart | None:
        """The start of a lifespan; these functions run in this process."""
        return self._inner.start(tool, caller)

    def close(self) -> None:
        """Stop the loops of single functions."""
        self._inner.close()

    async def complete(
        self, ref: Mapping[str, Any], argument: str, value: str, given: Mapping[str, str]
    ) -> list[str]:
        """The possible values of an argument, by the text that was typed so far.

        They are those of the author's function, else those that the annotation lists. Raises UnknownName.
        """
        offer = self._referenced(ref)
        if offer is None:
            raise UnknownName("prompt or resource", str(ref.get("name") or ref.get("uri")), self._subjects())
        function = offer.completions.get(argument)
        if function is not None:
            return await _run_completion(function, value, given, offer)
        schema = offer.tool.signature.schema
        known = schema.get("properties", {})
        if argument not in known:
            raise UnknownName(f"argument of {offer.subject}:", argument, known)
        return _that_fit(choices(known[argument], schema), value)

    def _add(self, offer: FunctionResource | FunctionPrompt) -> None:
        """Take an offer, or say why it cannot be served."""
        try:
            offer.check()
            if isinstance(offer, FunctionPrompt):
                self._check_is_first(offer, self._prompts.get(offer.subject))
                self._prompts[offer.subject] = offer
            elif offer.kind == "resource":
                self._check_is_first(offer, self._resources.get(offer.subject))
                self._resources[offer.subject] = offer
            else:
                self._add_template(offer)
        except BadTool as error:
            self.problems.append(str(error))
            return
        known = offer.tool.signature.schema.get("properties", {})
        for argument in offer.completions:
            if argument not in known:
                where = f"{offer.kind} {offer.subject} ({offer.tool.location})"
                unknown = UnknownName("argument", argument, known)
                self.problems.append(f"{where}: a completion is for an {unknown}")

    def _check_is_first(self, offer: Offer, other: Offer | None) -> None:
        if other is not None and other is not offer:
            both = f"{other.tool.location} and {offer.tool.location}"
            raise BadTool(f"two {offer.kind}s are {offer.subject}: {both}; the first one is served")

    def _add_template(self, offer: FunctionResource) -> None:
        """Put a template before the first one that is wider; raises BadTool if one takes all its URIs."""
        place = len(self._templates)
        for at, other in enumerate(self._templates):
            if other.template.covers(offer.template):
                if offer.template.covers(other.template):
                    both = (
                        f"{other.subject} ({other.tool.location}) and {offer.subject} ({offer.tool.location})"
                    )
                    raise BadTool(f"two templates are for the same URIs: {both}; the first one is served")
                place = min(place, at)
        self._templates.insert(place, offer)

    def _all(self) -> list[Offer]:
        return [*self._resources.values(), *self._templates, *self._prompts.values()]

    def _subjects(self) -> list[str]:
        return [offer.subject for offer in self._offers.values()]

    def _template_of(self, uri: str) -> FunctionResource | None:
        return next((one for one in self._templates if one.template.match(uri) is not None), None)

    def _referenced(self, ref: Mapping[str, Any]) -> Offer | None:
        """The offer that a completion is for: a prompt, a template, or the template of a URI."""
        if ref.get("type") == "ref/prompt":
            return self._offers.get(f"{PROMPT_PREFIX}{ref.get('name')}")
        uri = str(ref.get("uri"))
        return self._offers.get(RESOURCE_PREFIX + uri) or self._template_of(uri)

    def _prepare_texts(self, tool: str, given: Arguments) -> Work:
        """The work for arguments that are texts; raises ToolError.validation naming the arguments.

        A type that takes no text, such as `Literal[1, 2]` or `list[int]`, gets the JSON that the text is.
        """
        try:
            return self._inner.prepare(tool, Raw(msgspec.json.encode(given)))
        except ToolError:
            decoded = {key: _decoded(value) for key, value in given.items()}
            if decoded == given:
                raise
            try:
                return self._inner.prepare(tool, Raw(msgspec.json.encode(decoded)))
            except ToolError:
                pass
            raise


async def _run(work: Work, encode: Encode, run: Run) -> Result:
    value: Any = await work(run)
    return encode(value)


def _effective(tool: Tool, settings: FunctionSettings) -> Tool:
    """The call as it is run. Tables of tools are for it only if they name it: `[tools."resource …"]`."""
    found = settings.effective_settings
    named = (RESOURCE_PREFIX, PROMPT_PREFIX)
    own_prefix = f"{LOCAL_SERVER}/"
    tables = {
        own_prefix + key.removeprefix(own_prefix): value  # a URI has slashes, which end the name of a server
        for key, value in found.tools.items()
        if key.removeprefix(own_prefix).startswith(named)
    }
    own = EffectiveSettings(
        tables, {}, max_idle_s=found.max_idle_s, max_ceiling_s=found.max_ceiling_s, redactor=found.redactor
    )
    return own.apply_to(replace(tool, read_only=True, approval=tool.approval or "auto"))


async def _run_completion(
    function: Callable[..., Any], value: str, given: Mapping[str, str], offer: Offer
) -> list[str]:
    """The values of an author's function; one that raises is logged, and completes nothing."""
    parameters = inspect.signature(function).parameters
    arguments = (value, dict(given))[: max(1, len(parameters))]
    try:
        if inspect.iscoroutinefunction(function):
            found = await function(*arguments)
        else:
            found = await asyncio.to_thread(function, *arguments)
        return [str(one) for one in found or ()]
    except Exception:
        log.exception("the completion of %s %s failed", offer.kind, offer.subject)
        raise ToolError.internal(f"the completion of {offer.kind} {offer.subject} failed") from None


def _that_fit(values: Sequence[str], typed: str) -> list[str]:
    """The values that begin with the typed text, and then the values that contain it; case is ignored."""
    wanted = typed.casefold()
    first = [value for value in values if value.casefold().startswith(wanted)]
    return first + [value for value in values if value not in first and wanted in value.casefold()]


def _decoded(value: Any) -> Any:
    """The JSON that a text is, or the text itself."""
    if isinstance(value, list):
        return [_decoded(one) for one in value]
    if not isinstance(value, str):
        return value
    try:
        return msgspec.json.decode(value)
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
        return value
