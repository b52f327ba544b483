"""Targets for messages of MCP in both eras and both roles, and for streams of events and lines."""

import json as plain_json
from typing import Any

import msgspec
from msgspec import Raw

from afoot.config.tables import Server
from afoot.core.facts import NOTHING, Answer, Limits
from afoot.errors import ToolError
from afoot.providers.upstream.tool_definitions import read_tools
from afoot.providers.upstream.transport.server_log import ServerLog
from afoot.serve.mcp.streams import encode_envelope
from afoot.wire import (
    jsonrpc,
    mcp_2025,
    mcp_2026,
    passthrough,
    resources,
    results,
    sealed_state,
    tasks,
)
from afoot.wire.client import incoming, outgoing
from afoot.wire.client import tasks as client_tasks
from afoot.wire.framing import EventParser, LineSplitter, event_frame
from afoot.wire.jsonrpc import Envelope, Fault
from afoot.wire.results import Capabilities, ToolCall
from tests.attack.fuzz.target import Target, from_deeper, pieces

META: dict[str, object] = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {
        "elicitation": {"form": {}}, "extensions": {"io.modelcontextprotocol/tasks": {}},
    },
    "io.modelcontextprotocol/clientInfo": {"name": "c", "version": "1"},
    "progressToken": 1,
    "dev.afoot/budget": {"wait_s": 5},
    "dev.afoot/idempotency": "key",
    "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
}  # fmt: skip
EVENT_LIMIT = 1000


def message(method: str, params: object, **more: object) -> bytes:
    """A message as a client or a server sends it."""
    return plain_json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params} | more).encode()


def server_2026(data: bytes) -> None:
    """A request of 2026-07-28, on a pipe and over HTTP."""
    for headers in (None, _fitting_headers(data)):
        try:
            found = mcp_2026.read(data, headers)
            if isinstance(found, ToolCall):
                from_deeper(lambda found=found: _open_call(found))
            else:
                from_deeper(lambda found=found, headers=headers: _read_other_2026(found, headers))
        except Fault as fault:
            _answer_fault(fault)


def server_2025(data: bytes) -> None:
    """A message of the handshake era."""
    try:
        read = jsonrpc.read(data)
        assert jsonrpc.read(encode_envelope(read)).id == read.id
        from_deeper(lambda: _read_other_2025(read))
    except Fault as fault:
        _answer_fault(fault)


def client_messages(data: bytes) -> None:
    """A line that an upstream sends: a response, a notification, or a question."""
    try:
        read = incoming.read_message(data)
    except Fault:
        return
    for part in (read.params, read.result, read.error):
        if part:
            from_deeper(lambda part=part: _read_part(Raw(bytes(part))))


def tool_lists(data: bytes) -> None:
    """The response to `tools/list` of an upstream."""
    try:
        answer = incoming.read_message(data)
        found = from_deeper(lambda: incoming.read_list_page(answer.result, "tools")[0])
    except Fault:
        return
    log = ServerLog("s")
    offered, _ = from_deeper(lambda: read_tools(found, Server(command="x"), Limits(), log))
    for tool in offered.values():
        outgoing.encode_param_headers(tool.mirrors, Raw(b'{"a":{"b":"c"},"x":1.5}'))
        tasks.with_task_support(bytes(tool.tool.definition), tool.task_support)


def events(data: bytes) -> None:
    """An event stream: it reads the same however it is cut, and what is read can be written again."""
    whole = list(EventParser().feed(data))
    parser, bounded = EventParser(), EventParser(EVENT_LIMIT)
    found = [event for piece in pieces(data) for event in parser.feed(piece)]
    assert found == whole, "it depends on how the stream was cut"
    assert parser.retry_ms is None or 0 <= parser.retry_ms <= 10**9
    for piece in pieces(data):
        for event in bounded.feed(piece):
            assert len(event.data) <= EVENT_LIMIT + len(piece)
    for event in whole:
        if "\n" not in event.data:
            [again] = EventParser().feed(event_frame(event.data.encode(), event.event, event.id))
            assert again.data == event.data


def lines(data: bytes) -> None:
    """Lines on a pipe."""
    splitter, bounded = LineSplitter(1 << 20), LineSplitter(64)
    found = [line for piece in pieces(data) for line in splitter.feed(piece)]
    assert found == data.split(b"\n")[:-1]
    kept = [line for piece in pieces(data) for line in bounded.feed(piece)]
    assert len(kept) + bounded.dropped == data.count(b"\n")


def templates(data: bytes) -> None:
    """A URI template of an upstream, and the URI of a caller."""
    template, _, uri = data.decode("utf-8", "replace").partition("\n")
    resources.matches_template(template, uri)


def _fitting_headers(data: bytes) -> dict[str, str]:
    """The headers that a client of 2026-07-28 sends with this body."""
    try:
        body: Any = plain_json.loads(data)
        params = body["params"]
        name = str(params.get("name", params.get("uri", params.get("taskId", ""))))
        found = {"mcp-method": str(body["method"]), "mcp-name": mcp_2026.encode_header(name)}
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        found = dict[str, str]()
    return {"mcp-protocol-version": "2026-07-28", **found}


