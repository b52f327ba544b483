"""Targets for files that people and other programs write: settings, plugins, files of hosts."""

import atexit
import contextlib
import json as plain_json
import os
import shutil
import tempfile
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from afoot.config import jsonc
from afoot.config.jsonc import JsoncError
from afoot.config.mcp_json import read_host_file
from afoot.config.settings import ConfigError, line_of, load_settings
from afoot.errors import CallerError
from afoot.hosts.document import HostDocument
from afoot.hosts.files import FileError
from afoot.hosts.known_hosts import HOSTS, Host
from afoot.providers.browser.plugins.match_patterns import covers_url
from afoot.providers.browser.plugins.plugin import load_plugin
from tests.attack.fuzz.target import Target, from_deeper

ENTRY: dict[str, object] = {"command": "afoot", "args": ["connect"], "env": {"A": 'b"\\ \x7f'}}
KEYS = ("mcpServers", "mcp_servers")
URLS = ("https://shop.example/a/b?c", "http://x.y.example:81/", "https://[::1]:443/orders")


def settings(data: bytes) -> None:
    """`afoot.toml`."""
    with _file("afoot.toml", data) as path, contextlib.suppress(ConfigError):
        from_deeper(lambda: load_settings(path))


def host_servers(data: bytes) -> None:
    """A host's file with servers, in JSON and in TOML."""
    for name in ("mcp.json", "config.toml"):
        with _file(name, data) as path, contextlib.suppress(ConfigError):
            found = from_deeper(lambda path=path: read_host_file(path, Path("/folder")))
            assert not found.servers.keys() & found.unusable.keys()


def json_with_comments(data: bytes) -> None:
    """JSON with comments: everything that is JSON is read as Python reads it."""
    text = data.decode("utf-8", "replace")
    try:
        document = from_deeper(lambda: jsonc.parse(text))
    except JsoncError as error:
        assert error.line >= 1 and error.column >= 1
        with contextlib.suppress(ValueError, RecursionError):
            plain_json.loads(text, parse_constant=_refuse)
            assert "nested" in str(error) or "digits" in str(error), "JSON that cannot be read"
        return
    for start, end in document.comments:
        assert text[start:end].startswith(("//", "/*"))
    with contextlib.suppress(ValueError, RecursionError):
        assert repr(plain_json.loads(text, parse_constant=_refuse)) == repr(document.root.value)


def edited_json(data: bytes) -> None:
    """A host's file in JSON that `afoot install` changes: all other bytes stay."""
    _edit(_host(is_toml=False), data)


def edited_toml(data: bytes) -> None:
    """A host's file in TOML that `afoot install` changes: all other bytes stay."""
    _edit(_host(is_toml=True), data)


def plugin_manifests(data: bytes) -> None:
    """`plugin.json` of a plugin."""
    folder = _folder()
    (folder / "main.js").write_text("1;")
    with _file("plugin.json", data), contextlib.suppress(CallerError):
        plugin = from_deeper(lambda: load_plugin(folder))
        for url in URLS:
            covers_url(plugin.matches, plugin.excludes, url)


def lines_of_settings(data: bytes) -> None:
    """The line of a wrong setting, in a text that TOML accepts."""
    text = data.decode("utf-8", "replace")
    with contextlib.suppress(tomllib.TOMLDecodeError, RecursionError, ValueError):
        tomllib.loads(text)
        line = line_of(text, ("servers", "a", "command"))
        assert line is None or 1 <= line <= len(text.splitlines())


@cache
def _host(*, is_toml: bool) -> Host:
    return next(one for one in HOSTS.values() if one.is_toml == is_toml and one.key in KEYS)


def _edit(host: Host, data: bytes) -> None:
    text = data.decode("utf-8", "replace")
    document = HostDocument(host, Path("file"), text)
    try:
        before = from_deeper(document.servers)
    except FileError:
        return
    name = next(iter(before), "")
    with contextlib.suppress(FileError):
        added = document.insert("afoot-new", ENTRY)
        assert _is_within("".join(text.split()), added.text), "text of others was lost"
        assert added.servers() == {**before, "afoot-new": ENTRY}
        assert added.remove("afoot-new")[0].servers() == before
    with contextlib.suppress(FileError):
        removed, taken = document.remove(name)
        assert _is_within(removed.text, text), "text was added"
        assert removed.servers() == {key: one for key, one in before.items() if key != name}
        assert removed.reinsert(name, taken).servers() == before
    if isinstance(before.get(name), dict):
        with contextlib.suppress(FileError):
            document.updated(name, {"timeout": 5})
    document.can_move(name)


def _is_within(part: str, whole: str) -> bool:
    """Whether a text is the other one with some of its characters left out."""
    letters = iter(whole)
    return all(letter in letters for letter in part)


def _refuse(word: str) -> None:
    raise ValueError(f"{word} is not JSON")


