"""The console as it is served: a page without data, exactly its files, and headers that shut others out."""

import re
from http.client import HTTPConnection
from urllib.parse import urlsplit

import pytest

from afoot.serve import console
from afoot.serve.console import ASSET_PREFIX, CONTENT_TYPES, FOLDER, SHELL, VIEWS, assets, find_asset
from tests.serve.api_client import Answer, Api

# As the issue has it, letter by letter.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; "
    "trusted-types 'none'"
)
SAFE = {
    "content-security-policy": POLICY,
    "x-frame-options": "DENY",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
}
PLACES = (
    "/", "/live", "/calls/0123", "/history?q=x", "/inbox", "/tools/a/b", "/servers", "/tabs", "/cluster",
    "/resources", "/prompts",
)  # fmt: skip
NOBODY = {"authorization": ""}


def raw(api: Api, method: str, path: str, **headers: str) -> tuple[int, dict[str, str], bytes]:
    """A request whose path is sent as it is."""
    parts = urlsplit(api.url)
    connection = HTTPConnection(parts.hostname or "", parts.port, timeout=10)
    try:
        connection.request(method, path, headers={k.replace("_", "-"): v for k, v in headers.items()})
        response = connection.getresponse()
        return response.status, {k.lower(): v for k, v in response.getheaders()}, response.read()
    finally:
        connection.close()


def is_safe(answer: Answer | dict[str, str]) -> bool:
    """Whether every header of the list is there, once."""
    headers = answer if isinstance(answer, dict) else answer.headers
    return {name: headers.get(name) for name in SAFE} == SAFE


