"""Named tokens: made once, known by their secret, over when they are revoked or have expired."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from afoot.config import state_folder
from afoot.errors import CallerError, UnknownName
from afoot.serve.access.principal import SCOPES, Denied
from afoot.serve.access.tokens import SECRET_PREFIX, NamedToken, NamedTokens


class Wall:
    """A clock that a test turns."""

    time = 1000.0

    def now(self) -> float:
        """The time there."""
        return self.time


@pytest.fixture
def wall() -> Wall:
    """A clock."""
    return Wall()


@pytest.fixture
def tokens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wall: Wall) -> NamedTokens:
    """Tokens in a state folder of their own."""
    monkeypatch.setenv("AFOOT_HOME", str(tmp_path))
    return NamedTokens(state_folder.StoredList("tokens.json", NamedToken), wall.now)


def test_a_secret_tells_who_it_is_and_what_they_may(tokens: NamedTokens) -> None:
    """S3: the name that it was made with, and no scope more."""
    secret, token = tokens.add("ada", ["watch", "call"])
    found = tokens.find(secret.encode())
    assert found is not None and secret.startswith(SECRET_PREFIX)
    assert (found.caller, found.scopes) == ("token:ada", {"call", "watch"})
    assert token.scopes == ["call", "watch"]


def test_the_secret_is_not_kept(tokens: NamedTokens, tmp_path: Path) -> None:
    """S4: whoever reads the file cannot use what is in it; and nobody else may read it."""
    secret, _ = tokens.add("ada", ["call"])
    file = tmp_path / "tokens.json"
    assert secret not in file.read_text() and secret[len(SECRET_PREFIX) :] not in file.read_text()
    assert file.stat().st_mode & 0o077 == 0


def test_a_token_that_has_expired_says_so(tokens: NamedTokens, wall: Wall) -> None:
    """S2: not that it is unknown, which would send its owner looking elsewhere."""
    secret, _ = tokens.add("ada", ["call"], 60.0)
    wall.time += 59
    found = tokens.find(secret.encode())
    assert found is not None and tokens.end_reason(found) == ""
    wall.time += 1
    with pytest.raises(Denied, match="'ada' has expired") as denied:
        tokens.find(secret.encode())
    assert denied.value.status == 401 and "'ada' has expired" in tokens.end_reason(found)


def test_a_revoked_token_is_unknown_also_where_another_process_did_it(tokens: NamedTokens) -> None:
    """S2: the command line revokes, the gateway sees it."""
    secret, token = tokens.add("ada", ["call"])
    found = tokens.find(secret.encode())
    assert found is not None
    other = NamedTokens(state_folder.StoredList("tokens.json", NamedToken), lambda: 0.0)
    assert other.revoke(token.id).name == "ada"
    assert tokens.find(secret.encode()) is None and tokens.end_reason(found) == "the token 'ada' was revoked"
    with pytest.raises(UnknownName):
        tokens.revoke("ada")


@pytest.mark.parametrize("name", ["", "a b", "-a", "a" * 65, "ä", "a\n", "../x"])
def test_a_name_that_could_be_mistaken_is_refused(tokens: NamedTokens, name: str) -> None:
    """S3: a caller's name stands in logs and lists."""
    with pytest.raises(CallerError, match="a name has"):
        tokens.add(name, ["call"])


@pytest.mark.parametrize("scopes", [[], ["wacht"], ["call", "admins"], ["call", "a b"]])
def test_a_scope_that_there_is_not_is_refused(tokens: NamedTokens, scopes: list[str]) -> None:
    """S2: and those that there are are named."""
    with pytest.raises(CallerError, match=", ".join(SCOPES)):
        tokens.add("ada", scopes)


def test_a_scope_of_tools_opens_nothing_of_the_gateway(tokens: NamedTokens) -> None:
    """F1, S2: it stands behind those of the gateway."""
    _, token = tokens.add("ada", ["billing:refund", "answer", "call"])
    assert token.scopes == ["call", "answer", "billing:refund"]


