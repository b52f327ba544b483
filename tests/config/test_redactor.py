"""The redactor of settings knows the secrets that they hold."""

from afoot.config.redactor import add_server_secrets, make_redactor
from afoot.config.settings import Hook, OtelSettings, Server, Settings
from afoot.core.redaction import Redactor


def test_the_secrets_of_settings_are_known() -> None:
    """S7: tokens, headers, commands of hooks, addresses, and the standard variables of telemetry."""
    settings = Settings(
        mcp_token="aaaaaaaa1",
        otel=OtelSettings(endpoint="http://me:aaaaaaaa2@h", headers={"x-team": "aaaaaaaa3"}),
        hooks=[
            Hook(on="after_call", command="notify --token aaaaaaaa4"),
            Hook(on="on_end", command='a "--token=aaaaaaaa5'),
        ],
        servers={"web": Server(url="https://h/?api_key=aaaaaaaa6")},
    )
    given = {"OTEL_EXPORTER_OTLP_HEADERS": "x-a=aaaaaaaa7,x-b = aaaaaaaa8", "AFOOT_TOKEN": "aaaaaaaa9"}
    known = make_redactor(settings, given).known
    assert {one.strip('"') for one in known} >= {f"aaaaaaaa{number}" for number in (1, 2, 3, 4, 6, 7, 8, 9)}
    assert "[redacted]" in make_redactor(settings, given).text("with aaaaaaaa5")


def test_the_secrets_of_a_server_are_known_and_the_rest_of_it_is_not() -> None:
    """S7: variables by their names, headers whatever their names, words behind flags."""
    redactor = Redactor()
    server = Server(
        command="run --api-key aaaaaaaa1",
        args=["--token", "${TOKEN_OF_MINE}", "--verbose", "plain-word-1"],
        env={
            "DB_PASS": "aaaaaaaa2",
            "LANG": "plain-word-2",
            "URL": "redis://:aaaaaaaa3@h",
            "A_TOKEN": "${NAME_OF_ONE}",
        },
        headers={"X-Customer": "aaaaaaaa4", "Accept": "plain/word-3"},
        client_secret="aaaaaaaa5",
    )
    add_server_secrets(redactor, server)
    assert redactor.known == {f"aaaaaaaa{number}" for number in range(1, 6)}