@pytest.mark.parametrize("path", PLACES)
def test_every_address_of_the_console_gives_the_shell(api: Api, path: str) -> None:
    """V1, S1: also without a token; a page that is opened anew finds its view by the address."""
    answer = api.get(path, **NOBODY)
    assert (answer.status, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert answer.body == (FOLDER / "index.html").read_text() and is_safe(answer)
    assert answer.headers["cache-control"] == "no-cache" and "set-cookie" not in answer.headers


def test_the_shell_holds_no_data(api: Api) -> None:
    """S1: the same bytes for everybody, whatever the gateway knows; nothing inline, nothing of others."""
    api.ended(api.start("add", a=1, b=2))
    known, nobody = api.get("/"), api.get("/", **NOBODY)
    assert known.body == nobody.body and api.token not in known.body
    assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\sstyle=|\son\w+=|https?://", nobody.body)
    named = re.findall(r'(?:src|href)="([^"#][^"]*)"', nobody.body)
    assert named and all(name in assets() for name in named)


def test_every_file_of_the_console_is_listed_and_served(api: Api) -> None:
    """S1: exactly the files that are there, each with its type."""
    files = {file for file in FOLDER.rglob("*") if file.is_file() and "__pycache__" not in file.parts}
    assert {file.suffix for file in files} <= {*CONTENT_TYPES, ".ts"}
    wanted = {
        ASSET_PREFIX + file.relative_to(FOLDER).as_posix() for file in files if file.suffix in CONTENT_TYPES
    }
    assert set(assets()) == wanted and {SHELL, f"{ASSET_PREFIX}main.js"} <= wanted
    for path, asset in assets().items():
        status, headers, body = raw(api, "GET", path)
        assert (status, body) == (200, (FOLDER / path.removeprefix(ASSET_PREFIX)).read_bytes())
        assert headers["content-type"].encode() == asset.kind and is_safe(headers)


def test_every_import_of_a_script_is_a_file_that_is_served() -> None:
    """V1: no script asks for what is not there."""
    for file in FOLDER.rglob("*.js"):
        for name in re.findall(r'(?:from|import\()\s*"(\.[^"]+)"', file.read_text()):
            meant = (file.parent / name).resolve().relative_to(FOLDER.resolve()).as_posix()
            assert ASSET_PREFIX + meant in assets(), f"{file.name} imports {name}"


@pytest.mark.parametrize(
    "path",
    [
        "/console/../serve/guard.py", "/console/..%2fserve%2fguard.py", "/console/%2e%2e/state.py",
        "/console//etc/passwd", "/console/....//state.py", "/console/main.js/", "/console/main.js%00",
        "/console", "/console/", "/console/views", "/live/../console/../state.py%00", "/index.html", "/LIVE",
    ],
)  # fmt: skip
def test_nothing_but_the_files_is_reached(api: Api, path: str) -> None:
    """S1: no path leads out of the folder."""
    status, headers, body = raw(api, "GET", path)
    assert status == 404 or body == assets()[SHELL].body
    assert b"import " not in body and is_safe(headers)


@pytest.mark.parametrize("path", ["/", f"{ASSET_PREFIX}main.js", f"{ASSET_PREFIX}lib/api.js"])
def test_what_a_browser_has_already_is_not_sent_again(api: Api, path: str) -> None:
    """V1: asked for each time, sent once."""
    status, headers, _ = raw(api, "GET", path)
    tag = headers["etag"]
    for sent in (tag, f"W/{tag}", f'"other", {tag}', "*"):
        status, again, body = raw(api, "GET", path, if_none_match=sent)
        assert (status, body, again["etag"]) == (304, b"", tag) and is_safe(again)
    assert raw(api, "GET", path, if_none_match='"other"')[0] == 200


@pytest.mark.parametrize("path", ["/", "/live", f"{ASSET_PREFIX}main.js"])
def test_a_head_is_a_get_without_its_body(api: Api, path: str) -> None:
    """V4: the same length and type."""
    status, headers, body = raw(api, "HEAD", path)
    assert (status, body) == (200, b"") and is_safe(headers)
    whole = raw(api, "GET", path)
    assert headers["content-length"] == str(len(whole[2])) and headers["etag"] == whole[1]["etag"]


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/healthz", 200), ("GET", "/api/calls", 200), ("GET", "/api/none", 404),
        ("DELETE", "/api/calls", 405), ("POST", "/", 405), ("GET", "/none", 404), ("HEAD", "/none", 404),
        ("HEAD", "/api/calls", 405), ("HEAD", "/mcp", 405), ("GET", "/link", 403), ("POST", "/mcp", 406),
        ("OPTIONS", "/api/calls", 405),
    ],
)  # fmt: skip
def test_the_headers_are_on_every_response(api: Api, method: str, path: str, status: int) -> None:
    """S1: page, file, answer, error and refusal."""
    found, headers, _ = raw(api, method, path, authorization=f"Bearer {api.token}")
    assert found == status and is_safe(headers), headers


def test_the_headers_are_on_streams_too(api: Api) -> None:
    """S1: what is read bit by bit is no exception."""
    with api.open("GET", "/api/events", None, {}) as (_, response):
        assert is_safe({key.lower(): value for key, value in response.getheaders()})


@pytest.mark.parametrize("path", ["/", "/live", f"{ASSET_PREFIX}main.js"])
@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "evil.example"}, 421),
        ({"origin": "https://evil.example"}, 403),
        ({"origin": "http://127.0.0.1:1"}, 403),
        ({"sec_fetch_site": "cross-site"}, 403),
        ({"sec_fetch_site": "same-site"}, 403),
    ],
)
def test_the_page_is_for_our_own_address_alone(
    api: Api, path: str, headers: dict[str, str], status: int
) -> None:
    """S1: a rebound name, another site and another port are turned away, in words."""
    answer = api.get(path, **NOBODY, **headers)
    assert answer.status == status and "allow" in str(answer.body) and is_safe(answer)


def test_the_console_takes_no_address_that_means_something_else() -> None:
    """V1: the API, MCP, the link and health stay what they are."""
    assert [path for path in ("/mcp", "/link", "/healthz", "/api", "/api/calls") if find_asset(path)] == []
    assert {path.split("/")[1].split("?")[0] for path in PLACES} == VIEWS


def test_the_policy_is_the_one_that_was_asked_for() -> None:
    """S1: no source was added for convenience."""
    assert dict(console.SECURITY_HEADERS) == SAFE
