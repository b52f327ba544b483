"""`LinkApp` serves `/link`: the extension's WebSocket, on which both sides first prove themselves (B7).

A connection runs in one task. Messages are handled as they come; frames to send wait in a bounded queue.
"""

import asyncio
import logging
import secrets
from collections import Counter, deque
from collections.abc import Callable, Generator
from contextlib import ExitStack
from http import HTTPStatus
from typing import Any

from afoot.config import state_folder
from afoot.core.ports import Clock
from afoot.engine.followers import Wakeup
from afoot.errors import AfootError
from afoot.providers.browser.extension import ExtensionLink, ExtensionLinks
from afoot.providers.browser.extension_files import ExtensionCopies, is_older, shipped_manifest
from afoot.serve.access.guard import Denied, Guard
from afoot.serve.access.peer import peer_name
from afoot.serve.extension.side_panel import SidePanel
from afoot.serve.gateway_state import GatewayState
from afoot.serve.mcp.asgi import WEBSOCKET_PROVED, Message, Receive, Scope, Send
from afoot.wire import extension
from afoot.wire.extension import BadFrame, FromBrowser

CLOSE_FAILED, CLOSE_FULL = 1011, 4413

CLOSE_PROTOCOL = 4400
CLOSE_WRONG_KEY = 4401
CLOSE_TIMEOUT = 4408
MAX_QUEUED_FRAMES = 10_000
MAX_QUEUED_BYTES = 64 * 1024 * 1024
FRAMES_PER_TURN = 64  # frames that are read before the loop runs anything else
HELLO_S = 10.0  # a browser may have many tabs to describe
SILENT_S = 50.0  # a browser sends something every 20 s, so a silent one is dead
IDLE_CHECK_S = 1.0  # interval at which an old extension is checked for running tools, before its reload
MAX_UNPROVED = 32  # connections of one peer that have proved nothing; another peer has places of its own
MAX_PROFILE = 64  # characters of a profile's id
_PING = extension.write_frame(extension.Ping())

log = logging.getLogger("afoot.serve")


class LinkApp:
    """The ASGI application of `/link`."""

    def __init__(self, gateway: GatewayState, guard: Guard, lines: ExtensionLinks) -> None:
        """Raises CallerError if the extension's files are missing."""
        self.gateway = gateway
        self.lines = lines
        self.browsers = lines.browsers
        self.manifest = shipped_manifest()
        self.unproved: Counter[str] = Counter()  # connections that have proved nothing, by peer
        self._guard = guard

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            self._check(scope)
        except Denied as denied:
            await _send_refusal(scope, send, denied)
            return
        await receive()  # websocket.connect
        await send({"type": "websocket.accept", "subprotocol": extension.SUBPROTOCOL})
        session = _LinkSession(self, receive, send, scope.get(WEBSOCKET_PROVED, _nothing), peer_name(scope))
        await session.hold()

    def _check(self, scope: Scope) -> None:
        """Check that this request may become a link; raises Denied."""
        if scope["path"] != "/link":
            raise Denied(404, f"no WebSocket at {scope['path']}; the extension's is at /link")
        self._guard.check_link(scope, self.manifest.origin)
        if scope["type"] != "websocket":
            raise Denied(426, "/link is for the extension's WebSocket")
        if extension.SUBPROTOCOL not in scope["subprotocols"]:
            raise Denied(400, f"the subprotocol must be {extension.SUBPROTOCOL}")
        if self.unproved[peer_name(scope)] >= MAX_UNPROVED:
            raise Denied(503, "too many have connected who have proved nothing")
        if self.gateway.engine.closing is not None:
            raise Denied(503, self.gateway.engine.closing)


