"""`/link`: the extension's WebSocket, proved both ways before anything else is said (B7)."""

import logging
import secrets
from collections.abc import Callable
from contextlib import ExitStack
from http import HTTPStatus

from afoot import state
from afoot.errors import AfootError
from afoot.providers.browser.folder import Folders, is_older, shipped
from afoot.providers.browser.link import Line, Lines
from afoot.serve.asgi import Receive, Scope, Send
from afoot.serve.guard import Denied, Guard
from afoot.serve.http import App
from afoot.serve.panel import Panel
from afoot.serve.site import Site
from afoot.serve.socket import Socket
from afoot.wire import link, pairing
from afoot.wire.link import BadFrame, FromBrowser

EARLY, WRONG, SLOW = 4400, 4401, 4408
HELLO_S = 10.0  # a browser may have many tabs to tell of
SILENT_S = 50.0  # a browser says something every 20 s, so this one is dead
LOOK_S = 1.0  # how often it is looked whether nothing runs any more
MOST_UNPROVED = 32
LONGEST = 64  # characters of a profile's id
_PING = link.write(link.Ping())

log = logging.getLogger("afoot.serve")


class Links:
    """The ASGI application of `/link`; `rest` gets everything else."""

    def __init__(self, site: Site, guard: Guard, lines: Lines, rest: App) -> None:
        """Raises CallerError if the extension is not where it should be."""
        self.site, self.lines, self.browsers = site, lines, lines.browsers
        self._rest = rest
        self.manifest = shipped()
        self.unproved = 0
        self._guard = guard

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] != "/link" and scope["type"] == "http":
            await self._rest(scope, receive, send)
            return
        try:
            self._check(scope)
        except Denied as denied:
            await _refuse(scope, send, denied)
            return
        await receive()  # the wish to connect
        await send({"type": "websocket.accept", "subprotocol": link.SUBPROTOCOL})
        await _Link(self, receive, send).hold()

    def _check(self, scope: Scope) -> None:
        """May this become a link? Raises Denied."""
        if scope["path"] != "/link":
            raise Denied(404, f"no WebSocket at {scope['path']}; the extension's is at /link")
        self._guard.link(scope, self.manifest.origin)
        if scope["type"] != "websocket":
            raise Denied(426, "/link is for the extension's WebSocket")
        if link.SUBPROTOCOL not in scope["subprotocols"]:
            raise Denied(400, f"the subprotocol must be {link.SUBPROTOCOL}")
        if self.unproved >= MOST_UNPROVED:
            raise Denied(503, "too many have connected who have proved nothing")
        if self.site.engine.closing is not None:
            raise Denied(503, self.site.engine.closing)


