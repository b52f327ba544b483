"""Targets for values that are checked by a schema of somebody else: arguments, and answers to questions."""

from msgspec import Raw, json

from afoot.core.facts import Answer, Question
from afoot.core.redaction import declared_in_schema, declared_in_tool
from afoot.engine.questions import check_answer
from afoot.errors import ToolError
from afoot.providers.arguments import check_arguments
from tests.attack.fuzz.target import Target, from_deeper

_SCHEMA = b'{"type":"object","properties":{"a":{"type":"string"},"b":{"$ref":"#/$defs/c"}},"$defs":{"c":{}}}'


def arguments(data: bytes) -> None:
    """A schema and arguments, a line each: what is refused names the arguments."""
    schema, _, given = data.decode("utf-8", "replace").encode().partition(b"\n")  # a message is UTF-8
    for known in (schema, _SCHEMA):
        try:
            from_deeper(lambda known=known: check_arguments(known, Raw(given)))
        except ToolError as error:
            assert error.category == "validation" and "argument" in error.message
    if _is_json(schema):
        from_deeper(lambda: declared_in_tool(Raw(b'{"inputSchema":' + schema + b',"writeOnly":true}')))
        from_deeper(lambda: declared_in_schema(Raw(schema)))


def answers(data: bytes) -> None:
    """The schema of a question and its answer, a line each; only what fits is taken."""
    schema, _, given = data.partition(b"\n")
    if not (_is_json(schema) and _is_json(given)):
        return  # they are parts of a message that was read before
    for body in (schema, _SCHEMA):
        question = Question("", "k", "form", "m", Raw(body))
        try:
            from_deeper(lambda question=question: check_answer(question, Answer("accept", Raw(given))))
        except ToolError as error:
            assert error.category == "validation" and error.message.startswith("content")


def _is_json(data: bytes) -> bool:
    try:
        return bool(json.decode(data, type=Raw)) and data.decode() is not None
    except (ValueError, RecursionError):
        return False


TARGETS = (
    Target(
        "arguments",
        arguments,
        (_SCHEMA + b'\n{"a":"x"}', b'{"type":"object","required":["a"]}\n{"a":null,"b":5}', b"{}\n[]"),
        (
            b'"$ref":"#"',
            b'"pattern":"(a+)+$"',
            b'"enum":[1]',
            b'"const":',
            b'"format":"uri"',
            b'"writeOnly":true',
        ),
    ),
    Target(
        "answers",
        answers,
        (_SCHEMA + b'\n{"a":"x"}', b'{"type":"object","properties":{"a":{"maximum":5}}}\n{"a":9}', b"{}\n{}"),
        (b'"$ref":"#"', b'"pattern":"(a+)+$"', b'"oneOf":[{},{}]', b'"minLength":1e9'),
    ),
)
