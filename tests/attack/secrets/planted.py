"""Secrets of every kind, each with a value that can be found again wherever it turns up."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

HERE: Final = Path(__file__).parent
FOUND: Final = re.compile(rb"plantedvalue([a-z0-9]+?)zq")
Table = dict[str, Any]


def planted(kind: str) -> str:
    """The value of the secret of this kind."""
    return f"plantedvalue{kind}zq"


def kinds_in(data: bytes | str) -> set[str]:
    """The kinds of secrets whose values stand in this."""
    plain = data if isinstance(data, bytes) else data.encode("utf-8", "replace")
    return {found[1].decode() for found in FOUND.finditer(plain)}


ARGUMENTS: Final[Table] = {
    "password": planted("argpassword"),
    "pwd": planted("argpwd"),
    "pass": planted("argpass"),
    "pin": planted("argpin"),
    "otp": planted("argotp"),
    "auth": planted("argauth"),
    "signing_key": planted("argkey"),
    "dsn": planted("argdsn"),
    "api-key": planted("argapikey"),
    "userPin": planted("argcamel"),
    "cookie": planted("argcookie"),
    "door": planted("argdeclared"),
    "db": {"deep": {"client_secret": planted("argnested")}},
    "logins": [{"name": "a", "token": planted("arglist")}],
    "words": ["run", "--api-key", planted("argflag"), "--verbose"],
    "more_words": [f"--token={planted('argflagequals')}"],
    "address": f"https://me:{planted('argurl')}@host.invalid/",
    "link": f"https://host.invalid/?a=1&api_key={planted('argquery')}",
    "shell": f"deploy --verbose --token {planted('argshell')} now",
    "note": f"ghp_{planted('arggithub')}aaaaaaaaaaaa",
    "jwt_text": f"eyJ{planted('argjwt')}.eyJaaaaaaaaaaaa.sign",
    "pem": f"-----BEGIN PRIVATE KEY-----\n{planted('argpem')}\n-----END PRIVATE KEY-----",
}
PLAIN: Final[Table] = {
    "tokens": 5, "max_tokens": 7, "pin_count": 3, "passenger": "Ann", "author": "Bob", "key": "name",
    "primary_key": "id", "issueKey": "AB-1", "bypass": "north", "spinning": "x", "compass": "y",
}  # fmt: skip
ANSWER: Final = {"password": planted("answernamed"), "word": planted("answerdeclared")}


def leaky_server() -> Table:
    """A server on stdio that tells everybody how it was started."""
    return {
        "command": sys.executable,
        "args": [
            str(HERE / "leaky_server.py"),
            "--api-key", planted("serverflag"),
            f"--token={planted('serverflagequals')}",
            "-e", f"SMTP_PASSWORD={planted('serverassignment')}",
            "--header", f"Authorization: Bearer {planted('serverheaderflag')}",
            f"https://me:{planted('serverargurl')}@host.invalid/",
            f"https://host.invalid/?access_token={planted('serverargquery')}",
        ],
        "env": {
            "API_TOKEN": planted("envtoken"),
            "DB_PASS": planted("envpass"),
            "SENTRY_DSN": f"https://{planted('envdsn')}@host.invalid/1",
            "DATABASE_URL": f"postgres://me:{planted('envurl')}@host.invalid/db",
            "SIGNING_KEY": planted("envkey"),
            "MODE": "${secret:LEAKY_WORD}",
            "OTHER_TOKEN": "${PLANTED_VARIABLE}",
        },
    }  # fmt: skip


def web_server(port: int) -> Table:
    """A server over HTTP whose settings are full of secrets."""
    return {
        "url": f"http://me:{planted('weburl')}@127.0.0.1:{port}/mcp?api_key={planted('webquery')}",
        "headers": {
            "Authorization": f"Bearer {planted('webheader')}",
            "X-Auth": planted("webauth"),
            "X-Customer": planted("webanyheader"),
        },
        "client_secret": planted("webclient"),
    }


def settings(collector: str) -> Table:
    """Tables of the config file that hold secrets."""
    host = collector.removeprefix("http://")
    return {
        "otel": {
            "endpoint": f"http://me:{planted('otelurl')}@{host}",
            "headers": {"x-team": planted("otelheader")},
        }
    }


def hook() -> str:
    """A hook whose command has a secret, and which fails."""
    words = [sys.executable, "-c", "raise SystemExit(3)", "--token", planted("hook")]
    return f'[[hooks]]\non = "after_call"\ncommand = {words!r}\n'.replace("'", '"')


def files_with_secrets(folder: Path, *but: str) -> Iterator[tuple[Path, set[str]]]:
    """The files below a folder in which secrets stand, and which; those named in `but` may have them."""
    for one in folder.rglob("*"):
        if one.is_file() and not any(part in but for part in one.relative_to(folder).parts):
            if kinds := kinds_in(one.read_bytes()):
                yield one.relative_to(folder), kinds
