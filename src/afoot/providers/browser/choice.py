"""In which tab a tool is run: the one that is named, else the one that somebody looks at; or why in none."""

from collections.abc import Iterable

from afoot.errors import ToolError
from afoot.providers.browser.offers import TAB, Draft
from afoot.providers.browser.plugin import Plugin
from afoot.providers.browser.rooms import OpenRoom, Profiles
from afoot.providers.hygiene import line

SHOWN = 10  # tabs in an error
WORDS = 200  # characters of what a page says of itself
NO_TAB = "no_tab"
NO_SCRIPTS = "no_user_scripts"
SWITCH = 'turn on "Allow User Scripts" under "Details" of afoot on chrome://extensions'


class Choice:
    """Chooses rooms, as things are now."""

    def __init__(self, profiles: Profiles) -> None:
        self._profiles = profiles
        self.plugins: list[Plugin] = []

    def room(self, draft: Draft, tab: str = "") -> OpenRoom:
        """The room to run it in; raises ToolError: validation for a wrong tab, unavailable without any."""
        having = [room for room in self._profiles.rooms() if draft.key in room.drafts]
        meant = [room for room in having if tab in ("", room.key)]
        if tab and not meant:
            raise _wrong_tab(tab, having)
        able = [room for room in meant if room.can_run]
        if not able:
            raise self._unavailable(draft, meant)
        return max(able, key=OpenRoom.rank)

    def awaited(self, draft: Draft, tab: str = "") -> OpenRoom | None:
        """A room that may be back in a moment, if there is no other."""
        having = [room for room in self._profiles.rooms() if draft.key in room.drafts]
        meant = [room for room in having if tab in ("", room.key)]
        if any(room.can_run for room in meant):
            return None
        return next((room for room in meant if room.is_awaited or not room.profile.is_up), None)

    def _unavailable(self, draft: Draft, rooms: list[OpenRoom]) -> ToolError:
        """Why it cannot be run, and what to do."""
        waiting = next((room for room in rooms if not room.is_ready), None)
        if waiting is not None:
            why = line(waiting.why, WORDS) or "the plugin is not ready there"
            return ToolError.unavailable(f"tab {waiting.key} is not ready: {why}", code="tab_not_ready")
        plugin = next((one for one in self.plugins if one.source == draft.source.id), None)
        up = [profile for profile in self._profiles if profile.is_up]
        if not up:
            return ToolError.unavailable(
                "no browser is connected: start one with afoot's extension, or see `afoot browser`",
                code=NO_TAB,
            )
        if plugin is not None and not any(profile.user_scripts for profile in up):
            where = line(up[0].name, WORDS)
            return ToolError.unavailable(
                f"the plugin {plugin.name} cannot run in {where}: {SWITCH}, then call it again",
                code=NO_SCRIPTS,
            )
        if plugin is not None:
            return ToolError.unavailable(
                f"no open tab is a page of the plugin {plugin.name}: open {plugin.start}, then call it again",
                code=NO_TAB,
            )
        return ToolError.unavailable(f"no open tab of {draft.source.address} has it any more", code=NO_TAB)


def _wrong_tab(tab: str, having: Iterable[OpenRoom]) -> ToolError:
    found = list(having)[:SHOWN]
    shown = [f"{room.key} ({line(room.tab.title, WORDS) or room.room.origin})" for room in found]
    those = f"; it is in {', '.join(shown)}" if shown else ""
    return ToolError.validation(f"arguments.{TAB}: this tool is not in tab {tab[:20]!r}{those}")
