"""Codes that work once, and sessions that last: what is kept of them, and when they are over."""

import asyncio
import stat
from pathlib import Path

import pytest
from msgspec.structs import replace

from afoot.config import state_folder
from afoot.errors import CallerError, UnknownName
from afoot.serve.access.browser_sessions import (
    CODE_S,
    IDLE_S,
    MAX_CODES,
    MAX_SESSIONS,
    SESSION_S,
    BrowserSession,
    BrowserSessions,
)
from afoot.serve.access.guard import Denied, Guard, accepted_hosts
from afoot.serve.access.principal import ADMIN, CALL, OPERATOR_PRINCIPAL, Principal

CHIEF = Principal("token:chief", frozenset((CALL, ADMIN, "billing")), token="chief")


class Wall:
    """A clock that a test turns."""

    def __init__(self) -> None:
        self.time = 1000.0

    def now(self) -> float:
        """The time there."""
        return self.time


@pytest.fixture
def wall() -> Wall:
    """A clock."""
    return Wall()


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> state_folder.StoredList[BrowserSession]:
    """The file of a state folder."""
    monkeypatch.setenv("AFOOT_HOME", str(tmp_path / "home"))
    return state_folder.StoredList("sessions.json", BrowserSession)


@pytest.fixture
def admission(shelf: state_folder.StoredList[BrowserSession], wall: Wall) -> BrowserSessions:
    """Codes and sessions in a state folder."""
    return BrowserSessions(shelf, wall.now)


def let_in(admission: BrowserSessions) -> tuple[str, BrowserSession]:
    """A browser that was just logged in."""
    return admission.log_in(admission.code(OPERATOR_PRINCIPAL)[0], "Browser/1")


def test_a_code_works_once(admission: BrowserSessions) -> None:
    """S1: the second use is refused and explained."""
    code, _ = admission.code(OPERATOR_PRINCIPAL)
    token, session = admission.log_in(code)
    assert admission.find(token.encode()) == session
    with pytest.raises(CallerError, match="used already; `afoot console`"):
        admission.log_in(code)
    assert len(admission.sessions()) == 1


def test_a_code_works_for_ten_minutes(admission: BrowserSessions, wall: Wall) -> None:
    """S1: not at the tenth."""
    early, late = admission.code(OPERATOR_PRINCIPAL)[0], admission.code(OPERATOR_PRINCIPAL)[0]
    wall.time += CODE_S - 0.1
    admission.log_in(early)
    wall.time += 0.1
    with pytest.raises(CallerError, match="has expired"):
        admission.log_in(late)


@pytest.mark.parametrize("code", ["", "x", "é\ud800", "x" * 100_000])
def test_a_code_that_was_never_given_is_not_known(admission: BrowserSessions, code: str) -> None:
    """S1: however odd."""
    admission.code(OPERATOR_PRINCIPAL)
    with pytest.raises(CallerError, match="not known here"):
        admission.log_in(code)


def test_the_oldest_code_and_session_make_room(admission: BrowserSessions) -> None:
    """House: nothing grows without end."""
    codes = [admission.code(OPERATOR_PRINCIPAL)[0] for _ in range(MAX_CODES + 1)]
    with pytest.raises(CallerError, match="not known"):
        admission.log_in(codes[0])
    first = admission.log_in(codes[1])[1]
    later = [let_in(admission)[1].id for _ in range(MAX_SESSIONS)]
    assert [one.id for one in admission.sessions()] == later and not admission.keep(first.id)


def test_a_session_lasts_thirty_days_and_over_a_restart(
    admission: BrowserSessions, shelf: state_folder.StoredList[BrowserSession], wall: Wall
) -> None:
    """S1: sessions are kept, and expire."""
    token, session = let_in(admission)
    again = BrowserSessions(state_folder.StoredList("sessions.json", BrowserSession), wall.now)
    assert again.find(token.encode()) == session
    wall.time += SESSION_S
    assert again.find(token.encode()) is None and not again.keep(session.id)


def test_the_file_has_no_token_and_is_for_its_owner(admission: BrowserSessions) -> None:
    """S1: a digest alone is kept, 0600."""
    token, session = let_in(admission)
    file = state_folder.home() / "sessions.json"
    assert token not in file.read_text() and session.digest in file.read_text()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_digest_is_no_token(admission: BrowserSessions) -> None:
    """S1: whoever reads the file learns nothing that opens."""
    _, session = let_in(admission)
    assert admission.find(session.digest.encode()) is None
    assert admission.find(session.id.encode()) is None and admission.find(b"") is None


def test_a_revoked_session_is_over_in_every_process(admission: BrowserSessions, wall: Wall) -> None:
    """S1: also in one that has read the file before."""
    token, session = let_in(admission)
    other = BrowserSessions(state_folder.StoredList("sessions.json", BrowserSession), wall.now)
    assert other.keep(session.id)
    assert admission.revoke(session.id) == session
    assert other.find(token.encode()) is None
    with pytest.raises(UnknownName):
        admission.revoke(session.id)


def test_a_session_that_cannot_be_kept_leaves_its_code_good(admission: BrowserSessions) -> None:
    """S1: nobody is locked out by a full disk."""
    code, _ = admission.code(OPERATOR_PRINCIPAL)
    file = state_folder.home() / "sessions.json"
    file.mkdir(parents=True)
    with pytest.raises(CallerError, match="sessions.json"):
        admission.log_in(code)
    file.rmdir()
    admission.log_in(code)


