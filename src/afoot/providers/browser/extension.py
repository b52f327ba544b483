"""`ExtensionLinks` keeps an ExtensionLink for each browser profile that the extension connects.

A link stays the same object over all WebSockets of its profile: a browser stops and starts the extension's
service worker often.
"""

from collections.abc import Callable, Iterator
from typing import Protocol

from afoot.providers.browser.profiles import BrowserListener, Carrier
from afoot.providers.browser.views import TabView
from afoot.wire.extension import FromBrowser, LinkHello, LinkWelcome, ToBrowser, write_frame

REPLACED_CODE = 4409
MAX_LINKS = 64  # links that are remembered; beyond that, the oldest without a socket are forgotten
ID_CHARS = 8  # of a profile's id, in the name of a browser without a label


class FrameSocket(Protocol):
    """The WebSocket that a link has at the moment. Both methods return at once."""

    def put(self, frame: bytes) -> bool:
        """Send a frame; False if the socket takes no more."""
        ...

    def close(self, code: int, why: str) -> None:
        """Close the socket with a code and a reason."""
        ...


class BrowserRegistry(BrowserListener, Protocol):
    """Receives the frames of all browsers, and knows what runs in them."""

    def is_busy(self, carrier: Carrier) -> bool:
        """Whether a tool runs in this browser."""
        ...

    def running_tabs(self, carrier: Carrier | None = None) -> dict[str, str]:
        """The browser's own ids of the tabs in which calls run, by call id."""
        ...

    def tab_views(self, carrier: Carrier | None = None) -> list[TabView]:
        """Describe the tabs of one browser, or of all."""
        ...


class ExtensionLink:
    """The link to the extension in one browser profile (`profiles.Carrier`)."""

    def __init__(self, profile: str, hello: LinkHello) -> None:
        self.profile = profile
        self.hello = hello  # the newest
        self.socket: FrameSocket | None = None
        self._held_frames: list[bytes] | None = None  # frames that wait for the welcome
        self.since = 0.0  # when its socket was opened
        self.reloads_asked: set[str] = set()  # versions for which the extension was asked to reload itself

    @property
    def name(self) -> str:
        """The browser's name, for people."""
        return self.hello.label or f"browser {self.profile[:ID_CHARS]}"

    def send(self, message: ToBrowser) -> bool:
        """Send a frame; False if there is no socket now."""
        if self._held_frames is not None:
            self._held_frames.append(write_frame(message))
            return True
        return self.socket is not None and self.socket.put(write_frame(message))

    def attach(self, socket: FrameSocket, hello: LinkHello, now: float) -> None:
        """Use this socket from now on. Frames to the browser wait until it is welcomed."""
        self.socket = socket
        self.hello = hello
        self.since = now
        self._held_frames = list[bytes]()

    def welcome(self, welcome: LinkWelcome) -> None:
        """Send the welcome, and then the frames that have waited."""
        held_frames = self._held_frames or []
        self._held_frames = None
        self.send(welcome)
        if self.socket is not None:
            for frame in held_frames:
                self.socket.put(frame)


class ExtensionLinks:
    """The links of all browser profiles that the extension connects."""

    def __init__(self, browsers: BrowserRegistry, grace_s: Callable[[], float]) -> None:
        """`grace_s` gives the time that a browser has to come back, as it is set now."""
        self.browsers = browsers
        self._grace_s = grace_s
        self._known: dict[str, ExtensionLink] = {}

    def __iter__(self) -> Iterator[ExtensionLink]:
        return iter(list(self._known.values()))

    def connected(self) -> list[ExtensionLink]:
        """The links that have a socket now."""
        return [link for link in self if link.socket is not None]

    def attach(self, socket: FrameSocket, hello: LinkHello, now: float) -> ExtensionLink:
        """Take in a browser, for the first time or again, and welcome it; its older socket is closed."""
        link = self._known.pop(hello.profile, None) or ExtensionLink(hello.profile, hello)
        if link.socket is not None:
            link.socket.close(REPLACED_CODE, "the same profile has connected again")
            self.browsers.on_disconnect(link, "replaced", self._grace_s())
        link.attach(socket, hello, now)
        self._known[hello.profile] = link
        self._forget_oldest()
        link.welcome(self.browsers.on_connect(link, hello))
        return link

    def receive(self, link: ExtensionLink, socket: FrameSocket, message: FromBrowser) -> None:
        """Pass a frame on, unless it comes from an older socket of the browser."""
        if link.socket is socket:
            self.browsers.on_frame(link, message)

    def detach(self, link: ExtensionLink, socket: FrameSocket, why: str) -> None:
        """Note that a socket is gone; its browser has its grace to come back, unless it is back already."""
        if link.socket is socket:
            link.socket = None
            self.browsers.on_disconnect(link, why, self._grace_s())

    def close(self, code: int, why: str) -> None:
        """Close every socket."""
        for link in self.connected():
            assert link.socket is not None
            link.socket.close(code, why)

    def _forget_oldest(self) -> None:
        away = [link.profile for link in self if link.socket is None]
        for profile in away[: max(0, len(self._known) - MAX_LINKS)]:
            del self._known[profile]
