"""Secrets reach the tool, and nothing that is kept or shown."""

import asyncio
from contextlib import suppress

import pytest
from msgspec import Raw, json

from afoot.core.call import Call
from afoot.core.facts import Amended, Answer, Answered, Logged, Opened
from afoot.core.ports import Batch, CallQuery, Run, Tool, Work
from afoot.core.redaction import REDACTED_KEY, REDACTED_TEXT, RedactionRules, Redactor
from afoot.engine.admission import Slots
from afoot.engine.approval.policy import ApprovalPolicy
from afoot.engine.catalog import Catalog, EffectiveSettings
from afoot.engine.engine import Engine, Submission
from afoot.engine.recovery import load_call, recover
from afoot.errors import AfootError, RunnerDied, ToolError
from afoot.store.memory import MemoryJournal
from tests.engine.approval.reviewers import asked, asking, says, settled, told
from tests.engine.fake_engine import Bench, engine_of, facts, form, offering, over, text

HIDDEN = {REDACTED_KEY: True}
SECRET = Submission("tool", Raw(b'{"user": "me", "password": "hunter2"}'), "session:1", can_ask=True)
PIN = {"type": "object", "properties": {"pin": {"format": "password"}}}


def kept(arguments: Raw) -> object:
    """Arguments as they are kept."""
    return json.decode(arguments)


async def test_the_tool_gets_its_secrets_and_the_history_does_not() -> None:
    """S4: what is kept has a mark in their place; other arguments are the very same bytes."""
    bench = Bench()

    async def body(run: Run) -> str:
        return bench.prepared[-1].decode()

    bench.add(body)
    async with offering(bench) as engine:
        live = await over(engine, engine.submit(SECRET))
        plain = await over(engine, engine.submit(Submission("tool", Raw(b'{ "user" : "me" }'))))
        entries = await engine.journal.facts(live.call.id)
        assert b"hunter2" not in json.encode(entries[0].fact)
        assert await engine.journal.find(CallQuery(text="hunter2")) == []
    assert live.call.end is not None and live.call.end.result == text(bench.prepared[0].decode())
    assert bench.prepared[0] == bytes(SECRET.arguments) == bytes(live.arguments)
    assert kept(live.call.opened.arguments) == {"user": "me", "password": HIDDEN}
    assert bytes(plain.call.opened.arguments) == b'{ "user" : "me" }'


async def test_the_rules_of_the_settings_count() -> None:
    """S4: names that somebody has set, and those that are none after all."""
    terms = EffectiveSettings(redactor=Redactor(RedactionRules(["user"], ["password"])))
    bench = Bench()

    async def body(run: Run) -> str:
        return ""

    bench.add(body)
    async with offering(bench, terms=terms) as engine:
        live = await over(engine, engine.submit(SECRET))
    assert kept(live.call.opened.arguments) == {"user": HIDDEN, "password": "hunter2"}


class Declaring(Bench):
    """A bench whose tools call one of their arguments a secret."""

    def tools(self) -> list[Tool]:
        schema = b'{"name":"tool","inputSchema":{"properties":{"pin":{"type":"string","writeOnly":true}}}}'
        return [Tool("tool", "bench", Raw(schema), digest="d")]


async def test_a_tool_may_declare_what_is_secret() -> None:
    """S4: by its schema, whatever the name."""

    async def body(run: Run) -> str:
        return ""

    bench = Declaring()
    bench.add(body)
    async with offering(bench) as engine:
        live = await over(engine, engine.submit(Submission("tool", Raw(b'{"pin": "0000", "n": 1}'))))
    assert bench.prepared == [b'{"pin": "0000", "n": 1}']
    assert kept(live.call.opened.arguments) == {"pin": HIDDEN, "n": 1}


async def test_what_a_reviewer_sees_and_what_is_remembered_has_no_secrets() -> None:
    """S4, A6: an approval for exactly these arguments holds for their secrets, too, and for no others."""
    policy = ApprovalPolicy()
    async with asking(policy) as engine:
        live = engine.submit(SECRET)
        assert "hunter2" not in live.call.questions[await asked(live)].message
        await settled(engine, live, says("always", "operator", scope="arguments", for_="ever"))
        assert told(live)[0] == "ok"
        assert "hunter2" not in policy.entries[0].shown and REDACTED_KEY in policy.entries[0].shown
        changed = policy.past.changed(live.tool, live.call.arguments)
        assert changed is not None and changed.arguments is None
        same = await over(engine, engine.submit(SECRET))
        assert (told(same)[0], same.call.approved) == ("ok", "allowlist")
        other = Submission("tool", Raw(b'{"user": "me", "password": "other"}'), "session:1", can_ask=True)
        assert await asked(engine.submit(other))