class _LinkSession:
    """One connection: which message must come next, and by when."""

    def __init__(
        self, links: LinkApp, receive: Receive, send: Send, lift_bounds: Callable[[], None], peer: str
    ) -> None:
        """`lift_bounds` is called when the browser has proved itself: until then little may be sent (S5)."""
        self._links = links
        self._peer = peer
        self._lift_bounds = lift_bounds
        self._gateway = links.gateway
        self._clock = links.gateway.engine.clock
        self._socket = LinkSocket(receive, send, self._clock, self._hear)
        self._nonce = secrets.token_bytes(extension.NONCE_BYTES)
        self._key = b""  # the key of the browser's proof
        self._next: Callable[[FromBrowser], None] = self._on_proof
        self._due = self._clock.now() + extension.PROOF_S
        self._line: ExtensionLink | None = None
        self._panel: SidePanel | None = None
        self._stack = ExitStack()
        self._is_old = False  # whether its extension is to be reloaded

    async def hold(self) -> None:
        """Exchange messages until one side closes the connection."""
        socket, stuck_s = self._socket, self._gateway.settings.stuck_s
        self._links.unproved[self._peer] += 1
        try:
            socket.put(extension.write_frame(extension.LinkChallenge(self._nonce.hex())))
            socket.listen()
            while not socket.over:
                await socket.turn(self._check_timers(), stuck_s)
        finally:
            self._clean_up()
        await socket.send_close(stuck_s)

    def _hear(self, text: str) -> None:
        try:
            self._next(extension.read_frame(text))
        except BadFrame as error:
            self._gateway.count("frames of browsers that could not be read")
            log.debug("a frame from a browser could not be read: %s", error)
            if self._line is None:
                self._socket.close(CLOSE_PROTOCOL, "this is no frame of the link")
        except Exception as error:
            if self._line is None and isinstance(error, AfootError):
                log.error("no browser can be let in: %s", error)
                self._socket.close(CLOSE_FAILED, "the gateway's key cannot be read; its log says why")
                return
            if self._line is None:
                raise
            # One page's message must not end the runs of others; and it would be sent again on the next link.
            self._gateway.count("frames of browsers that we failed over")
            log.exception("a frame from a browser could not be taken in")

    def _on_proof(self, message: FromBrowser) -> None:
        """The first message must be a proof over both nonces; then the gateway proves itself."""
        theirs = extension.read_nonce(message.nonce) if isinstance(message, extension.LinkProof) else None
        if not isinstance(message, extension.LinkProof) or theirs is None:
            self._socket.close(CLOSE_PROTOCOL, "the first frame must be a proof")
            return
        key, nonces = state_folder.link_key(), extension.Nonces(self._nonce, theirs)
        if not extension.is_valid_proof(key, extension.BROWSER_SIDE, nonces, message.mac):
            self._gateway.count("browsers with another key")
            self._socket.close(CLOSE_WRONG_KEY, "the proof is wrong: this browser has another key")
            return
        self._leave_unproved()
        self._lift_bounds()
        self._key = key
        self._socket.put(
            extension.write_frame(
                extension.LinkProof(extension.proof_mac(key, extension.GATEWAY_SIDE, nonces))
            )
        )
        self._next = self._on_hello
        self._due = self._clock.now() + HELLO_S

    def _on_hello(self, message: FromBrowser) -> None:
        if not isinstance(message, extension.LinkHello) or not 0 < len(message.profile) <= MAX_PROFILE:
            self._socket.close(CLOSE_PROTOCOL, "the frame after the proofs must be a hello with a profile")
            return
        if state_folder.link_key() != self._key:  # changed since it was proved
            self._socket.close(CLOSE_WRONG_KEY, "the key has been changed")
            return
        links = self._links
        self._next = self._on_frame
        self._line = line = links.lines.attach(self._socket, message, self._clock.now())
        panel = SidePanel(self._gateway, links.browsers, line, self._socket.wakeup.wake)
        self._panel = self._stack.enter_context(panel)
        newest = links.manifest.version
        if is_older(message.version, newest) and newest not in line.reloads_asked:
            self._is_old = _update_folders(line, newest)

    def _on_frame(self, message: FromBrowser) -> None:
        assert self._line is not None and self._panel is not None
        panel, socket = self._panel, self._socket
        panel.note_activity()
        match message:
            case extension.Ping():
                socket.put(_PING)
            case extension.PanelWatch():
                panel.watch(message.on)
                socket.wakeup.wake()
            case extension.PanelAnswer():
                socket.put(panel.answer(message))
            case extension.PanelCancel():
                socket.put(panel.cancel(message))
            case extension.LinkProof() | extension.LinkHello():
                self._gateway.count("frames of browsers that came too late")
            case _:
                self._links.lines.receive(self._line, socket, message)

    def _check_timers(self) -> float:
        """Do what is due; returns when to check again."""
        now, socket = self._clock.now(), self._socket
        if self._line is None or self._panel is None:
            if now >= self._due:
                socket.close(CLOSE_TIMEOUT, "the proof or the hello did not come in time")
            return self._due
        if now >= socket.heard + SILENT_S:
            socket.close(CLOSE_TIMEOUT, f"the browser was silent for {SILENT_S:g} s")
        if self._is_old and not self._links.browsers.is_busy(self._line):
            self._is_old = False
            self._line.reloads_asked.add(self._links.manifest.version)
            self._line.send(extension.ExtensionReload())
        due = self._panel.due()
        if due is not None and now >= due and (frame := self._panel.next_frame()) is not None:
            socket.put(frame)
        wanted = (self._panel.due(), now + IDLE_CHECK_S if self._is_old else None)
        return min([socket.heard + SILENT_S, *(one for one in wanted if one is not None)])

    def _leave_unproved(self) -> None:
        unproved = self._links.unproved
        unproved[self._peer] -= 1
        if not unproved[self._peer]:
            del unproved[self._peer]

    def _clean_up(self) -> None:
        socket = self._socket
        socket.stop_reading()
        if self._next == self._on_proof:
            self._leave_unproved()
        if socket.non_text:
            self._gateway.count("frames of browsers that were no text", socket.non_text)
        self._stack.close()
        if self._line is not None:
            self._links.lines.detach(self._line, socket, socket.over or "the connection was cut")


