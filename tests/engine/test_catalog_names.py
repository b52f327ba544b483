"""Under which names tools are offered and found: prefixes, servers, the ambiguous and the switched off."""

import pytest
from msgspec import Raw, json

from afoot.config.settings import Server, ToolSettings
from afoot.core.ports import Tool, Work
from afoot.engine.catalog import Catalog, EffectiveSettings
from afoot.errors import Ambiguous, Refused, UnknownName

AUTO, OFF = ToolSettings(approval="auto"), ToolSettings(approval="off")


class Shelf:
    """A provider of tools that nobody runs."""

    def __init__(self, name: str, *tools: str) -> None:
        self.name = name
        self._tools = tools

    def tools(self) -> list[Tool]:
        return [Tool(one, self.name, Raw(json.encode({"name": one}))) for one in self._tools]

    def prepare(self, tool: str, arguments: Raw) -> Work:
        raise NotImplementedError

    def start(self, tool: str, caller: str) -> None:
        """Nothing to start."""


def catalog(*shelves: Shelf, terms: EffectiveSettings | None = None) -> Catalog:
    """A catalog of these."""
    made = Catalog(terms)
    for shelf in shelves:
        made.put(shelf)
    return made


def names(made: Catalog) -> list[str]:
    """What is offered."""
    return [tool.name for tool in made]


def test_names_that_are_unique_stay_as_they_are() -> None:
    """U3: a prefix is only for what collides."""
    made = catalog(Shelf("local", "sum"), Shelf("files", "read"), Shelf("mail", "send"))
    assert names(made) == ["sum", "read", "send"]
    assert all(made.get(name)[1].inner == "" for name in names(made))


def test_names_that_collide_get_the_prefix_of_their_server() -> None:
    """U3: each is found under its own; at its server it keeps its name, and a model sees the new one."""
    made = catalog(Shelf("files", "read", "list"), Shelf("mail", "read"))
    assert names(made) == ["files__read", "list", "mail__read"]
    provider, tool = made.get("mail__read")
    assert (provider.name, tool.inner, tool.server) == ("mail", "read", "mail")
    assert json.decode(tool.definition)["name"] == "mail__read"


def test_own_functions_keep_their_names() -> None:
    """U3: only the servers' get a prefix."""
    made = catalog(Shelf("files", "read"), Shelf("local", "read"))
    assert names(made) == ["files__read", "read"]
    assert made.get("read")[0].name == "local"


def test_a_prefix_goes_when_the_other_server_goes() -> None:
    """U3: the name is the plain one again."""
    made = catalog(Shelf("files", "read"), Shelf("mail", "read"))
    made.remove("mail")
    assert names(made) == ["read"]


@pytest.mark.parametrize(
    ("server", "tool", "name"),
    [
        ("my server.com", "read", "my_server_com__read"),
        ("s" * 80, "read", "s" * 23 + "_e4a44013__read"),
        ("server", "t" * 60, "server__" + "t" * 47 + "_0fa6400b"),
    ],
)
def test_a_prefixed_name_is_one_that_hosts_take(server: str, tool: str, name: str) -> None:
    """U3, U12: letters, digits, _ and -; a part that is too long is cut and gets a digest."""
    assert names(catalog(Shelf(server, tool), Shelf("local", tool)))[0] == name


def test_a_name_made_by_a_prefix_takes_no_other_tools_name() -> None:
    """U3, U12: and no other server's tool keeps a name with that prefix."""
    made = catalog(Shelf("a", "read", "b__read"), Shelf("b", "read"), Shelf("c", "b__read_2"))
    assert names(made) == ["a__read", "a__b__read", "b__read", "c__b__read_2"]
    assert made.get("b__read")[0].name == made.get("b/read")[0].name == "b"


def test_two_servers_that_look_alike_get_different_names() -> None:
    """U3, U12: what cannot stand in a name must not make two tools one, whichever server comes first."""
    one, other = Shelf("a.b", "read"), Shelf("a b", "read")
    assert names(catalog(one, other)) == ["a_b_2e7336dc__read", "a_b_c8687a08__read"]
    assert names(catalog(other, one)) == ["a_b_c8687a08__read", "a_b_2e7336dc__read"]
    assert catalog(one, other).get("a b/read")[0] is other


