"""A server that lists as many resources, templates and prompts as it may, each as awkward as it can."""

import time
from collections.abc import Callable
from typing import Final

import pytest

from afoot.core.ports import CallOrigin
from afoot.core.uri_template import UriTemplate
from afoot.engine.catalog import Catalog
from afoot.errors import UnknownName
from afoot.providers.upstream.server_lists import MAX_ENTRIES, MAX_LIST_BYTES, MAX_TOOLS
from afoot.serve.resources import MAX_SHARED, ResourceCatalog
from afoot.wire.jsonrpc import Fault
from tests.serve.fake_resource_servers import Rack

OTHERS_WAIT_S = 0.05
LONGEST_URI = 4096
AVERAGE_CHARS = MAX_LIST_BYTES // MAX_ENTRIES // 2


def catalog_of(*racks: Rack) -> ResourceCatalog:
    """What these servers offer."""
    return ResourceCatalog(Catalog(), lambda: racks)


def work_s(work: Callable[[], object]) -> float:
    """The processor time of some work: the best of three, as others use this machine, too."""

    def once() -> float:
        begun = time.thread_time()
        work()
        return time.thread_time() - begun

    return min(once() for _ in range(3))


@pytest.mark.parametrize("template", ["{+a}" * 50, "x://{+a}" + "{b}" * 49, "{+a}y" * 49])
def test_countless_templates_keep_nobody_waiting(template: str) -> None:
    """H8, U5: every read of a resource that no server lists is compared with them."""
    hostile = Rack("a", templates=[f"{template}{{x{number}}}" for number in range(MAX_ENTRIES)])
    honest = Rack("b", templates=["x://good/{id}"])
    catalog = catalog_of(hostile, honest)
    uri = "x://good/" + "y" * (LONGEST_URI - 10) + "z"
    assert work_s(lambda: catalog.holders(uri)) < OTHERS_WAIT_S
    assert "b" in [server.name for server in catalog.holders(uri)]


def test_a_server_with_many_templates_is_still_found() -> None:
    """U5: templates that begin otherwise cost next to nothing."""
    many = Rack("a", templates=[f"x{number}://{{+path}}" for number in range(MAX_ENTRIES)])
    assert [one.name for one in catalog_of(many).holders(f"x{MAX_ENTRIES - 1}://a/b")] == ["a"]


def alike(count: int, chars: int) -> list[str]:
    """Names that differ in a few letters at the end, of few different letters."""
    return ["ab" * (chars // 2 - 4) + f"{number:08x}" for number in range(count)]


@pytest.mark.parametrize(
    ("count", "chars"), [(MAX_TOOLS, 64), (MAX_ENTRIES, 100), (MAX_ENTRIES, AVERAGE_CHARS)]
)
def test_countless_names_that_are_alike_keep_nobody_waiting(count: int, chars: int) -> None:
    """H8, E5: the error for an unknown name compares it with those that are known."""
    known = alike(count, chars)
    assert work_s(lambda: UnknownName("tool", "ba" * (chars // 2), known)) < OTHERS_WAIT_S


def test_an_unknown_resource_is_refused_in_time() -> None:
    """H8, E5: two servers that list as much as they may, and a client that asks for something else."""
    uris = [f"file:///books/shelf/{number:x}" for number in range(MAX_ENTRIES)]
    catalog = catalog_of(Rack("a", resources=uris), Rack("b", resources=[f"{uri}b" for uri in uris]))

    def ask() -> None:
        with pytest.raises(Fault, match="nearest"):
            raise catalog.unknown("file:///books/shelf/else")

    assert work_s(ask) < OTHERS_WAIT_S


class Own(Rack):
    """Functions that read every resource."""

    is_empty = False
    problems: Final[list[str]] = []
    template = UriTemplate("x://{+path}")

    def has(self, uri: str) -> bool:
        """Whether a function reads this URI."""
        return self.template.match(uri) is not None

    def is_hidden(self, uri: str, origin: CallOrigin) -> bool:
        """Nobody lacks a scope."""
        return False


@pytest.mark.parametrize("own", [None, Own("local")])
def test_resources_that_are_hidden_or_shared_are_told_in_time(own: Own | None) -> None:
    """H8: whoever asks for the gateway's health has them counted, also without a token."""
    uris = [f"x://{number}/".ljust(AVERAGE_CHARS, "y") for number in range(MAX_ENTRIES)]
    racks = Rack("a", resources=uris), Rack("b", resources=uris)
    fresh = [ResourceCatalog(Catalog(), lambda: racks, own) for _ in range(4)]
    assert len(fresh[0].problems()) >= MAX_SHARED + 1
    assert work_s(fresh[0].problems) < 0.001, "they are looked for when a list has changed"
    assert work_s(lambda: fresh.pop().problems()) < OTHERS_WAIT_S
