"""Browsers that the extension connects: a line for each profile, the same one over all of its sockets."""

from collections.abc import Callable, Iterator
from typing import Protocol

from afoot.providers.browser.carrier import Audience, Carrier
from afoot.providers.browser.tabs import TabView
from afoot.wire.link import FromBrowser, Hello, ToBrowser, Welcome, write

REPLACED = 4409
MOST = 64  # lines that are remembered; those without a socket make room
SHOWN = 8  # characters of a profile's id that stand for it


class Socket(Protocol):
    """What a line is connected by at the moment. Both return at once."""

    def put(self, frame: bytes) -> bool:
        """Send a frame; False if the socket takes no more."""
        ...

    def close(self, code: int, why: str) -> None:
        """Say why, and go."""
        ...


class Browsers(Audience, Protocol):
    """Whoever hears all browsers, and knows what runs in them."""

    def is_busy(self, carrier: Carrier) -> bool:
        """Whether a tool runs there."""
        ...

    def places(self, carrier: Carrier | None = None) -> dict[str, str]:
        """In which tabs calls run, by the calls' ids."""
        ...

    def tab_views(self, carrier: Carrier | None = None) -> list[TabView]:
        """The tabs of one browser, or of all."""
        ...


class Line:
    """One browser profile, as the extension in it reaches us (`Carrier`)."""

    def __init__(self, profile: str, hello: Hello) -> None:
        self.profile = profile
        self.hello = hello  # the newest
        self.socket: Socket | None = None
        self._early: list[bytes] | None = None  # what is said before the welcome
        self.since = 0.0  # when its socket was opened
        self.told: set[str] = set()  # versions it was asked to load itself anew for

    @property
    def name(self) -> str:
        """Which browser this is, for people."""
        return self.hello.label or f"browser {self.profile[:SHOWN]}"

    def send(self, message: ToBrowser) -> bool:
        """Send a frame; False if there is no socket now."""
        if self._early is not None:
            self._early.append(write(message))
            return True
        return self.socket is not None and self.socket.put(write(message))

    def begin(self, socket: Socket, hello: Hello, now: float) -> None:
        """A browser has come over this socket. What it is sent waits for its welcome."""
        self.socket, self.hello, self.since = socket, hello, now
        self._early = list[bytes]()

    def welcome(self, welcome: Welcome) -> None:
        """Welcome it, and then send what has waited."""
        early, self._early = self._early or [], None
        self.send(welcome)
        if self.socket is not None:
            for frame in early:
                self.socket.put(frame)


class Lines:
    """All browsers that the extension connects, and whoever hears them."""

    def __init__(self, browsers: Browsers, grace_s: Callable[[], float]) -> None:
        """`grace_s`: how long a browser has to come back, as it is set now."""
        self.browsers = browsers
        self._grace_s = grace_s
        self._known: dict[str, Line] = {}

    def __iter__(self) -> Iterator[Line]:
        return iter(list(self._known.values()))

    def connected(self) -> list[Line]:
        """Those that have a socket now."""
        return [line for line in self if line.socket is not None]

    def join(self, socket: Socket, hello: Hello, now: float) -> Line:
        """A browser is there, for the first time or again; its older socket is closed. It is welcomed."""
        line = self._known.pop(hello.profile, None) or Line(hello.profile, hello)
        if line.socket is not None:
            line.socket.close(REPLACED, "the same profile has connected again")
            self.browsers.left(line, "replaced", self._grace_s())
        line.begin(socket, hello, now)
        self._known[hello.profile] = line
        self._make_room()
        line.welcome(self.browsers.joined(line, hello))
        return line

    def tell(self, line: Line, socket: Socket, message: FromBrowser) -> None:
        """A browser says something; what an older socket still says counts no more."""
        if line.socket is socket:
            self.browsers.told(line, message)

    def lose(self, line: Line, socket: Socket, why: str) -> None:
        """A socket is gone; its browser has its grace to come back, unless it has already."""
        if line.socket is socket:
            line.socket = None
            self.browsers.left(line, why, self._grace_s())

    def close(self, code: int, why: str) -> None:
        """Close every socket."""
        for line in self.connected():
            assert line.socket is not None
            line.socket.close(code, why)

    def _make_room(self) -> None:
        away = [line.profile for line in self if line.socket is None]
        for profile in away[: max(0, len(self._known) - MOST)]:
            del self._known[profile]
