"""`FakeModel` is a model server on loopback: it calls the tools of a script and keeps what it is sent.

It speaks what three hosts speak: OpenAI's responses (Codex) and chat completions (opencode), and Gemini's
`streamGenerateContent`. Its answers depend on the request alone: as many tool results as a request holds, so
many calls of the script are done. A result with a handle is followed by `afoot_wait`, as its text asks for.
"""

import json
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, NamedTuple, TypeAlias

HANDLE: Final = re.compile(r"afoot_(?:call|wait)\b.*?\b([0-9a-f]{40,})\b", re.DOTALL)  # and the call's id
PROMPT: Final = "please run the script"
Json: TypeAlias = dict[str, Any]


class Step(NamedTuple):
    """A call of the script."""

    tool: str
    arguments: Json


class Turn(NamedTuple):
    """What a request tells: the tools by name, and each tool result as the model sees it."""

    tools: list[str]
    results: list[Any]
    is_script: bool  # hosts also ask for titles and summaries


class FakeModel:
    """The model of one session of a host."""

    def __init__(self, script: Sequence[Step]) -> None:
        self.script = list(script)
        self.results: list[tuple[Step, Any]] = []  # what the model was told, by call
        self.requests: list[tuple[str, Json]] = []
        self.problems: list[str] = []
        self.url = ""
        self._lock = threading.Lock()
        self._done: list[Step] = []

    def next_step(self, turn: Turn) -> Step | None:
        """The call that follows so many results, or None after the last."""
        with self._lock:
            for number in range(len(self.results), min(len(turn.results), len(self._done))):
                self.results.append((self._done[number], turn.results[number]))
            if len(self._done) > len(turn.results):  # the host repeats a request
                return self._done[len(turn.results)]
            if self.results and (handle := HANDLE.search(_text(self.results[-1][1]))):
                step = Step("afoot_wait", {"call": handle[1]})
            elif (at := len([one for one in self._done if one.tool != "afoot_wait"])) < len(self.script):
                step = self.script[at]
            else:
                return None
            self._done.append(step)
            return step

    def told(self, tool: str) -> list[Any]:
        """The results of this tool's calls as the model saw them, and of the waits that followed them."""
        found = list[Any]()
        current = ""
        for step, result in self.results:
            current = step.tool if step.tool != "afoot_wait" else current
            if current == tool:
                found.append(result)
        return found

    def answer(self, path: str, body: Json) -> tuple[str, bytes]:
        """The content type and the body of the answer to a request."""
        self.requests.append((path, body))
        for pattern, read, write in _PROTOCOLS:
            if re.search(pattern, path):
                turn = read(body)
                step = self.next_step(turn) if turn.is_script else None
                call = None if step is None else (_named(turn.tools, step.tool), step.arguments)
                return write(call, len(turn.results), path)
        if path.split("?")[0].endswith("/models"):
            return "application/json", b'{"object": "list", "data": [], "models": []}'
        if path.endswith(":countTokens"):
            return "application/json", b'{"totalTokens": 1}'
        self.problems.append(f"unexpected request {path}")
        return "application/json", b"{}"


@contextmanager
def serving_model(script: Sequence[Step]) -> Iterator[FakeModel]:
    """A model server that ends with the block."""
    model = FakeModel(script)

    class Requests(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._answer({})

        def do_POST(self) -> None:
            data = self.rfile.read(int(self.headers.get("content-length", 0)))
            self._answer(json.loads(data or b"{}"))

        def _answer(self, body: Json) -> None:
            kind, text = model.answer(self.path, body)
            self.send_response(200)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Requests) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        model.url = f"http://127.0.0.1:{server.server_port}"
        try:
            yield model
        finally:
            server.shutdown()
            thread.join()


Call: TypeAlias = tuple[str, Json]


def _read_responses(body: Json) -> Turn:
    """A request of OpenAI's responses."""
    items = body.get("input", [])
    tools = list[str]()
    for tool in body.get("tools", []):
        inner = tool.get("tools") if tool.get("type") == "namespace" else None
        tools += [f"{tool['name']}/{one['name']}" for one in inner] if inner else [str(tool.get("name", ""))]
    results = [item["output"] for item in items if item.get("type") == "function_call_output"]
    return Turn(tools, results, PROMPT in json.dumps(items))


