"""Approval from end to end: official clients of both eras are asked, and the operator beside them."""

import asyncio
from collections.abc import Callable, Iterator

import mcp_types as types
import pytest
from mcp import Client

from tests.e2e.gateway import Gateway, serving, until
from tests.e2e.official_client import ERAS, PERSON_S, Peer, Peers, accept, failure, text
from tests.serve.api_client import Api


@pytest.fixture(params=[(transport, era) for transport in ("http", "stdio") for era in ERAS], ids=" ".join)
def peer(request: pytest.FixtureRequest, clients: Peers) -> Peer:
    """One of the four."""
    transport, era = request.param
    return clients(transport, era)


@pytest.fixture
def api(gateway: Gateway) -> Api:
    """The operator."""
    return Api(gateway)


def test_run_runs_it(peer: Peer, fresh: Callable[[], str]) -> None:
    """A2, A5: the form shows tool and arguments; run is run, once."""
    tag = fresh()
    peer.reply = lambda message: accept(decision="run")
    assert text(peer.call("wipe", tag=tag, what="the disk")) == "wiped the disk"
    assert len(peer.asked) == 1 and "local/wipe" in peer.asked[0] and "the disk" in peer.asked[0]
    assert peer.gateway.marks(tag) == ["wiped the disk"]


@pytest.mark.parametrize("how", ["skip", "decline", "reject"])
def test_a_no_runs_nothing_and_the_model_is_told(peer: Peer, how: str, fresh: Callable[[], str]) -> None:
    """A2, A5, A8: skip, decline, and reject, after which a second form asks what to do instead."""
    tag = fresh()

    def reply(message: str) -> types.ElicitResult:
        if how == "decline":
            return types.ElicitResult(action="decline")
        return accept(instead="use the bin") if "instead" in message else accept(decision=how)

    peer.reply = reply
    result = peer.call("wipe", tag=tag)
    assert failure(result)["category"] == "refused"
    assert ("use the bin" if how == "reject" else "skip") in text(result)
    assert len(peer.asked) == (2 if how == "reject" else 1)
    assert peer.gateway.marks(tag) == []


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("answer", [types.ElicitResult(action="decline"), accept(decision="run")])
def test_a_host_that_answers_every_form_by_itself_is_no_person(
    era: str, answer: types.ElicitResult, unwatched: Gateway, fresh: Callable[[], str]
) -> None:
    """A8, S6: as `codex exec` does. No operator is there, so the call is refused, and the text says why."""

    async def reply(context: object, params: types.ElicitRequestParams) -> types.ElicitResult:
        return answer

    async def call() -> types.CallToolResult:
        mode = "legacy" if era == "legacy" else "2026-07-28"
        async with Client(unwatched.url, mode=mode, elicitation_callback=reply) as client:
            for _ in range(20):  # on a machine that is busy, an answer may take as long as a person's
                tag = fresh()
                result = await asyncio.wait_for(client.call_tool("wipe", {"tag": tag}), 10)
                if result.is_error and failure(result)["code"] != "skipped":
                    assert unwatched.marks(tag) == []
                    break
            return result

    result = asyncio.run(call())
    assert failure(result)["code"] == "unanswerable"
    assert "the client answered within 50 ms, without asking a person" in text(result)
    console = unwatched.url.removesuffix("mcp")
    assert f"in the console at {console} or with `afoot watch`" in text(result)


def test_a_tool_that_another_calls_asks_too(peer: Peer, fresh: Callable[[], str]) -> None:
    """A5, P8: through the call above, by the same client."""
    tag = fresh()
    peer.reply = lambda message: accept(decision="run")
    assert "wiped everything" in text(peer.call("wipe_below", tag=tag))
    assert len(peer.asked) == 1 and "local/wipe" in peer.asked[0]
    assert peer.gateway.marks(tag) == ["ran", "wiped everything"]


