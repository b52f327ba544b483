"""`PageToolList` lists the tools of all page contexts; `ContextChooser` picks the context for a call (B2).

A tool that several tabs have, with the same source and definition, is offered once. A call names its tab, or
runs in the tab that the person at the browser used last.
"""

from collections import Counter
from collections.abc import Iterable, Iterator

from msgspec import Struct
from msgspec.structs import replace

from afoot.core.facts import Limits
from afoot.core.ports import Tool
from afoot.errors import ToolError
from afoot.providers.browser.page_run import page_url
from afoot.providers.browser.plugins.plugin import Plugin
from afoot.providers.browser.profiles import OpenContext, Profiles
from afoot.providers.browser.tools.draft import TAB_ARGUMENT, ToolDraft
from afoot.providers.browser.tools.names import PLUGIN_OWNER, ToolNames, tool_name, with_hash
from afoot.providers.content import clean_line

MAX_TABS_SHOWN = 10  # in one error
TEXT_CHARS = 200  # of a text that a page has written
NO_TAB = "no_tab"
NO_SCRIPTS = "no_user_scripts"
USER_SCRIPTS_HINT = 'turn on "Allow User Scripts" under "Details" of afoot on chrome://extensions'
GONE_TOOL_S = 900.0  # time for which a tool is remembered after its last tab was closed
MAX_GONE_TOOLS = 256


class GoneTool(Struct, frozen=True):
    """A tool that no open tab has any more."""

    tool: Tool
    url: str
    until: float


class PageToolList:
    """The tools that are offered, with their names. Of one source at most `per_origin` tools are listed."""

    def __init__(self, names: ToolNames, limits: Limits, per_origin: int) -> None:
        self.names = names
        self.limits = limits
        self.per_origin = per_origin
        self.drafts: dict[str, ToolDraft] = {}  # by the name under which each is offered
        self.gone: dict[str, GoneTool] = {}
        self.left_out: Counter[str] = Counter()  # number of tools over `per_origin`, by source
        self.tools: list[Tool] = []
        self._name_by_key: dict[str, str] = {}  # by the draft's key
        self._url_by_name: dict[str, str] = {}  # the page that a tool was last seen at

    def refresh(self, standing: Iterable[ToolDraft], contexts: list[OpenContext], now: float) -> bool:
        """Make the list anew; returns whether it has changed. `standing` is offered with or without a tab."""
        self.left_out = Counter()
        by_key = {draft.key: draft for draft in self._each_draft(standing, contexts)}
        before, tools = self.drafts, self.tools
        self._name_by_key = self._assign_names(by_key)
        self.drafts = {name: by_key[key] for key, name in self._name_by_key.items()}
        self._keep_gone(before, contexts, now)
        live = [draft.tool(name, self.limits) for name, draft in self.drafts.items()]
        self.tools = [*live, *(replace(one.tool, gone=True) for one in self.gone.values())]
        self.names.forget_oldest(self.drafts)
        return self.tools != tools

    def _each_draft(self, standing: Iterable[ToolDraft], contexts: list[OpenContext]) -> Iterator[ToolDraft]:
        """Every draft once, oldest context first, at most `per_origin` of a source."""
        times, seen = Counter[str](), set[str]()
        drafts = [*standing, *(draft for context in contexts for draft in context.drafts.values())]
        for draft in drafts:
            if draft.key in seen:
                continue
            seen.add(draft.key)
            times[draft.source.id] += 1
            if times[draft.source.id] <= self.per_origin:
                yield draft
            else:
                self.left_out[draft.source.id] += 1

    def _assign_names(self, by_key: dict[str, ToolDraft]) -> dict[str, str]:
        """Give each draft a name; it keeps the one that it has, but a page gives way to a plugin (B2)."""
        plugins = {key: draft for key, draft in by_key.items() if _is_of_plugin(draft)}
        pages = {key: draft for key, draft in by_key.items() if key not in plugins}
        named: dict[str, str] = {}
        for group in (plugins, pages):
            wanted = {key: _wanted_name(draft) for key, draft in group.items()}
            for key, (name, owner) in wanted.items():
                kept = self._name_by_key.get(key)
                if kept is not None and self.names.is_kept(kept, name, owner):
                    named[key] = kept
            used = set(named.values())
            for key, (name, owner) in wanted.items():
                if key not in named:
                    named[key] = self.names.assign(name, owner, key, used)
                    used.add(named[key])
        return {key: named[key] for key in by_key}

    def _keep_gone(self, before: dict[str, ToolDraft], contexts: list[OpenContext], now: float) -> None:
        """Keep tools that no tab has any more for a while, so that a call can say where they were."""
        for name, draft in before.items():
            if name not in self.drafts and not _is_of_plugin(draft):
                tool = draft.tool(name, self.limits)
                self.gone[name] = GoneTool(
                    tool, self._url_by_name.get(name, draft.source.address), now + GONE_TOOL_S
                )
        kept = {name: one for name, one in self.gone.items() if name not in self.drafts and one.until > now}
        self.gone = dict(list(kept.items())[-MAX_GONE_TOOLS:])
        seen = {key: page_url(context) for context in contexts for key in context.drafts}
        self._url_by_name = {name: seen[key] for key, name in self._name_by_key.items() if key in seen}


