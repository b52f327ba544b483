"""`Acceptor` accepts the connections of a listening socket, a few in a pass of the loop (S5).

The server of an asyncio loop accepts all that wait at once: 400 connections hold up everybody else for 50 ms.
With TLS it also makes all state when it accepts, and lets a handshake last a minute. Here TLS begins when the
first bytes have come, and one handshake begins in a pass of the loop: each takes a millisecond of computing.
"""

import asyncio
import contextlib
import errno
import logging
import socket
import ssl
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any

from afoot.serve.access.peer import user_or_peer
from afoot.serve.http_server.connections import Connections

ACCEPTS_A_TURN = 8
PAUSE_S = 0.2  # while there are no descriptors
MAX_HANDSHAKES = 64  # at once; the oldest gives way

log = logging.getLogger("afoot.serve")


class Acceptor:
    """A listening socket; with a `context` its connections speak TLS."""

    def __init__(
        self,
        listener: socket.socket,
        context: ssl.SSLContext | None,
        make: Callable[[], Any],
        connections: Connections,
    ) -> None:
        """`make` makes the protocol of a connection."""
        self._listener = listener
        self._context = context
        self._make = make
        self._connections = connections
        self._loop = asyncio.get_running_loop()
        self._ready: deque[PendingTls] = deque()
        self._shaking: dict[PendingTls, None] = {}  # the oldest first
        self._tasks: set[asyncio.Task[None]] = set()
        self._silent: set[PendingTls] = set()
        self._is_closed = False

    def start(self) -> None:
        """Start to accept."""
        if not self._is_closed:
            self._listener.setblocking(False)
            self._loop.add_reader(self._listener, self._accept)

    def close(self) -> None:
        """Accept no more, and end what has not become a connection."""
        self._is_closed = True
        self._loop.remove_reader(self._listener)
        for pending in [*self._silent, *self._ready, *self._shaking]:
            pending.drop()

    async def wait_closed(self) -> None:
        """Wait for the end of the handshakes."""
        if self._tasks:
            await asyncio.wait(self._tasks)

    def _accept(self) -> None:
        for _ in range(ACCEPTS_A_TURN):
            try:
                accepted, remote = self._listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                if error.errno not in (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM):
                    raise
                log.warning("no connection can be accepted for now: %s", error.strerror)
                self._loop.remove_reader(self._listener)
                self._loop.call_later(PAUSE_S, self.start)
                return
            accepted.setblocking(False)
            if self._context is None:
                self._start_task(self._connect(accepted))  # it is counted when it is made, at once
                continue
            pending = PendingTls(self, accepted, self._loop.time() + self._connections.settings.head_s)
            if self._connections.admit(pending, user_or_peer(remote[:2], accepted.getsockname()[:2])):
                self._silent.add(pending)
                self._loop.add_reader(accepted, self._on_bytes, pending)
            else:
                accepted.close()

    def _on_bytes(self, pending: "PendingTls") -> None:
        """Let a peer that has said something take its turn."""
        self._loop.remove_reader(pending.socket)
        self._silent.discard(pending)
        if not self._ready:
            self._loop.call_soon(self._shake)
        self._ready.append(pending)

    def _shake(self) -> None:
        """Begin one handshake, and the next one in the next pass of the loop."""
        while self._ready:
            pending = self._ready.popleft()
            if pending.is_dropped:
                continue
            if len(self._shaking) >= MAX_HANDSHAKES:
                next(iter(self._shaking)).drop()
            self._shaking[pending] = None
            self._start_task(self._handshake(pending))
            break
        if self._ready:
            self._loop.call_soon(self._shake)

    def _start_task(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _connect(self, accepted: socket.socket) -> None:
        try:
            await self._loop.connect_accepted_socket(self._make, accepted)
        except OSError:  # it has left already
            log.debug("a connection could not be made", exc_info=True)
            accepted.close()

    async def _handshake(self, pending: "PendingTls") -> None:
        def make() -> Any:
            protocol = self._make()
            protocol.replaces = pending.leave
            return protocol

        seconds = self._connections.settings.head_s
        try:
            await self._loop.connect_accepted_socket(
                make, pending.socket, ssl=self._context, ssl_handshake_timeout=seconds
            )
        except OSError:  # it spoke no TLS, or left, or was too slow
            log.debug("a TLS handshake failed", exc_info=True)
        finally:
            self.forget(pending)

    def forget(self, pending: "PendingTls") -> None:
        """Stop counting this connection."""
        self._connections.leave(pending)
        self._silent.discard(pending)
        self._shaking.pop(pending, None)

    def drop(self, pending: "PendingTls") -> None:
        """End what has not become a connection."""
        if pending in self._shaking:
            with contextlib.suppress(OSError):  # it has gone already
                pending.socket.shutdown(socket.SHUT_RDWR)  # the handshake then fails, and closes it
        else:
            if pending in self._silent:
                self._loop.remove_reader(pending.socket)
            pending.socket.close()
        self.forget(pending)


class PendingTls:
    """A connection whose handshake is not over."""

    def __init__(self, listener: Acceptor, accepted: socket.socket, due: float) -> None:
        self.socket = accepted
        self.due = due
        self.is_dropped = False
        self._listener = listener

    def is_waiting(self) -> bool:
        """Whether the handshake still goes on, so that nothing is lost if the socket is closed."""
        return not self.is_dropped

    def is_unused(self) -> bool:
        """Whether no request has come yet: always so before the handshake is over."""
        return True

    def on_due(self, now: float) -> None:
        """End: the handshake took too long."""
        self.drop()

    def leave(self) -> None:
        """Stop counting this socket. The connection that it became is counted instead."""
        self._listener.forget(self)

    def drop(self) -> None:
        """End at once."""
        if not self.is_dropped:
            self.is_dropped = True
            self._listener.drop(self)
