"""The hosts that afoot knows, and whether they are on this machine: for the console's first page."""

import asyncio

from msgspec import Struct

from afoot.hosts.survey import HostCheck, survey_hosts
from afoot.serve.api.request import ApiRequest


class HostView(Struct, frozen=True):
    """A host, and the state of its file: absent, missing (without afoot), ours, gone, foreign, unreadable."""

    name: str
    title: str
    state: str
    command: str  # writes afoot into the file of the host


class HostList(Struct, frozen=True):
    """All hosts; those that are on this machine come first."""

    hosts: list[HostView]


async def index(request: ApiRequest) -> None:
    """The hosts that afoot knows. Their files are read for this, but nothing of them is shown."""
    request.query()
    found = await asyncio.to_thread(survey_hosts)
    views = [_host_view(one) for one in found if one.scope == "user"]
    await request.answer(200, HostList(sorted(views, key=lambda one: one.state == "absent")))


def _host_view(one: HostCheck) -> HostView:
    return HostView(one.host, one.title, one.state, f"afoot install {one.host}")
