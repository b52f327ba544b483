"""Machines in network namespaces of their own, each on a link that tests cut: no packet comes through then.

The links end at one bridge, on which Redis listens. A cut takes a link off the bridge. It breaks no
connection: it is silence, as of a switch that forwards nothing, and it ends at once. A link that is set down
and up again is used by the kernel only after a second, and a lost question for a hardware address is asked
again after one, so links stay up and addresses are fixed. Root and the tools of iproute2 are needed; where
they are missing, the tests fail.
"""

import ctypes
import os
import secrets
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, TypeVar

import pytest

BRIDGE: Final = "02:00:00:00:00:01"  # the hardware address of the bridge
NEW_NET: Final = 0x40000000  # CLONE_NEWNET, for setns
T = TypeVar("T")


class Machine:
    """One namespace with one link; programs run in it, and the test looks into it."""

    def __init__(self, name: str, link: str, bridge: str) -> None:
        self.name = name
        self.prefix = ("ip", "netns", "exec", name)  # before the words of a program
        self.to_cut = f"link set {link} nomaster"
        self.to_mend = f"link set {link} master {bridge}"

    def cut(self) -> None:
        """Let no packet through any more."""
        _ip(*self.to_cut.split())

    def mend(self) -> None:
        """Let packets through again."""
        _ip(*self.to_mend.split())

    def inside(self, look: Callable[[], T]) -> T:
        """Call a function in this namespace, in a thread of its own, and give what it gives."""
        found: list[T] = []
        errors: list[BaseException] = []

        def enter() -> None:
            try:
                with open(f"/run/netns/{self.name}", "rb") as namespace:
                    if ctypes.CDLL(None, use_errno=True).setns(namespace.fileno(), NEW_NET):
                        raise OSError(ctypes.get_errno(), f"namespace {self.name} cannot be entered")
                found.append(look())
            except BaseException as error:
                errors.append(error)

        thread = threading.Thread(target=enter)
        thread.start()
        thread.join()
        if errors:
            raise errors[0]
        return found[0]


def cut_for(seconds: float, *machines: Machine) -> None:
    """Cut machines off for a moment, all at once: under load, a program for each link takes its time."""
    _ip("-batch", "-", lines="".join(f"{machine.to_cut}\n" for machine in machines))
    time.sleep(seconds)
    _ip("-batch", "-", lines="".join(f"{machine.to_mend}\n" for machine in machines))


class Network:
    """A bridge, the address on it, and the machines at it."""

    def __init__(self, bridge: str, net: str) -> None:
        self.host = f"{net}.1"
        self._bridge = bridge
        self._net = net
        self.machines: list[Machine] = []

    def add(self) -> Machine:
        """Put one more machine at the bridge."""
        number = len(self.machines) + 2
        name, link = f"{self._bridge}n{number}", f"{self._bridge}v{number}"
        _ip("netns", "add", name)
        machine = Machine(name, link, self._bridge)
        self.machines.append(machine)
        address, hardware = f"{self._net}.{number}", f"02:00:00:00:00:{number:02x}"
        _ip("link", "add", link, "type", "veth", "peer", "name", "eth0", "address", hardware, "netns", name)
        _ip("link", "set", link, "master", self._bridge, "up")
        _ip("-n", name, "addr", "add", f"{address}/24", "dev", "eth0")
        _ip("-n", name, "link", "set", "eth0", "up")
        _ip("-n", name, "link", "set", "lo", "up")
        _ip("-n", name, "neigh", "replace", self.host, "lladdr", BRIDGE, "dev", "eth0", "nud", "permanent")
        _ip("neigh", "replace", address, "lladdr", hardware, "dev", self._bridge, "nud", "permanent")
        return machine


@contextmanager
def network() -> Iterator[Network]:
    """A network that is gone after the block."""
    if os.geteuid():
        pytest.fail("partitions need network namespaces, and these need root: run this test as root")
    bridge, number = f"af{secrets.token_hex(2)}", secrets.randbelow(250) + 2
    made = Network(bridge, f"10.231.{number}")
    _ip("link", "add", bridge, "address", BRIDGE, "type", "bridge")
    try:
        _ip("addr", "add", f"{made.host}/24", "dev", bridge)
        _ip("link", "set", bridge, "up")
        yield made
    finally:
        for machine in made.machines:
            subprocess.run(["ip", "netns", "del", machine.name], check=False, capture_output=True)
        _ip("link", "del", bridge)


def _ip(*words: str, lines: str = "") -> None:
    try:
        done = subprocess.run(["ip", *words], input=lines, check=False, capture_output=True, text=True)
    except FileNotFoundError:
        pytest.fail("partitions need network namespaces: ip is missing; scripts/test installs iproute2")
    if done.returncode:
        pytest.fail(f"network namespaces cannot be used here: ip {' '.join(words)}: {done.stderr.strip()}")