def _wanted_name(draft: ToolDraft) -> tuple[str, str]:
    """The name that a tool would have, and its owner."""
    name, owner = tool_name(draft.source.name_stem, draft.page), f"{draft.source.owner} {draft.page}"
    # A framed page never gets the name of the page itself.
    return (with_hash(name, owner) if draft.source.usual == "off" else name), owner


def _is_of_plugin(draft: ToolDraft) -> bool:
    return draft.source.owner.startswith(PLUGIN_OWNER)


class ContextChooser:
    """Picks the page context in which a tool runs."""

    def __init__(self, profiles: Profiles) -> None:
        self._profiles = profiles
        self.plugins: list[Plugin] = []

    def choose(self, draft: ToolDraft, tab: str = "") -> OpenContext:
        """The page context for a call; raises ToolError: validation (wrong tab), unavailable (no tab)."""
        with_tool = [context for context in self._profiles.contexts() if draft.key in context.drafts]
        in_tab = [context for context in with_tool if tab in ("", context.key)]
        if tab and not in_tab:
            raise _wrong_tab(tab, with_tool)
        ready = [context for context in in_tab if context.can_run]
        if not ready:
            raise self._unavailable(draft, in_tab)
        return max(ready, key=OpenContext.rank)

    def missing_context(self, draft: ToolDraft, tab: str = "") -> OpenContext | None:
        """A page context that has the tool and may be back in a moment; None if another can run it now."""
        with_tool = [context for context in self._profiles.contexts() if draft.key in context.drafts]
        in_tab = [context for context in with_tool if tab in ("", context.key)]
        if any(context.can_run for context in in_tab):
            return None
        return next((context for context in in_tab if context.is_awaited or not context.profile.is_up), None)

    def _unavailable(self, draft: ToolDraft, contexts: list[OpenContext]) -> ToolError:
        """The error that says why the tool cannot run now, and what to do."""
        waiting = next((context for context in contexts if not context.is_ready), None)
        if waiting is not None:
            why = clean_line(waiting.why, TEXT_CHARS) or "the plugin is not ready there"
            return ToolError.unavailable(f"tab {waiting.key} is not ready: {why}", code="tab_not_ready")
        plugin = next((one for one in self.plugins if one.source == draft.source.id), None)
        up = [profile for profile in self._profiles if profile.is_up]
        if not up:
            return ToolError.unavailable(
                "no browser is connected: start one with afoot's extension, or see `afoot browser`",
                code=NO_TAB,
            )
        if plugin is not None and not any(profile.user_scripts for profile in up):
            where = clean_line(up[0].name, TEXT_CHARS)
            return ToolError.unavailable(
                f"the plugin {plugin.name} cannot run in {where}: {USER_SCRIPTS_HINT}, then call it again",
                code=NO_SCRIPTS,
            )
        if plugin is not None:
            return ToolError.unavailable(
                f"no open tab is a page of the plugin {plugin.name}: open {plugin.start}, then call it again",
                code=NO_TAB,
            )
        return ToolError.unavailable(f"no open tab of {draft.source.address} has it any more", code=NO_TAB)


def _wrong_tab(tab: str, with_tool: Iterable[OpenContext]) -> ToolError:
    found = list(with_tool)[:MAX_TABS_SHOWN]
    shown = [
        f"{context.key} ({clean_line(context.tab.title, TEXT_CHARS) or context.info.origin})"
        for context in found
    ]
    where = f"; it is in {', '.join(shown)}" if shown else ""
    return ToolError.validation(f"arguments.{TAB_ARGUMENT}: this tool is not in tab {tab[:20]!r}{where}")