def _open_call(found: ToolCall) -> None:
    sealed_state.request_digest(found.name, bytes(found.arguments))
    mirrors = [mcp_2026.ParamHeader(("a", "b"), "A", "string"), mcp_2026.ParamHeader(("x",), "X", "integer")]
    mcp_2026.check_param_headers(mirrors, bytes(found.arguments), {"mcp-param-a": "c", "mcp-param-x": "1"})


def _read_other_2026(read: Envelope, headers: dict[str, str] | None) -> None:
    mcp_2026.is_modern(bytes(read.params))
    if not read.is_request:
        return
    if read.method == "subscriptions/listen":
        mcp_2026.read_listen(read, headers)
    elif read.method in tasks.METHODS_2026:
        tasks.read_2026(read, headers)
    else:
        mcp_2026.read_plain(read, headers)
    if read.method in resources.LOOKUPS:
        _look_up(read)


def _read_other_2025(read: Envelope) -> None:
    readers = {
        "initialize": mcp_2025.read_initialize,
        "tools/list": mcp_2025.read_list,
        "logging/setLevel": mcp_2025.read_level,
        "notifications/cancelled": mcp_2025.read_cancelled,
        "tasks/get": tasks.read_2025,
        "tasks/list": tasks.read_cursor,
        "resources/subscribe": resources.read_uri,
    }
    if read.is_request and read.method == "tools/call":
        found = mcp_2025.read_call(read, Capabilities(), None)
        sealed_state.request_digest(found.name, bytes(found.arguments))
    elif read.is_request and read.method in resources.LOOKUPS:
        _look_up(read)
    elif read.method in readers:
        readers[str(read.method)](read)


def _look_up(read: Envelope) -> None:
    lookup = resources.read_lookup(read, "caller", Capabilities())
    lookup.digest()
    msgspec.json.encode(lookup.server_params(lookup.subject, lookup.answers, lookup.state))


def _read_part(part: Raw) -> None:
    """Read a part of a message as everything that it may be."""
    _read_result(part)
    if (progress := incoming.read_progress(part)) is not None:
        passthrough.merge({"progress": progress.progress}, progress.more)
        if progress.meta is not None and progress.meta.details is not None:
            incoming.read_children(progress.meta.details.children)
    if (log := incoming.read_log(part)) is not None:
        assert log.level in results.LEVELS and isinstance(log.text, str)
    if (described := incoming.read_server_description(part)) is not None:
        described.server.get("name")
        client_tasks.runs_as_task_2025(
            "required", outgoing.Dialect("2025-11-25", NOTHING), described.capabilities
        )
    fault = incoming.read_error(part)
    incoming.required_urls(fault)
    client_tasks.requires_tasks(fault)
    outgoing.as_tool_error(fault, "s")
    incoming.read_cancelled(part)
    incoming.read_updated(part)
    client_tasks.related_task(part)
    passthrough.declared_extensions(passthrough.unknown_fields(part, frozenset()))
    _ask(incoming.InputRequest("elicitation/create", part))
    _ask(incoming.InputRequest("sampling/createMessage", part))
    for read in (client_tasks.read_task, client_tasks.read_created_2025):
        try:
            task = read(part)
        except Fault:
            continue
        if task is not None:
            assert client_tasks.POLL_BOUNDS_S[0] <= task.poll_s <= client_tasks.POLL_BOUNDS_S[1]
            assert task.details is None or task.details.children is not None


def _read_result(part: Raw) -> None:
    try:
        found = incoming.read_result(part)
    except Fault:
        return
    sent = _fields(bytes(part))
    known = {
        "content",
        "structuredContent",
        "isError",
        "resultType",
        "inputRequests",
        "requestState",
        "_meta",
    }
    kept = passthrough.fields_of(found.more)
    assert {key for key in sent if key not in known} == {key for key in kept if key != "_meta"}
    outgoing.content_text(found.content)
    outgoing.attached_partials(found)
    try:
        outgoing.reported_tool_error(found)
    except ToolError:
        raise AssertionError("an error is returned, not raised") from None
    for key, wish in (found.input_requests or {}).items():
        _ask(wish, key)


def _ask(wish: incoming.InputRequest, key: str = "k") -> None:
    try:
        question = outgoing.read_question(wish, key)
    except Fault:
        return
    for answer in (Answer("accept", Raw(b"{}")), Answer("decline"), Answer("accept")):
        try:
            results.encode(outgoing.answer_result(question, answer))
        except Fault:
            continue
    results.question_params(question)


def _fields(part: bytes) -> dict[str, Raw]:
    return msgspec.json.decode(part, type=dict[str, Raw])


def _answer_fault(fault: Fault) -> None:
    """The answer to a wrong message can be sent, and is one message."""
    sent = results.error_response(fault)
    assert b"\n" not in sent and plain_json.loads(sent)["error"]["code"] == fault.code


