"""What carries frames between a browser and the provider of its tools: the extension's link, or CDP."""

from typing import Protocol

from afoot.wire.link import FromBrowser, Hello, ToBrowser, Welcome


class Carrier(Protocol):
    """One browser profile, as it is reached. It has its identity from who carries it, never from a frame."""

    @property
    def name(self) -> str:
        """Which browser this is, for people: "chrome (work)", "cdp"."""
        ...

    def send(self, message: ToBrowser) -> bool:
        """Send a frame, never waiting; False if the browser cannot be reached now."""
        ...


class Audience(Protocol):
    """Who hears what browsers say. Everything is called on the engine's loop."""

    def joined(self, carrier: Carrier, hello: Hello) -> Welcome:
        """A browser is there, for the first time or again."""
        ...

    def told(self, carrier: Carrier, message: FromBrowser) -> None:
        """A browser says something; a frame that may not be believed is counted, and changes nothing (B7)."""
        ...

    def left(self, carrier: Carrier, why: str, grace_s: float) -> None:
        """A browser is gone; it has so long to come back before its runs end."""
        ...