class LinkSocket:
    """One accepted WebSocket; `hear` gets each text that comes, on the engine's loop."""

    def __init__(self, receive: Receive, send: Send, clock: Clock, hear: Callable[[str], None]) -> None:
        self._send = send
        self._clock = clock
        self._hear = hear
        self._waiting: deque[bytes] = deque()
        self._size = 0
        self._reader = MessageReader(receive, self._on_message)
        self._close_message: Message | None = None
        self.wakeup = Wakeup()
        self.heard = clock.now()
        self.over = ""  # why the socket is closed; empty while it is open
        self.non_text = 0  # messages that were no text

    def put(self, frame: bytes) -> bool:
        """Queue a frame; False if the socket is closed. A full queue closes it."""
        if self.over:
            return False
        if len(self._waiting) >= MAX_QUEUED_FRAMES or self._size + len(frame) > MAX_QUEUED_BYTES:
            self.close(CLOSE_FULL, "the browser takes nothing any more")
            return False
        self._waiting.append(frame)
        self._size += len(frame)
        self.wakeup.wake()
        return True

    def close(self, code: int, why: str) -> None:
        """Close with this code and reason."""
        if not self.over:
            self.over = why
            self._close_message = {"type": "websocket.close", "code": code, "reason": why}
            self.wakeup.wake()

    def listen(self) -> None:
        """Start to read."""
        self._reader.step()

    async def turn(self, until: float, stuck_s: float) -> None:
        """Send the queued frames, then wait until something happens, or until this time."""
        while self._waiting and not self.over:
            frame = self._waiting.popleft()
            self._size -= len(frame)
            await self._send_message(
                {"type": "websocket.send", "text": frame.decode(errors="replace")}, stuck_s
            )
        if not self.over:
            timer = self._clock.at(until, self.wakeup.wake)
            await self.wakeup.wait()
            timer.cancel()

    def stop_reading(self) -> None:
        """Read no more."""
        self._reader.close()

    async def send_close(self, stuck_s: float) -> None:
        """Say farewell, if it was us who ended it."""
        if self._close_message is not None:
            await self._send_message(self._close_message, stuck_s)

    async def _send_message(self, message: Message, stuck_s: float) -> None:
        try:
            async with asyncio.timeout(stuck_s):
                await self._send(message)
        except TimeoutError:
            self.over = self.over or f"the browser took nothing for {stuck_s:g} s"
        except OSError:  # the browser has gone; the reader gets a disconnect too
            self.over = self.over or "the connection broke"

    def _on_message(self, message: Message) -> None:
        if self.over:
            return
        if message["type"] != "websocket.receive":
            self.over = message.get("reason") or f"the browser closed the connection ({message.get('code')})"
            self.wakeup.wake()
            return
        self.heard = self._clock.now()
        text = message.get("text")
        if text is None:
            self.non_text += 1
            return
        try:
            self._hear(text)
        except Exception:
            log.exception("a frame from a browser could not be taken in")
            self.close(CLOSE_FAILED, "the gateway failed")


class MessageReader:
    """Receives without a task of its own: the future that `receive` waits on calls `step`."""

    def __init__(self, receive: Receive, hear: Callable[[Message], None]) -> None:
        self._receive = receive
        self._hear = hear
        self._coroutine: Generator[Any, None, Message] | None = None
        self._is_closed = False

    def close(self) -> None:
        """Receive no more."""
        self._is_closed = True
        coroutine = self._coroutine
        self._coroutine = None
        if coroutine is not None:
            coroutine.close()

    def step(self, _: object = None) -> None:
        """Handle the messages that are there, and wait for more."""
        for _turn in range(FRAMES_PER_TURN):
            if self._is_closed:
                return
            if self._coroutine is None:
                self._coroutine = self._receive().__await__()
            try:
                waited = next(self._coroutine)
            except StopIteration as came:
                self._coroutine = None
                self._hear(came.value)
                if came.value["type"] == "websocket.disconnect":
                    return
                continue
            if waited is None:
                break
            waited._asyncio_future_blocking = False  # as Task does for the future it is handed
            waited.add_done_callback(self.step)
            return
        asyncio.get_running_loop().call_soon(self.step)


def _nothing() -> None:
    """Lift no bound: the server of this socket has none."""


def _update_folders(line: ExtensionLink, version: str) -> bool:
    """Update the copied folders of the extension; False if there is none that this browser could reload."""
    try:
        folders = ExtensionCopies().refresh()
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


async def _send_refusal(scope: Scope, send: Send, denied: Denied) -> None:
    """Answer with an HTTP error, before the request becomes a WebSocket."""
    kind = "websocket.http.response" if scope["type"] == "websocket" else "http.response"
    body = f"{denied}\n".encode()
    head = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", b"%d" % len(body))]
    if denied.status == HTTPStatus.UPGRADE_REQUIRED:
        head.append((b"upgrade", b"websocket"))
    await send({"type": f"{kind}.start", "status": denied.status, "headers": head})
    await send({"type": f"{kind}.body", "body": body})