def test_two_cannot_have_one_name(tokens: NamedTokens) -> None:
    """S3: a name is who it is."""
    tokens.add("ada", ["call"])
    with pytest.raises(CallerError, match="exists"):
        tokens.add("ada", ["admin"])


def test_the_name_of_a_revoked_token_is_not_given_again(tokens: NamedTokens) -> None:
    """S3: a name is a caller, who still has calls and allowlist entries; also for another process."""
    tokens.add("ada", ["call"])
    tokens.revoke("ada")
    other = NamedTokens(state_folder.StoredList("tokens.json", NamedToken), lambda: 1000.0)
    for one in (tokens, other):
        with pytest.raises(CallerError, match="'ada' was used .* `--renew` .* another name"):
            one.add("ada", ["call"])
    assert tokens.all() == other.all() == []


@pytest.mark.parametrize("is_revoked", [False, True])
def test_the_same_person_gets_a_new_secret_for_its_name(tokens: NamedTokens, is_revoked: bool) -> None:
    """S2, S3: the scopes are the new ones, and nothing is left of the old token."""
    first, old = tokens.add("ada", ["call", "admin"])
    found = tokens.find(first.encode())
    if is_revoked:
        tokens.revoke("ada")
    second, new = tokens.add("ada", ["call"], is_renewed=True)
    assert tokens.find(first.encode()) is None and not tokens.is_valid(old.id) and tokens.all() == [new]
    assert found is not None and tokens.end_reason(found) == "the token 'ada' was revoked"
    renewed = tokens.find(second.encode())
    assert renewed is not None and (renewed.caller, renewed.scopes) == ("token:ada", {"call"})


def test_a_name_that_was_never_used_is_not_renewed(tokens: NamedTokens) -> None:
    """S3: a typing mistake makes no second person."""
    tokens.add("ada", ["call"])
    with pytest.raises(UnknownName, match="ada"):
        tokens.add("adda", ["call"], is_renewed=True)


def test_nothing_that_opens_anything_is_left_of_a_revoked_token(tokens: NamedTokens, tmp_path: Path) -> None:
    """S4: its name is kept, its digest is not."""
    _, token = tokens.add("ada", ["call"])
    tokens.revoke("ada")
    kept = (tmp_path / "tokens.json").read_text()
    assert "ada" in kept and token.digest not in kept


def test_who_lacks_a_scope_is_told_which(tokens: NamedTokens) -> None:
    """S2: with what it has."""
    secret, _ = tokens.add("ada", ["call"])
    found = tokens.find(secret.encode())
    assert found is not None
    with pytest.raises(Denied, match="`admin` is needed, and token:ada has call") as denied:
        found.require_scope("admin")
    assert (denied.value.status, denied.value.scope) == (403, "admin")


def test_a_file_that_cannot_be_read_just_now_sends_nobody_away(tokens: NamedTokens, tmp_path: Path) -> None:
    """S2: who is there stays until it can be looked at again; nobody new comes in."""
    secret, _ = tokens.add("ada", ["call"])
    found = tokens.find(secret.encode())
    assert found is not None
    (tmp_path / "tokens.json").write_text("half a fi")
    assert tokens.end_reason(found) == ""
    with pytest.raises(CallerError, match="tokens.json"):
        tokens.find(secret.encode())


@pytest.mark.parametrize("lasts_s", [0.0, -1.0, float("nan"), float("inf")])
def test_a_time_that_is_none_makes_no_token(tokens: NamedTokens, lasts_s: float) -> None:
    """S2: least of all one that never ends."""
    with pytest.raises(CallerError, match="over 0"):
        tokens.add("ada", ["call"], lasts_s)
    assert tokens.all() == []


def test_tokens_that_are_made_at_the_same_time_are_all_kept(tokens: NamedTokens) -> None:
    """S2: a secret that was printed counts, and what was revoked stays so."""
    tokens.add("old", ["call"])

    def change(number: int) -> None:
        other = NamedTokens(state_folder.StoredList("tokens.json", NamedToken), lambda: 1000.0)
        other.add(f"t{number}", ["call"])
        if number == 3:
            other.revoke("old")

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(change, range(40)))
    assert {one.name for one in tokens.all()} == {f"t{number}" for number in range(40)}