def test_the_guard_takes_a_session_for_the_api_alone(admission: BrowserSessions) -> None:
    """S1, S3: not for `/mcp` where that needs a token, and not for a bridge."""
    token, session = let_in(admission)
    guard = Guard(accepted_hosts(23668, []), frozenset(), "mcp", "operator", admission)
    named = [(b"host", b"127.0.0.1:23668"), (b"authorization", f"Bearer {token}".encode())]
    assert asyncio.run(guard.identify_operator({"headers": named})).session == session.id
    for check in (guard.check_mcp, guard.bridge_caller):
        with pytest.raises(Denied):
            check({"headers": [*named, (b"afoot-caller", b"connect-0123456789abcdef")]})
    admission.revoke(session.id)
    with pytest.raises(Denied):
        asyncio.run(guard.identify_operator({"headers": named}))


def test_a_session_ends_with_the_token_that_asked_for_it(
    shelf: state_folder.StoredList[BrowserSession], wall: Wall
) -> None:
    """S2: whoever takes a token back takes all of it back; also what a browser it let in has let in."""
    good = {"chief"}
    admission = BrowserSessions(shelf, wall.now, good.__contains__)
    own, mine = let_in(admission)
    first, session = admission.log_in(admission.code(CHIEF)[0])
    assert admission.find(first.encode()) == session and session.token == "chief"
    guard = Guard(accepted_hosts(23668, []), frozenset(), "", "", admission)
    named = [(b"host", b"127.0.0.1:23668"), (b"authorization", f"Bearer {first}".encode())]
    who = asyncio.run(guard.identify_operator({"headers": named}))
    second, _ = admission.log_in(admission.code(who)[0])
    good.clear()
    assert admission.find(first.encode()) is admission.find(second.encode()) is None
    assert admission.find(own.encode()) == mine and admission.sessions() == [mine]


@pytest.mark.parametrize(
    "asker", [OPERATOR_PRINCIPAL, CHIEF, replace(CHIEF, token="", claims=b'{"org":"acme"}')]
)
def test_a_session_may_do_what_its_asker_may(
    admission: BrowserSessions, wall: Wall, asker: Principal
) -> None:
    """S2: no more and no less, as the same caller; also after a restart, and if it is passed on."""
    _, session = admission.log_in(admission.code(asker)[0])
    assert replace(session.principal, session="") == asker
    _, passed_on = admission.log_in(admission.code(session.principal)[0])
    assert replace(passed_on.principal, session="") == asker
    again = BrowserSessions(state_folder.StoredList("sessions.json", BrowserSession), wall.now)
    assert again.sessions() == [session, passed_on]


def test_a_session_whose_asker_was_not_stored_is_over(
    shelf: state_folder.StoredList[BrowserSession], admission: BrowserSessions, wall: Wall
) -> None:
    """S2: nobody can say any more what it may do."""
    token, session = let_in(admission)
    shelf.write([replace(session, caller="")])
    again = BrowserSessions(state_folder.StoredList("sessions.json", BrowserSession), wall.now)
    assert again.find(token.encode()) is None and again.sessions() == []


def test_a_session_ends_with_the_access_token_that_asked_for_it(
    admission: BrowserSessions, wall: Wall
) -> None:
    """S2: an issuer's word is for minutes; the operator's for thirty days, however often it is passed on."""
    _, short = admission.log_in(admission.code(replace(OPERATOR_PRINCIPAL, until=wall.time + 60))[0])
    _, shorter = admission.log_in(admission.code(short.principal)[0])
    assert short.expires == shorter.expires == wall.time + 60
    _, first = let_in(admission)
    wall.time += 59
    _, second = admission.log_in(admission.code(first.principal)[0])
    assert second.expires == wall.time + SESSION_S
    wall.time += 1
    assert admission.sessions() == [first, second]


def test_a_link_counts_no_longer_than_what_asked_for_it(
    shelf: state_folder.StoredList[BrowserSession], wall: Wall
) -> None:
    """S2: whoever follows it is told so, and is given nothing that would open nothing."""
    good = {"chief"}
    admission = BrowserSessions(shelf, wall.now, good.__contains__)
    revoked, late = (
        admission.code(CHIEF)[0],
        admission.code(replace(OPERATOR_PRINCIPAL, until=wall.time + 60))[0],
    )
    good.clear()
    wall.time += 60
    with pytest.raises(CallerError, match="counts no more"):
        admission.log_in(revoked)
    with pytest.raises(CallerError, match="has expired"):
        admission.log_in(late)
    assert admission.sessions() == []


def test_a_session_ends_after_a_day_without_use(admission: BrowserSessions, wall: Wall) -> None:
    """S6: each request makes it last for another day."""
    token, _ = let_in(admission)
    wall.time += IDLE_S - 1
    assert admission.find(token.encode()) is not None
    wall.time += IDLE_S - 1
    assert admission.find(token.encode()) is not None
    wall.time += IDLE_S
    assert admission.find(token.encode()) is None and admission.sessions() == []


def test_an_open_stream_is_a_use_of_its_session(admission: BrowserSessions, wall: Wall) -> None:
    """S6: a console that is left open stays open."""
    _, session = let_in(admission)
    for _ in range(50):
        wall.time += IDLE_S / 24
        assert admission.keep(session.id)


def test_the_last_use_outlives_the_gateway(admission: BrowserSessions, wall: Wall) -> None:
    """S6: to the hour; a restart neither ends a session nor lets an unused one last."""

    def restarted() -> BrowserSessions:
        return BrowserSessions(state_folder.StoredList("sessions.json", BrowserSession), wall.now)

    token, _ = let_in(admission)
    wall.time += IDLE_S - 1
    assert admission.find(token.encode()) is not None
    wall.time += IDLE_S - 1
    assert restarted().find(token.encode()) is not None
    wall.time += IDLE_S
    assert restarted().find(token.encode()) is None
