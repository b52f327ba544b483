"""A program of another user, started by tests as root: it sends one request, and prints the answer as JSON.

Its arguments are a user id, the address, and the request as JSON: method, path, headers, body, and whether it
leaves before the answer.
"""

import encodings.idna  # noqa: F401 - that user cannot load it later
import json
import os
import subprocess
import sys
from http.client import HTTPConnection
from typing import Any, Final
from urllib.parse import urlsplit

NOBODY: Final = 65534
WAIT_S: Final = 20.0


def ask_as(
    uid: int,
    url: str,
    method: str,
    path: str,
    headers: dict[str, str],
    body: object = None,
    *,
    leaves: bool = False,
) -> Any:
    """The status and the text of the answer to a request of this user; None if it leaves before."""
    parts = {"method": method, "path": path, "headers": headers, "body": body, "leaves": leaves}
    request = json.dumps(parts)
    # -S, -E and the folder: that user may read nothing of ours.
    done = subprocess.run(
        [sys.executable, "-S", "-E", "-c", _source(), str(uid), url, request],
        capture_output=True, timeout=WAIT_S, check=False, cwd="/",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def main(uid: int, url: str, request: dict[str, Any]) -> None:
    """Become that user, and ask."""
    os.setgroups([])
    os.setgid(uid)
    os.setuid(uid)
    parts = urlsplit(url)
    connection = HTTPConnection(parts.hostname or "", parts.port, timeout=WAIT_S)
    data = None if request["body"] is None else json.dumps(request["body"])
    connection.request(request["method"], request["path"], data, request["headers"])
    if request["leaves"]:
        connection.close()
        print("null")
        return
    response = connection.getresponse()
    print(json.dumps([response.status, response.read().decode()]))


def _source() -> str:
    with open(__file__) as file:
        return file.read()


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], json.loads(sys.argv[3]))
