"""`make_redactor` makes the `Redactor` for settings: their rules, and the secrets that they hold (S7).

Every way out takes its redactor from here: the engine, the log, `afoot config` and `afoot doctor`.
"""

import os
from collections.abc import Mapping

from afoot.config.settings import Settings
from afoot.config.tables import Server
from afoot.core.redaction import Redactor

OTEL_HEADERS = tuple(f"OTEL_EXPORTER_OTLP_{signal}HEADERS" for signal in ("", "TRACES_", "METRICS_"))
# Headers that say how to speak, not who speaks; the value of any other may let somebody in.
PLAIN_HEADERS = ("accept", "content-type", "user-agent", "mcp-protocol-version", "x-request-id")


def make_redactor(settings: Settings, environment: Mapping[str, str] | None = None) -> Redactor:
    """The redactor for these settings; servers add their own secrets once their variables are known."""
    redactor = Redactor(settings.redact)
    given = os.environ if environment is None else environment
    sent = ",".join(given.get(name, "") for name in OTEL_HEADERS)
    redactor.add_secrets(one.partition("=")[2].strip() for one in sent.split(","))
    redactor.add_secrets(_header_secrets(settings.otel.headers))
    redactor.add_secrets([settings.mcp_token, given.get("AFOOT_TOKEN", "")])
    for url in (settings.otel.endpoint, settings.browser.cdp, settings.cluster.redis, *settings.targets):
        redactor.add_secrets(redactor.secrets_in_url(url))
    for hook in settings.hooks:
        try:
            redactor.add_words(hook.words())
        except ValueError:  # a quote is open: the hook itself says so
            redactor.add_words(str(hook.command).split())
    for server in settings.servers.values():
        add_server_secrets(redactor, server)
    return redactor


def add_server_secrets(redactor: Redactor, server: Server) -> None:
    """Let a redactor know the secrets in a server's settings: variables, headers, arguments and address."""
    redactor.add_named_secrets({name: one for name, one in server.env.items() if not _is_variable(one)})
    for one in (server.url, *server.env.values()):
        redactor.add_secrets(redactor.secrets_in_url(one))
    redactor.add_secrets(_header_secrets(server.headers))
    words = (*server.command.split(), *server.args)
    redactor.add_words(["" if _is_variable(one) else one for one in words])
    if not _is_variable(server.client_secret):
        redactor.add_secrets([server.client_secret])


def _header_secrets(headers: Mapping[str, str]) -> list[str]:
    return [
        one for name, one in headers.items() if name.lower() not in PLAIN_HEADERS and not _is_variable(one)
    ]


def _is_variable(value: str) -> bool:
    """Whether a value only names a variable, which is no secret."""
    return "${" in value