@cache
def _folder() -> Path:
    """A folder for this process; the settings of whoever runs this do not count."""
    folder = Path(tempfile.mkdtemp(prefix="afoot-fuzz-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    for name in [name for name in os.environ if name.startswith("AFOOT_")]:
        del os.environ[name]
    os.environ["AFOOT_HOME"] = str(folder / "home")
    return folder


@contextlib.contextmanager
def _file(name: str, data: bytes) -> Iterator[Path]:
    path = _folder() / name
    path.write_bytes(data)
    yield path


_MCP_JSON = b"""{
  // servers
  "mcpServers": {
    "a": {"command": "x", "args": ["y"], "env": {"K": "${env:HOME}"}, "timeout": 5}, /* b */
    "b": {"type": "http", "url": "https://a.example/mcp", "headers": {"A": "b"},},
  },
  "projects": {"/folder": {"mcpServers": {"c": {"command": ["x", "y"]}}}},
}
"""
_CODEX = b"""# servers
model = "m"
[mcp_servers.a]
command = "x"
args = ["y", 'z']
env = { A = "b" }
startup_timeout_sec = 5.5

[mcp_servers.a.env_http_headers]
"X-A" = "B"
[mcp_servers."b c"]
url = \"\"\"https://a.example\"\"\"
[[other]]
when = 2020-01-01T00:00:00Z
"""

TARGETS = (
    Target(
        "settings",
        settings,
        (
            b'http = "127.0.0.1:1"\nidle_s = 5\n[servers.a]\ncommand = "x"\nargs = ["y"]\ncwd = "~/z"\n',
            b'targets = ["a.py"]\n[[hooks]]\non = "before_call"\npython = "a.py:f"\n'
            b'[tools."a*"]\napproval = "ask"\n',
            b'[quota.local]\ncalls = 5\n[access]\nissuer = "https://a"\n[redact]\nvalues = ["a+"]\n'
            b'[browser]\nplugins = ["p"]\n[retain]\ndays = 5\n',
        ),
        (
            b"[servers.a]",
            b"[[hooks]]",
            b"idle_s = ",
            b"caller_limits = {a = 1}",
            b'"""',
            b"~x/",
            b"[connections]",
        ),
        examples=40,
    ),
    Target(
        "lines_of_settings",
        lines_of_settings,
        (b"[servers.a]\ncommand = 1\n", b'[[hooks]]\n"a b".c = 1\n'),
        (b"[", b"]", b".", b'"', b"=", b"\n", b"\x0c", b"\x85"),
    ),
    Target(
        "host_servers",
        host_servers,
        (_MCP_JSON, _CODEX, b'{"context_servers":{"a":{"command":{"path":"x"}}}}'),
        (
            b'"mcpServers":',
            b'"env_vars":["A"]',
            b'"oauth":{"clientId":"a","scopes":"b c"}',
            b"${input:a}",
            b'"disabled":true',
            b'"command":["a"]',
            b'"env":5',
            b'"cwd":"~x"',
            b"[mcp_servers.b]",
        ),
        examples=40,
    ),
    Target(
        "json_with_comments",
        json_with_comments,
        (_MCP_JSON, b"\xef\xbb\xbf[1,2.5e3,-0,]", b'{"a":"\\u00e9\\n"}//x'),
        (b"//", b"/*", b"*/", b",", b"{", b"}", b"[", b"]", b'"a":', b"\\u"),
    ),
    Target(
        "edited_json",
        edited_json,
        (_MCP_JSON, b"{}", b'{"mcpServers":{}}', b'{\r\n\t"a": 1, // c\r\n\t"mcpServers": {"x": {}}}', b""),
        (b'"mcpServers":{', b"// c\n", b"/* c */", b",", b"\r\n", b"\t", b'"afoot-new":'),
        examples=80,
    ),
    Target(
        "edited_toml",
        edited_toml,
        (_CODEX, b"", b"mcp_servers = {}\n", b'mcp_servers.a.command = "x"\n', b"[mcp_servers]\n"),
        (
            b"[mcp_servers.a]",
            b"[mcp_servers.a.env]",
            b"[[mcp_servers.a.b]]",
            b"# c\n",
            b'"""',
            b"'''",
            b"\r\n",
            b"a.b = ",
            b"[ a ]",
        ),
        examples=80,
    ),
    Target(
        "plugin_manifests",
        plugin_manifests,
        (
            b'{"name":"shop","version":"1","matches":["https://shop.example/*"],"files":["main.js"],'
            b'"readiness":{"selector":"#a"},"tools":[{"name":"t","input":{"type":"object"}}],"excludes":["<all_urls>"]}',
        ),
        (
            b'"*://*.a.co.uk:8080/a*b*"',
            b'"../x.js"',
            b'"\\u0000"',
            b'"readiness":"f"',
            b'"homepage":"https://a"',
        ),
        examples=30,
    ),
)