@pytest.mark.parametrize("era", ERAS)
def test_a_cancelled_form_goes_to_the_operator(
    era: str, clients: Peers, api: Api, fresh: Callable[[], str]
) -> None:
    """A5, A3: who answers over the API; everybody sees how it was approved."""
    peer, tag = clients("http", era), fresh()
    peer.reply = lambda message: types.ElicitResult(action="cancel")

    def decide() -> str:
        asked = until(lambda: mine(api, tag) or {}, "a question to the operator")
        answered = api.post(f"/api/questions/{asked['id']}/answer", {"content": {"decision": "run"}})
        assert answered.status == 200
        return str(asked["call"])

    async def both() -> tuple[types.CallToolResult, str]:
        api.get("/api/questions")  # the operator is there
        return await asyncio.gather(peer.client.call_tool("wipe", {"tag": tag}), asyncio.to_thread(decide))

    result, call = peer.run(both)
    assert text(result) == "wiped everything"
    assert api.ended(call)["approved"] == "user"


def mine(api: Api, tag: str) -> dict[str, object] | None:
    """The operator's question of the call with this tag."""
    asked = api.get("/api/questions").body["questions"]
    return next((one for one in asked if one["to"] == "operator" and one["arguments"]["tag"] == tag), None)


@pytest.fixture(scope="module")
def unwatched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A gateway that no operator has looked at."""
    with serving(tmp_path_factory.mktemp("unwatched")) as started:
        yield started


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A gateway on which no other test may be allowed anything."""
    with serving(tmp_path_factory.mktemp("alone")) as started:
        yield started


@pytest.mark.parametrize("era", ERAS)
def test_where_nobody_can_answer_it_is_refused_at_once(
    era: str, unwatched: Gateway, fresh: Callable[[], str]
) -> None:
    """A1, A8: a client without elicitation, and no operator. The log names the setting, the text does not."""
    tag = fresh()

    async def call() -> types.CallToolResult:
        mode = "legacy" if era == "legacy" else "2026-07-28"
        async with Client(unwatched.url, mode=mode) as client:
            return await asyncio.wait_for(client.call_tool("wipe", {"tag": tag}), 10)

    result = asyncio.run(call())
    assert failure(result)["code"] == "unanswerable"
    key = 'approval = "auto" in [tools."local/wipe"]'
    assert key not in str(result) and key in unwatched.said()
    assert unwatched.marks(tag) == []


def test_always_is_asked_once_on_this_connection(alone: Gateway, fresh: Callable[[], str]) -> None:
    """A2, A4: and revoking it has it asked again."""
    tag, asked = fresh(), list[str]()

    async def answer(context: object, params: types.ElicitRequestParams) -> types.ElicitResult:
        asked.append(params.message)
        await asyncio.sleep(PERSON_S)
        return accept(decision="always", **{"for": "ever"})

    async def thrice() -> None:
        async with Client(alone.url, mode="legacy", elicitation_callback=answer) as client:
            for times in (1, 1, 2):
                await asyncio.wait_for(client.call_tool("wipe", {"tag": tag}), 10)
                assert len(asked) == times
                if len(alone.marks(tag)) == 2:
                    api = Api(alone)
                    [one] = api.get("/api/allow").body["allowed"]
                    assert one["caller"]  # a caller's word is for its connection
                    assert api.send("DELETE", f"/api/allow/{one['id']}", None, {}).status == 200

    asyncio.run(thrice())
    [left] = Api(alone).get("/api/allow").body["allowed"]
    Api(alone).send("DELETE", f"/api/allow/{left['id']}", None, {})
    assert not (alone.folder / "home" / "allow.json").exists()


def test_always_of_a_client_without_a_name_is_for_one_call(alone: Gateway, fresh: Callable[[], str]) -> None:
    """S6, A5: no other program on the machine runs by the word of this one, and no person is named for it."""
    tag, asked = fresh(), list[str]()

    async def answer(context: object, params: types.ElicitRequestParams) -> types.ElicitResult:
        asked.append(params.message)
        await asyncio.sleep(PERSON_S)
        return accept(decision="always", **{"for": "ever"})

    async def twice() -> None:
        async with Client(alone.url, mode="2026-07-28", elicitation_callback=answer) as client:
            for times in (1, 2):
                await asyncio.wait_for(client.call_tool("wipe", {"tag": tag}), 10)
                assert len(asked) == times

    asyncio.run(twice())
    api = Api(alone)
    assert api.get("/api/allow").body["allowed"] == []
    assert api.get("/api/calls?limit=1").body["calls"][0]["approved"] == "caller"
