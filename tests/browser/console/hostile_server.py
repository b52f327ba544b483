"""A server on stdin and stdout with no harmless word: in its tool, schemas, questions and offers."""

import json
import sys
from typing import Any

HOSTILE: str = json.loads(sys.argv[1])  # a line of a command cannot have all of it as it is
ADDRESS = "https://user:pass@example.com/<img src=x onerror=alert(1)>\u202e"
FIELD: dict[str, Any] = {"title": HOSTILE, "description": HOSTILE, "type": "string"}
FORM = {
    "type": "object",
    "properties": {
        HOSTILE: {**FIELD, "default": HOSTILE},
        "one": {**FIELD, "enum": [HOSTILE, "b"], "enumNames": [HOSTILE, "b"]},
        "some": {"title": HOSTILE, "type": "array", "items": {"type": "string", "enum": [HOSTILE, "b"]}},
    },
    "required": [HOSTILE],
}
TOOL: dict[str, Any] = {
    "name": "utter",
    "title": HOSTILE,
    "description": HOSTILE,
    "inputSchema": {**FORM, "required": [], "title": HOSTILE, "description": HOSTILE},
    "annotations": {"title": HOSTILE, "readOnlyHint": True},
}
RESOURCE = {
    "uri": "odd://words",
    "name": HOSTILE,
    "title": HOSTILE,
    "description": HOSTILE,
    "mimeType": HOSTILE,
}
PROMPT = {
    "name": "speak",
    "title": HOSTILE,
    "description": HOSTILE,
    "arguments": [{"name": "words", "title": HOSTILE, "description": HOSTILE}],
}
SAID = {"type": "text", "text": HOSTILE}
ANSWERS: dict[str, Any] = {
    "resources/list": {"resources": [RESOURCE]},
    "resources/templates/list": {"resourceTemplates": []},
    "resources/read": {"contents": [{"uri": "odd://words", "mimeType": "text/html", "text": HOSTILE}]},
    "prompts/list": {"prompts": [PROMPT]},
    "prompts/get": {"description": HOSTILE, "messages": [{"role": "user", "content": SAID}]},
}
INFO = {"name": HOSTILE, "version": HOSTILE, "title": HOSTILE}


def main() -> None:
    """Answer until stdin ends; a call of the tool asks with a form, then with an address."""
    calls: list[Any] = []
    for line in sys.stdin:
        match json.loads(line):
            case {"method": "initialize", "id": own}:
                has: dict[str, Any] = {
                    "protocolVersion": "2025-11-25",
                    "capabilities": {"tools": {}, "resources": {}, "prompts": {}},
                    "serverInfo": INFO,
                }
                say({"id": own, "result": has})
            case {"method": "tools/list", "id": own}:
                print(HOSTILE, file=sys.stderr, flush=True)
                say({"id": own, "result": {"tools": [TOOL]}})
            case {"method": "tools/call", "id": own}:
                calls.append(own)
                ask("form", {"mode": "form", "requestedSchema": FORM})
            case {"id": "form", **_rest}:
                ask("url", {"mode": "url", "url": ADDRESS, "elicitationId": HOSTILE})
            case {"id": "url", **_rest}:
                say({"id": calls.pop(), "result": {"content": [SAID], "isError": True}})
            case {"method": str(name), "id": own} if name in ANSWERS:
                say({"id": own, "result": ANSWERS[name]})
            case {"method": str(name), "id": own}:
                say({"id": own, "error": {"code": -32601, "message": f"no {name} {HOSTILE}"}})


def ask(own: str, params: dict[str, Any]) -> None:
    """Ask whoever called."""
    say({"id": own, "method": "elicitation/create", "params": {"message": HOSTILE, **params}})


def say(message: dict[str, Any]) -> None:
    """One message."""
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


if __name__ == "__main__":
    main()
