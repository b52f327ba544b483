"""`run` measures all servers, for each transport and era in turns, so that noise affects all of them."""

import contextlib
import gc
import statistics
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from bench.client_http import HttpClient
from bench.client_stdio import StdioClient
from bench.launch import Server, Setup, running
from bench.measure import Client, Figure, Measure, Size, memory, warm
from bench.wire import BenchError


@dataclass(frozen=True, slots=True)
class Choice:
    """The measures, subjects, transports and eras to run."""

    transports: tuple[str, ...]
    eras: tuple[str, ...]
    subjects: tuple[str, ...]
    measures: tuple[Measure, ...]
    size: Size
    setup: Setup
    core: set[int]


@dataclass(slots=True)
class Row:
    """The figures of one measure on one transport in one era, all rounds of each subject."""

    transport: str
    era: str
    measure: Measure
    figures: dict[str, list[Figure]] = field(default_factory=dict)

    def value(self, subject: str) -> float | None:
        """Return the median of a subject's rounds."""
        rounds = self.figures.get(subject)
        return statistics.median(figure.value for figure in rounds) if rounds else None

    def spread(self) -> float | None:
        """Return the widest range of a subject's rounds divided by its median."""
        every = [[f.value for f in rounds] for rounds in self.figures.values() if len(rounds) > 1]
        return max(((max(v) - min(v)) / statistics.median(v) for v in every), default=None)

    def share(self, subject: str) -> float | None:
        """Return the least share of reports delivered in a round."""
        shares = [f.share for f in self.figures.get(subject, []) if f.share is not None]
        return min(shares) if shares else None

    def ratio(self, peer: str) -> float | None:
        """Return afoot's figure divided by the peer's."""
        ours, theirs = self.value("afoot"), self.value(peer)
        return ours / theirs if ours is not None and theirs else None

    def met(self) -> bool | None:
        """Whether the target of this row is met; None if there is no target or no figure."""
        target = self.measure.target
        figure = self.value("afoot") if self.measure.lower_is_better else self.ratio("mcp")
        if target is None or figure is None or self.transport != "http":
            return None
        return figure <= target if self.measure.lower_is_better else figure >= target


def pick(words: Sequence[str], known: Sequence[str]) -> tuple[str, ...]:
    """Return the known words that were named, in the order of the table, or all of them."""
    return tuple(word for word in known if word in words) or tuple(known)


async def run(choice: Choice) -> tuple[list[Row], list[str]]:
    """Measure all that was chosen; return the rows, and the complaints about failed measures."""
    rows: list[Row] = []
    complaints: list[str] = []
    for transport in choice.transports:
        for era in choice.eras:
            table = {m.name: Row(transport, era, m) for m in choice.measures}
            rows += table.values()
            print(f"bench: {transport} {era}", file=sys.stderr, flush=True)
            await take_turns(choice, table, complaints)
            if "memory" in table:
                await fill_up(choice, table["memory"], complaints)
    return rows, complaints


async def take_turns(choice: Choice, table: dict[str, Row], complaints: list[str]) -> None:
    """Run every measure but memory, round by round, on servers that stay up; one that fails is left out."""
    measures = [m for m in choice.measures if m.run is not None]
    if not measures:
        return
    any_row = next(iter(table.values()))
    async with contextlib.AsyncExitStack() as stack:
        clients: dict[str, Client] = {}
        for subject in choice.subjects:
            with noting(complaints, any_row, subject):
                clients[subject] = (await enter(stack, choice, subject, any_row))[0]
        for _ in range(choice.size.rounds):
            for measure in measures:
                for subject, client in list(clients.items()):
                    row, known = table[measure.name], len(complaints)
                    with noting(complaints, row, subject):
                        await one_round(client, row, (subject, choice.size))
                    if len(complaints) > known:
                        del clients[subject]  # late answers would falsify its next figures


async def one_round(client: Client, row: Row, what: tuple[str, Size]) -> None:
    """Run one measure once, with the client's garbage collector off."""
    subject, size = what
    measure = row.measure.run
    assert measure is not None
    gc.collect()
    gc.disable()
    try:
        row.figures.setdefault(subject, []).append(await measure(client, size))
    finally:
        gc.enable()


async def fill_up(choice: Choice, row: Row, complaints: list[str]) -> None:
    """Measure memory, once, on a fresh server for each subject."""
    for subject in choice.subjects:
        with noting(complaints, row, subject):
            async with contextlib.AsyncExitStack() as stack:
                client, server = await enter(stack, choice, subject, row)
                row.figures[subject] = [await memory(client, choice.size, server)]


async def enter(
    stack: contextlib.AsyncExitStack, choice: Choice, subject: str, row: Row
) -> tuple[Client, Server]:
    """Start a subject, open a client to it, warm it; both end with the stack."""
    server = stack.enter_context(running(subject, row.transport, choice.setup, choice.core))
    client: Client
    if server.port is not None:
        client = HttpClient(row.era, server.port)
    else:
        client = StdioClient(row.era, server.child)
    stack.push_async_callback(client.close)
    try:
        await client.open()
        await warm(client)
    except BenchError as error:
        raise BenchError(f"{error} {server.complaint()}") from error
    return client, server


@contextlib.contextmanager
def noting(complaints: list[str], row: Row, subject: str) -> Iterator[None]:
    """Turn a failure of one subject into a complaint, so that the others are still measured."""
    try:
        yield
    except BenchError as error:
        complaints.append(f"{subject}, {row.transport} {row.era}, {row.measure.name}: {error}")
