"""The extension over the operator's API: its folders, the browsers it connects, and a new key."""

from msgspec import Struct

from afoot import state
from afoot.providers.browser.folder import Folders, link_url, shipped
from afoot.serve.request import Request

ROTATED = 4403


class FolderView(Struct, frozen=True):
    """A folder with a copy of the extension."""

    folder: str
    version: str


class LinkView(Struct, frozen=True):
    """A browser profile that the extension connects; `since` is when it connected."""

    profile: str
    name: str
    version: str
    connected: bool
    since: float
    user_scripts: bool  # whether plugins can run there


class ExtensionView(Struct, frozen=True):
    """The extension that belongs to this gateway, where its copies are, and who has connected."""

    id: str
    version: str
    url: str
    folders: list[FolderView]
    links: list[LinkView]
    problems: list[str] = []


async def index(request: Request) -> None:
    """The extension's folders, and the browsers it connects."""
    request.query()
    await request.answer(200, _seen(request, []))


async def rotate(request: Request) -> None:
    """Make a new key, tell the folders, and close every link; extensions then read the new one."""
    request.query()
    site = request.site
    problems = Folders().pair(link_url(site.url), state.rotate_link_key())
    if site.lines is not None:
        site.lines.close(ROTATED, "the key has been changed")
    await request.answer(200, _seen(request, problems))


def _seen(request: Request, problems: list[str]) -> ExtensionView:
    site, manifest = request.site, shipped()
    folders = [FolderView(copy.folder, copy.version) for copy in Folders().all()]
    links = [
        LinkView(
            line.profile, line.name, line.hello.version, line.socket is not None, line.since,
            line.hello.user_scripts,
        )
        for line in site.lines or ()
    ]  # fmt: skip
    return ExtensionView(manifest.id, manifest.version, link_url(site.url), folders, links, problems)