class Hook:
    """A hook that looks, and changes one thing."""

    def __init__(self) -> None:
        self.seen: list[bytes] = []

    async def before(self, call: Call, tool: Tool) -> Raw | None:
        """Add a field."""
        self.seen.append(bytes(call.arguments))
        return Raw(json.encode({**json.decode(call.arguments), "token": "from the hook"}))


async def test_a_hook_sees_what_will_run_and_what_it_adds_is_not_kept() -> None:
    """S4, K1: it could not judge, or change, what it does not see."""
    bench, hook = Bench(), Hook()

    async def body(run: Run) -> str:
        return ""

    bench.add(body)
    async with offering(bench) as engine:
        engine.hooks = hook
        live = await over(engine, engine.submit(SECRET))
    assert hook.seen == [bytes(SECRET.arguments)]
    assert json.decode(bench.prepared[-1])["token"] == "from the hook"
    assert kept(facts(live, Amended)[0].arguments) == {"user": "me", "password": HIDDEN, "token": HIDDEN}
    assert kept(facts(live, Opened)[0].arguments) == {"user": "me", "password": HIDDEN}


async def test_an_answer_reaches_the_tool_and_is_kept_without_its_secrets() -> None:
    """S4: also when what ran the tool died, and the next attempt is not asked again."""
    heard = list[str]()

    async def body(run: Run) -> str:
        answer = await run.ask(form("login", PIN))
        heard.append(bytes(answer.content).decode())
        if run.attempt == 1:
            raise RunnerDied("it died", began=True)
        return "done"

    async with engine_of(body, read_only=True) as engine:
        live = engine.submit(Submission("tool"))
        engine.answer(await asked(live), Answer("accept", Raw(b'{"pin":"0000","password":"hunter2","n":1}')))
        await over(engine, live)
    assert told(live)[0] == "ok"
    assert heard == ['{"pin":"0000","password":"hunter2","n":1}'] * 2
    first = facts(live, Answered)[0].answer
    assert kept(first.content) == {"pin": HIDDEN, "password": HIDDEN, "n": 1}


async def test_lines_and_crashes_are_kept_without_secrets() -> None:
    """S4, E3: what a tool prints, and what it says when it crashes."""

    async def body(run: Run) -> str:
        run.log("login with password=hunter2", "info", "")
        raise ValueError("token: hunter2")

    async with engine_of(body) as engine:
        live = await over(engine, engine.submit(Submission("tool")))
    assert facts(live, Logged)[0].text == f"login with password={REDACTED_TEXT}"
    assert live.call.end is not None and (failure := live.call.end.failure) is not None
    assert "hunter2" not in failure.message and failure.message.endswith(f"token: {REDACTED_TEXT}")
    assert f"ValueError: token: {REDACTED_TEXT}" in failure.trace


@pytest.mark.parametrize("secret", [True, False])
async def test_what_was_not_kept_cannot_be_run_again_after_a_crash(secret: bool) -> None:
    """S4, H4: it ends as lost, and says why; without a secret it runs again."""
    body = _asks
    arguments = Raw(b'{"token": "hunter2"}' if secret else b'{"plain": 1}')
    journal = MemoryJournal()
    async with engine_of(body, read_only=True) as engine:
        live = engine.submit(Submission("tool", arguments))
        await asyncio.sleep(1)
        journal.write(Batch(entries=await engine.journal.facts(live.call.id)))
    bench, catalog = Bench(), Catalog()
    bench.add(body, read_only=True)
    catalog.put(bench)
    async with Engine(journal, catalog, Slots()) as engine:
        await recover(engine)
        again = await load_call(engine, live.call.id)
        if secret:
            outcome, message = told(again)
            assert outcome == "lost" and "secrets in its arguments are not kept" in message
            assert bench.prepared == []
        else:
            engine.answer(f"{live.call.id}.1", Answer("accept", Raw(b"{}")))
            assert told(await over(engine, again))[0] == "ok"


async def test_an_answer_that_was_not_kept_is_asked_for_again_after_a_crash() -> None:
    """S4, H4: a mark is no answer."""
    journal = MemoryJournal()
    async with engine_of(_asks_twice, read_only=True) as engine:
        live = engine.submit(Submission("tool"))
        engine.answer(await asked(live), Answer("accept", Raw(b'{"password":"hunter2"}')))
        await asyncio.sleep(1)
        journal.write(Batch(entries=await engine.journal.facts(live.call.id)))
    bench, catalog = Bench(), Catalog()
    bench.add(_asks_twice, read_only=True)
    catalog.put(bench)
    async with Engine(journal, catalog, Slots()) as engine:
        await recover(engine)
        again = await load_call(engine, live.call.id)
        engine.answer(f"{live.call.id}.2", Answer("accept", Raw(b'{"n":2}')))
        asked_now = await asked(again)
        assert again.call.questions[asked_now].key == "first"
        engine.answer(asked_now, Answer("accept", Raw(b'{"password":"hunter3"}')))
        await over(engine, again)
    assert again.call.end is not None and again.call.end.result == text('{"password":"hunter3"} {"n":2}')