class _Link:
    """One connection: what the next frame must be, and when the patience for it ends."""

    def __init__(self, links: Links, receive: Receive, send: Send) -> None:
        self._links, self._site = links, links.site
        self._clock = links.site.engine.clock
        self._socket = Socket(receive, send, self._clock, self._hear)
        self._nonce = secrets.token_bytes(pairing.NONCE_BYTES)
        self._key = b""  # that it was proved with
        self._next: Callable[[FromBrowser], None] = self._proved
        self._due = self._clock.now() + link.PROOF_S
        self._line: Line | None = None
        self._panel: Panel | None = None
        self._stack = ExitStack()
        self._is_old = False  # whether its extension is to be loaded anew

    async def hold(self) -> None:
        """Speak until one side ends it."""
        socket, stuck_s = self._socket, self._site.settings.stuck_s
        self._links.unproved += 1
        try:
            socket.put(link.write(link.Challenge(self._nonce.hex())))
            socket.listen()
            while not socket.over:
                await socket.turn(self._look(), stuck_s)
        finally:
            self._left()
        await socket.part(stuck_s)

    def _hear(self, text: str) -> None:
        try:
            self._next(link.read(text))
        except BadFrame as error:
            self._site.count("frames of browsers that could not be read")
            log.debug("a frame from a browser could not be read: %s", error)
            if self._line is None:
                self._socket.close(EARLY, "this is no frame of the link")
        except Exception:
            if self._line is None:
                raise
            # What one page says must not end what others run; and it would be said again on the next link.
            self._site.count("frames of browsers that we failed over")
            log.exception("a frame from a browser could not be taken in")

    def _proved(self, message: FromBrowser) -> None:
        """The first frame must be a proof, of these nonces alone; then we prove ourselves."""
        theirs = pairing.nonce(message.nonce) if isinstance(message, link.Proof) else None
        if not isinstance(message, link.Proof) or theirs is None:
            self._socket.close(EARLY, "the first frame must be a proof")
            return
        key, nonces = state.link_key(), pairing.Nonces(self._nonce, theirs)
        if not pairing.is_proved(key, pairing.BROWSER, nonces, message.mac):
            self._site.count("browsers with another key")
            self._socket.close(WRONG, "the proof is wrong: this browser has another key")
            return
        self._links.unproved -= 1
        self._key = key
        self._socket.put(link.write(link.Proof(pairing.mac(key, pairing.GATEWAY, nonces))))
        self._next, self._due = self._greeted, self._clock.now() + HELLO_S

    def _greeted(self, message: FromBrowser) -> None:
        if not isinstance(message, link.Hello) or not 0 < len(message.profile) <= LONGEST:
            self._socket.close(EARLY, "the frame after the proofs must be a hello with a profile")
            return
        if state.link_key() != self._key:  # changed since it was proved
            self._socket.close(WRONG, "the key has been changed")
            return
        links = self._links
        self._next = self._told
        self._line = line = links.lines.join(self._socket, message, self._clock.now())
        panel = Panel(self._site, links.browsers, line, self._socket.bell.ring)
        self._panel = self._stack.enter_context(panel)
        if is_older(message.version, links.manifest.version) and links.manifest.version not in line.told:
            self._is_old = _refreshed(line, links.manifest.version)

    def _told(self, message: FromBrowser) -> None:
        assert self._line is not None and self._panel is not None
        panel, socket = self._panel, self._socket
        panel.here()
        match message:
            case link.Ping():
                socket.put(_PING)
            case link.PanelWatch():
                panel.watch(message.on)
                socket.bell.ring()
            case link.PanelAnswer():
                socket.put(panel.answer(message))
            case link.PanelCancel():
                socket.put(panel.cancel(message))
            case link.Proof() | link.Hello():
                self._site.count("frames of browsers that came too late")
            case _:
                self._links.lines.tell(self._line, socket, message)

    def _look(self) -> float:
        """Do what is due; gives when to look again."""
        now, socket = self._clock.now(), self._socket
        if self._line is None or self._panel is None:
            if now >= self._due:
                socket.close(SLOW, "the proof or the hello did not come in time")
            return self._due
        if now >= socket.heard + SILENT_S:
            socket.close(SLOW, f"the browser was silent for {SILENT_S:g} s")
        if self._is_old and not self._links.browsers.is_busy(self._line):
            self._is_old = False
            self._line.told.add(self._links.manifest.version)
            self._line.send(link.Reload())
        due = self._panel.due()
        if due is not None and now >= due and (frame := self._panel.look()) is not None:
            socket.put(frame)
        wanted = (self._panel.due(), now + LOOK_S if self._is_old else None)
        return min([socket.heard + SILENT_S, *(one for one in wanted if one is not None)])

    def _left(self) -> None:
        socket = self._socket
        socket.hush()
        self._links.unproved -= self._next == self._proved
        if socket.odd:
            self._site.count("frames of browsers that were no text", socket.odd)
        self._stack.close()
        if self._line is not None:
            self._links.lines.lose(self._line, socket, socket.over or "the connection was cut")


def _refreshed(line: Line, version: str) -> bool:
    """Bring the copied folders up to date; False if there is none that this browser could load anew."""
    try:
        folders = Folders().refresh()
    except AfootError as error:
        log.warning(
            "%s: its extension is older than %s, and cannot be renewed: %s", line.name, version, error
        )
        return False
    if not folders:
        log.warning(
            "%s: its extension is %s, and %s is here: load it anew from where it lies",
            line.name, line.hello.version, version,
        )  # fmt: skip
    return bool(folders)


async def _refuse(scope: Scope, send: Send, denied: Denied) -> None:
    """Answer with an HTTP error, before anything becomes a WebSocket."""
    kind = "websocket.http.response" if scope["type"] == "websocket" else "http.response"
    body = f"{denied}\n".encode()
    head = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", b"%d" % len(body))]
    if denied.status == HTTPStatus.UPGRADE_REQUIRED:
        head.append((b"upgrade", b"websocket"))
    await send({"type": f"{kind}.start", "status": denied.status, "headers": head})
    await send({"type": f"{kind}.body", "body": body})
