"""The hosts over the operator's API: the console's first page says how each is connected."""

from afoot.hosts.known_hosts import HOSTS
from tests.serve.api_client import Api


def test_every_host_has_the_command_that_connects_it(api: Api) -> None:
    """V1: one line for each host; those on this machine come first, and nothing of their files is told."""
    found = api.get("/api/hosts").body["hosts"]
    assert {one["name"]: one["command"] for one in found} == {name: f"afoot install {name}" for name in HOSTS}
    assert all(set(one) == {"name", "title", "state", "command"} for one in found)
    is_absent = [one["state"] == "absent" for one in found]
    assert is_absent == sorted(is_absent)


def test_hosts_are_told_to_nobody_without_a_token(api: Api) -> None:
    """S1: which programs are on the machine is no matter of everybody."""
    assert api.get("/api/hosts", authorization="").status == 401