async def _asks(run: Run) -> str:
    await run.ask(form("first"))
    return "done"


async def _asks_twice(run: Run) -> str:
    first = await run.ask(form("first"))
    second = await run.ask(form("second"))
    return f"{bytes(first.content).decode()} {bytes(second.content).decode()}"


@pytest.mark.parametrize("kind", [ValueError, ToolError])
async def test_what_is_said_of_a_secret_that_was_given_is_kept_without_it(kind: type[Exception]) -> None:
    """S4, E3: whatever words stand around it: in lines, in errors, in traces."""

    async def body(run: Run) -> str:
        run.log("trying hunter2 for 4711", "info", "")
        raise kind("hunter2 is not good enough")

    async with engine_of(body) as engine:
        given = Raw(b'{"password": "hunter2", "secret": {"n": [4711, true, "a"]}, "plain": "good"}')
        live = await over(engine, engine.submit(Submission("tool", given)))
    assert facts(live, Logged)[0].text == f"trying {REDACTED_TEXT} for {REDACTED_TEXT}"
    assert live.call.end is not None and (failure := live.call.end.failure) is not None
    assert failure.message.endswith(f"{REDACTED_TEXT} is not good enough") and "hunter2" not in failure.trace


async def test_what_is_said_of_an_answer_is_kept_and_logged_without_its_secret(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """S4, E3: also in the gateway's own log."""

    async def body(run: Run) -> str:
        answer = await run.ask(form("login", PIN))
        raise ValueError(f"no such pin: {bytes(answer.content).decode()}")

    async with engine_of(body) as engine:
        live = engine.submit(Submission("tool"))
        engine.answer(await asked(live), Answer("accept", Raw(b'{"pin":"00-00-00"}')))
        await over(engine, live)
    assert live.call.end is not None and (failure := live.call.end.failure) is not None
    for words in (failure.message, failure.trace, caplog.text):
        assert REDACTED_TEXT in words and "00-00-00" not in words
    assert "tool tool crashed" in caplog.text


async def test_a_secret_in_an_answer_that_is_not_taken_takes_the_place_of_none() -> None:
    """S4, Q3: it came second, or too late; what was said first stays hidden."""

    async def body(run: Run) -> str:
        answer = await run.ask(form("login", PIN))
        with suppress(asyncio.CancelledError):
            await run.ask(form("again", PIN))
        run.log(f"tried {bytes(answer.content).decode()}", "info", "bank")
        return "done"

    async with engine_of(body) as engine:
        live = engine.submit(Submission("tool"))
        first = await asked(live)
        engine.answer(first, Answer("accept", Raw(b'{"pin":"00-00-00"}')))
        with pytest.raises(AfootError):
            engine.answer(first, Answer("accept", Raw(b'{"pin":"11-11-11"}')))
        second = await asked(live)
        engine.cancel(live, "operator", "enough")
        with pytest.raises(AfootError):
            engine.answer(second, Answer("accept", Raw(b'{"pin":"22-22-22"}')))
        await over(engine, live)
    assert [fact.text for fact in facts(live, Logged)] == [f'tried {{"pin":"{REDACTED_TEXT}"}}']


async def test_an_authors_own_check_repeats_no_secret() -> None:
    """S4, E4: what it says of the arguments is kept without what is secret in them."""

    class Strict(Bench):
        def prepare(self, tool: str, arguments: Raw) -> Work:
            raise ToolError.validation(f"arguments.password: {json.decode(arguments)['password']} is weak")

    bench = Strict()
    bench.add(_asks)
    async with offering(bench) as engine:
        live = await over(engine, engine.submit(SECRET))
    assert told(live) == ("failed", f"arguments.password: {REDACTED_TEXT} is weak")


async def test_secrets_in_the_meta_of_a_request_reach_the_server_alone() -> None:
    """S4, U8: they are kept nowhere, and found again in what the tool logs."""
    more = Raw(b'{"_meta":{"api_key":"hunter2hunter2","a":1}}')
    seen: list[Raw] = []

    async def body(run: Run) -> str:
        seen.append(run.more)
        run.log("it was hunter2hunter2", "info", "x", Raw(b'{"data":["hunter2hunter2"]}'))
        run.log("nothing", "info", "x", Raw(b'{"later":1}'))
        return ""

    async with engine_of(body, trusted=False) as engine:
        live = await over(engine, engine.submit(Submission("tool", more=more)))
        entries = await engine.journal.facts(live.call.id)
    assert seen == [more]
    assert b"hunter2" not in json.encode([entry.fact for entry in entries])
    assert kept(live.call.opened.more) == {"_meta": {"api_key": HIDDEN, "a": 1}}
    logged = [entry.fact for entry in entries if isinstance(entry.fact, Logged)]
    assert [bytes(one.more) for one in logged] == [b"", b'{"later":1}']