_TOOL = {
    "name": "t", "inputSchema": {
        "type": "object",
        "properties": {"a": {"properties": {"b": {"type": "string", "x-mcp-header": "A"}}}},
    },
    "annotations": {"readOnlyHint": True}, "execution": {"taskSupport": "optional"},
}  # fmt: skip

TARGETS = (
    Target(
        "server_2026",
        server_2026,
        (
            message("tools/call", {"name": "t", "arguments": {"a": {"b": "c"}, "x": 1}, "_meta": META}),
            message(
                "tools/call", {"name": "t", "requestState": "x", "inputResponses": {"k": {}}, "_meta": META}
            ),
            message("subscriptions/listen", {"notifications": {"taskIds": ["a"]}, "_meta": META}),
            message("tasks/update", {"taskId": "a", "inputResponses": {}, "_meta": META}),
            message("resources/read", {"uri": "a:b", "_meta": META}),
            message(
                "completion/complete",
                {
                    "ref": {"type": "ref/prompt", "name": "p"},
                    "argument": {"name": "a", "value": "b"},
                    "_meta": META,
                },
            ),
        ),
        (b'"_meta":', b'"arguments":', b'"requestState":', b"=?base64?", b'"dev.afoot/parent":{"call":"c"}'),
    ),
    Target(
        "server_2025",
        server_2025,
        (
            message(
                "initialize",
                {
                    "protocolVersion": "2025-11-25",
                    "capabilities": {},
                    "clientInfo": {"name": "c"},
                },
            ),
            message(
                "tools/call",
                {"name": "t", "arguments": {}, "task": {"ttl": 5}, "_meta": {"progressToken": 1}},
            ),
            message("logging/setLevel", {"level": "info"}),
            message("notifications/cancelled", {"requestId": 1, "reason": "x"}),
            message("tasks/list", {"cursor": "1.5:c"}),
            message("resources/read", {"uri": "a:b"}),
            b'{"jsonrpc":"2.0","id":1,"result":{"action":"accept","content":{}}}',
            b'{"jsonrpc":"2.0","id":"a","error":{"code":-1,"message":"no"}}',
        ),
        (b'"method":', b'"params":', b'"id":null', b'"tasks/get"', b'"tools/list"'),
    ),
    Target(
        "client_messages",
        client_messages,
        (
            message(
                "notifications/progress",
                {
                    "progressToken": 1,
                    "progress": 1,
                    "total": 2,
                    "message": "m",
                    "_meta": {"dev.afoot/progress": {"progress": 1, "children": [{"id": "c", "tool": "t"}]}},
                },
            ),
            message("notifications/message", {"level": "info", "logger": "l", "data": {"a": 1}, "z": 1}),
            message("elicitation/create", {"message": "m", "mode": "url", "url": "https://a", "x": 1}),
            b'{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"a"}],"isError":true,"z":1,'
            b'"_meta":{"dev.afoot/error":{"category":"timeout","message":"m"},"k":1},'
            b'"inputRequests":{"k":{"method":"elicitation/create","params":{"message":"m"}}}}}',
            b'{"jsonrpc":"2.0","id":1,"result":{"taskId":"a","status":"working","pollIntervalMs":5}}',
            b'{"jsonrpc":"2.0","id":1,"result":{"task":{"taskId":"a","pollInterval":1e308}}}',
            b'{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tasks":{}},'
            b'"serverInfo":{"name":"s"}}}',
            b'{"jsonrpc":"2.0","id":1,"error":{"code":-32042,"message":"m",'
            b'"data":{"elicitations":[{"url":"https://a"}]}}}',
            b'{"jsonrpc":"2.0","id":1,"result":NaN}',
        ),
        (b'"io.modelcontextprotocol/related-task":{"taskId":"a"}', b'"_meta":{', b'"structuredContent":null'),
    ),
    Target(
        "tool_lists",
        tool_lists,
        (
            plain_json.dumps(
                {"jsonrpc": "2.0", "id": 1, "result": {"tools": [_TOOL, {**_TOOL, "name": "u"}]}}
            ).encode(),
        ),
        (b'"x-mcp-header":"A"', b'"properties":{', b'"inputSchema":', b'"items":', b'"const":'),
    ),
    Target(
        "events",
        events,
        (
            b"event: message\ndata: {}\n\n",
            b"id: a.b.1.W10\r\nretry: 5\r\ndata: x\r\ndata: y\r\n\r\n",
            b": comment\n\ndata\n\nid\n\n",
            b"\xef\xbb\xbfdata: x\r\r",
        ),
        (b"data:", b"retry: 99999999999", b"id:", b"\r", b"\n\n", b"\r\n\r\n"),
    ),
    Target("lines", lines, (b"a\nb\n", b"\n\n", b"x" * 70 + b"\ny\n"), (b"\n", b"\r\n")),
    Target(
        "templates",
        templates,
        (b"file:///{path}\nfile:///a", b"a/{+b}/c{?d,e}\na/b/c?d=1", b"{/a*}{#b}\n/x#y"),
        (b"{a}", b"{+a}", b"{?a}", b"{/a*}", b"{", b"}", b"\n"),
    ),
)