def test_a_tool_is_always_found_by_its_server_and_its_own_name() -> None:
    """U3: server/name, whether it has a prefix or not."""
    made = catalog(Shelf("files", "read", "list"), Shelf("mail", "read"), Shelf("local", "sum"))
    for name, meant in {"files/read": "files__read", "files/list": "list", "local/sum": "sum"}.items():
        assert made.get(name)[1].name == meant


def test_a_name_that_several_have_lists_them() -> None:
    """E5: and nothing is guessed."""
    made = catalog(Shelf("files", "read"), Shelf("mail", "read"))
    with pytest.raises(Ambiguous, match="tool 'read' may be any of: files__read, mail__read") as caught:
        made.get("read")
    assert isinstance(caught.value, UnknownName) and caught.value.nearest == ["files__read", "mail__read"]


def test_an_unknown_server_or_tool_lists_the_nearest() -> None:
    """E5: as server/name too."""
    made = catalog(Shelf("files", "read"), Shelf("mail", "send"))
    with pytest.raises(UnknownName, match="unknown server 'file'; nearest: files"):
        made.get("file/read")
    with pytest.raises(UnknownName, match="unknown tool 'files/raed'; nearest: files/read"):
        made.get("files/raed")
    both = catalog(Shelf("files", "read"), Shelf("mail", "read"))
    with pytest.raises(UnknownName, match="unknown tool 'raed'; nearest: read$"):
        both.get("raed")


def test_a_tool_that_is_off_is_invisible_and_refused() -> None:
    """A1: under each of its names, and the text says which setting does it."""
    made = catalog(Shelf("files", "read", "delete"), terms=EffectiveSettings(tools={"files/delete": OFF}))
    assert names(made) == ["read"]
    for name in ("delete", "files/delete"):
        with pytest.raises(Refused, match="tool .*delete is switched off by the operator"):
            made.get(name)


def test_a_server_may_be_off_as_a_whole() -> None:
    """A1: and one of its tools may be on again."""
    terms = EffectiveSettings(servers={"files": Server(approval="off")}, tools={"files/read": AUTO})
    assert names(catalog(Shelf("files", "read", "delete"), terms=terms)) == ["read"]


def test_a_tool_that_is_off_makes_no_name_ambiguous() -> None:
    """A1, E5: what is invisible is not meant."""
    terms = EffectiveSettings(tools={"mail/read": OFF})
    made = catalog(Shelf("files", "read"), Shelf("mail", "read"), terms=terms)
    assert made.get("read")[1].server == "files"


def test_a_note_says_which_tool_is_called_otherwise_and_why() -> None:
    """U12: once for each; a name that two have is no problem, one of somebody else is."""
    made = catalog(Shelf("evil", "good__read", "afoot_wait", "a.b", "list"), Shelf("good", "list"))
    told = {str(note): note.is_problem for note in made.notes}
    assert told == {
        "evil/good__read is offered as evil__good__read: names like that are those of server good": True,
        "evil/afoot_wait is offered as evil__afoot_wait: names like that are the gateway's own": True,
        "evil/a.b is offered as a_b: its name has characters that hosts refuse, or is too long": True,
        "evil/list is offered as evil__list: another tool has that name": False,
        "good/list is offered as good__list: another tool has that name": False,
    }


def test_settings_that_name_no_server_trust_none_of_several() -> None:
    """U12, A1: and a note says what to write; while there is one server, nobody else can be meant."""
    terms = EffectiveSettings(tools={"read": AUTO}, approval="ask")
    made = catalog(Shelf("files", "read"), terms=terms)
    assert made.get("read")[1].approval == "auto" and not made.notes
    made.put(Shelf("mail", "send"))
    assert made.get("read")[1].approval == "ask"
    assert [str(note) for note in made.notes] == [
        'files/read: [tools."read"] names no server, so it cannot make this one ask less; '
        'write [tools."files/read"] if it is meant'
    ]


def test_a_server_with_endless_new_names_gets_its_prefix(monkeypatch: pytest.MonkeyPatch) -> None:
    """U12: the names that a server keeps from others are bounded."""
    monkeypatch.setattr("afoot.engine.catalog.MAX_CLAIMS", 2)
    made = catalog(Shelf("a", "one", "two"), Shelf("b", "three"))
    made.put(Shelf("a", "four"))
    assert names(made) == ["a__four", "three"]


def test_a_function_of_yours_takes_no_name_of_the_gateway() -> None:
    """U12: no name stands twice in a list."""
    assert names(catalog(Shelf("local", "afoot_wait", "sum"))) == ["local__afoot_wait", "sum"]