def _write_responses(call: Call | None, number: int, path: str) -> tuple[str, bytes]:
    item: Json
    if call is None:
        item = {
            "type": "message",
            "role": "assistant",
            "id": "m",
            "content": [{"type": "output_text", "text": "done"}],
        }
    else:
        space, _, name = call[0].rpartition("/")
        item = {
            "type": "function_call", "id": f"f{number}", "call_id": f"c{number}", "name": name,
            "arguments": json.dumps(call[1]), **({"namespace": space} if space else {}),
        }  # fmt: skip
    usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
    response = {"id": f"r{number}", "status": "completed", "output": [item], "usage": usage}
    events = [
        {"type": "response.created", "response": {"id": f"r{number}"}},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": response},
    ]
    return "text/event-stream", b"".join(_event(one, str(one["type"])) for one in events)


def _read_chat(body: Json) -> Turn:
    """A request of OpenAI's chat completions."""
    messages = body.get("messages", [])
    tools = [str(one["function"]["name"]) for one in body.get("tools", [])]
    results = [message["content"] for message in messages if message.get("role") == "tool"]
    return Turn(tools, results, bool(tools) and PROMPT in json.dumps(messages))


def _write_chat(call: Call | None, number: int, path: str) -> tuple[str, bytes]:
    delta: Json = {"role": "assistant", "content": "done"}
    if call is not None:
        function = {"name": call[0], "arguments": json.dumps(call[1])}
        delta = {
            "role": "assistant",
            "tool_calls": [{"index": 0, "id": f"c{number}", "type": "function", "function": function}],
        }
    base = {"id": f"r{number}", "object": "chat.completion.chunk", "created": 1, "model": "fake-model"}
    end = {"index": 0, "delta": dict[str, str](), "finish_reason": "stop" if call is None else "tool_calls"}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    chunks = [{**base, "choices": [{"index": 0, "delta": delta}]}, {**base, "choices": [end], "usage": usage}]
    return "text/event-stream", b"".join(map(_event, chunks)) + b"data: [DONE]\n\n"


def _read_gemini(body: Json) -> Turn:
    """A request of Gemini's `generateContent`."""
    parts = [part for content in body.get("contents", []) for part in content.get("parts", [])]
    declared = [one for group in body.get("tools", []) for one in group.get("functionDeclarations", [])]
    results = list[Any]()
    for part in parts:
        if "functionResponse" in part:
            results.append([part["functionResponse"]])
        elif results and ("inlineData" in part or "text" in part):  # pictures follow their result
            results[-1].append(part)
    tools = [str(one["name"]) for one in declared]
    return Turn(tools, results, bool(tools) and PROMPT in json.dumps(parts))


def _write_gemini(call: Call | None, number: int, path: str) -> tuple[str, bytes]:
    part: Json = {"text": "done"} if call is None else {"functionCall": {"name": call[0], "args": call[1]}}
    usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
    candidate = {"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}
    answer = {"candidates": [candidate], "usageMetadata": usage}
    if "stream" in path:
        return "text/event-stream", _event(answer)
    return "application/json", json.dumps(answer).encode()


_PROTOCOLS: Final[
    tuple[tuple[str, Callable[[Json], Turn], Callable[[Call | None, int, str], tuple[str, bytes]]], ...]
] = (
    (r"/responses$", _read_responses, _write_responses),
    (r"/chat/completions$", _read_chat, _write_chat),
    (r"enerateContent", _read_gemini, _write_gemini),
)


def _event(data: Json, name: str = "") -> bytes:
    return (f"event: {name}\n" if name else "").encode() + f"data: {json.dumps(data)}\n\n".encode()


def _text(result: Any) -> str:
    return result if isinstance(result, str) else json.dumps(result)


def _named(tools: Sequence[str], wanted: str) -> str:
    """The name under which a host offers a tool: each puts something of its own before it."""
    found = sorted((one for one in tools if re.search(rf"(^|[_/.]){wanted}$", one)), key=len)
    if not found:
        raise LookupError(f"no tool {wanted} among {tools}")
    return found[0]
