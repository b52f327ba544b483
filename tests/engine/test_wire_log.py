"""What was said on the wires of calls: bounded, and without secrets."""

from msgspec import Raw, json

from afoot.core.ports import Run
from afoot.core.redaction import REDACTED_KEY
from afoot.engine.engine import Engine, Submission
from afoot.engine.wire_log import MAX_BYTES, MAX_CALLS, MAX_MESSAGE_BYTES, MAX_MESSAGES, WireLog
from tests.engine.approval.reviewers import asked
from tests.engine.fake_engine import Bench, engine_of, form, offering, works
from tests.engine.test_redaction import Declaring

PIN = {"type": "string", "format": "password"}


def said(tapes: WireLog, call: str) -> list[object]:
    """The messages of a call, read."""
    return [json.decode(one.message) for one in tapes[call].said]


def message(**params: object) -> bytes:
    """A request."""
    return json.encode({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})


async def test_messages_are_kept_in_order_with_their_side_and_way() -> None:
    """V4: as they were said, and when."""
    async with engine_of(works) as engine:
        tapes = engine.record_wire()
        tapes.add("a", "caller", "in", message(name="tool"))
        tapes.add("a", "upstream", "out", message(name="inner"))
        assert [(one.side, one.way) for one in tapes["a"].said] == [("caller", "in"), ("upstream", "out")]
        assert said(tapes, "a")[0] == json.decode(message(name="tool"))
        assert tapes["a"].said[0].at == engine.clock.now() and list(tapes["b"].said) == []


async def test_a_tape_has_an_end() -> None:
    """V4: so many messages, so many bytes, so many calls; the oldest go, and are counted."""
    async with engine_of(works) as engine:
        tapes = engine.record_wire()
        for n in range(MAX_MESSAGES + 5):
            tapes.add("many", "caller", "out", message(n=n))
        assert (len(tapes["many"].said), tapes["many"].left_out) == (MAX_MESSAGES, 5)
        for _ in range(10):
            tapes.add("long", "caller", "out", message(text="x" * (MAX_MESSAGE_BYTES - 200)))
        assert tapes["long"].size <= MAX_BYTES and tapes["long"].left_out > 0
        tapes.add("long", "caller", "out", b'"%s"' % (b"x" * MAX_MESSAGE_BYTES))
        assert said(tapes, "long")[-1] == {"omitted_bytes": MAX_MESSAGE_BYTES + 2}
        for n in range(MAX_CALLS):
            tapes.add(f"c{n}", "caller", "in", message())
        assert list(tapes["many"].said) == [] and tapes["c0"].said


def _submit(engine: Engine) -> str:
    return engine.submit(Submission("tool", Raw(b'{"pin": "0000"}'))).call.id


async def test_no_secret_is_on_a_tape() -> None:
    """S4, V4: those of any name or shape, and those that the tool declares."""
    bench: Bench = Declaring()
    bench.add(works)
    async with offering(bench) as engine:
        tapes, call = engine.record_wire(), _submit(engine)
        tapes.add(
            call, "caller", "in", message(arguments={"pin": "0000", "n": 1}, _meta={"progressToken": 7})
        )
        tapes.add(call, "upstream", "in", b'{"result": {"content": {"password": "hunter2"}}}')
        tapes.add(call, "upstream", "in", b"no JSON: password")
        first, second, third = said(tapes, call)
        assert first == json.decode(
            message(arguments={"pin": {REDACTED_KEY: True}, "n": 1}, _meta={"progressToken": 7})
        )
        assert second == {"result": {"content": {"password": {REDACTED_KEY: True}}}}
        assert third == "no JSON: password"


async def test_an_answer_is_on_a_tape_without_what_its_question_calls_a_secret() -> None:
    """S4, V4: on either side, and in both eras."""
    schema = {"type": "object", "properties": {"pin": {"$ref": "#/$defs/pin"}}, "$defs": {"pin": PIN}}

    async def asks(run: Run) -> str:
        await run.ask(form("login", schema))
        return "done"

    async with engine_of(asks) as engine:
        live = engine.submit(Submission("tool"))
        await asked(live)
        tapes = engine.record_wire()
        content = {"pin": "0000", "n": 1}
        answer = {"action": "accept", "content": content}
        tapes.add(live.call.id, "caller", "in", message(arguments={}, inputResponses={"login": answer}))
        tapes.add(live.call.id, "upstream", "out", json.encode({"id": 1, "result": answer}))
        hidden = {"action": "accept", "content": {"pin": {REDACTED_KEY: True}, "n": 1}}
        first, second = said(tapes, live.call.id)
        assert first == json.decode(message(arguments={}, inputResponses={"login": hidden}))
        assert second == {"id": 1, "result": hidden}
