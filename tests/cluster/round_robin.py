"""A load balancer that sends every request to the next gateway, as none should be that knows of sessions."""

import shutil
import socket
import subprocess
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from tests.cluster.test_gateways import PUBLIC_NAME
from tests.e2e.gateway import Gateway, until

CONFIG = """
global
    log stdout format raw local0
defaults
    mode http
    log global
    option httplog
    option logasap
    option http-no-delay
    option abortonclose
    timeout connect 5s
    timeout client 1m
    timeout server 1m
    timeout tunnel 1m
listen all
    bind 127.0.0.1:{port}
    balance roundrobin
    http-request set-header Host {name}
"""


class RoundRobin:
    """The balancer, and which gateways it has sent requests to."""

    def __init__(self, port: int, log: Path) -> None:
        self.url = f"http://127.0.0.1:{port}/mcp"
        self._log = log

    def sent(self) -> Counter[str]:
        """The number of requests by gateway."""
        lines = self._log.read_text().splitlines()
        return Counter(word for line in lines for word in line.split() if word.startswith("all/gateway"))


@contextmanager
def round_robin(folder: Path, gateways: Sequence[Gateway]) -> Iterator[RoundRobin]:
    """A balancer for these gateways, which is ended with the block."""
    program = shutil.which("haproxy")
    assert program is not None, "haproxy is missing; scripts/test installs it"
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = int(probe.getsockname()[1])
    text = CONFIG.format(port=port, name=PUBLIC_NAME)
    for number, gateway in enumerate(gateways):
        text += f"    server gateway{number} {urlsplit(gateway.url).netloc}\n"
    file, log = folder / "haproxy.cfg", folder / "haproxy.log"
    file.write_text(text)
    with log.open("wb") as output:
        process = subprocess.Popen([program, "-db", "-f", str(file)], stdout=output, stderr=output)
    try:
        until(lambda: process.poll() is not None or _listens(port), "the load balancer to listen")
        assert process.poll() is None, log.read_text()
        yield RoundRobin(port, log)
    finally:
        process.terminate()
        process.wait(10)


def _listens(port: int) -> bool:
    with closing(socket.socket()) as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
