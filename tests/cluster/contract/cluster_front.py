"""A cluster that looks like one gateway: a balancer sends every request to another one of two gateways."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.cluster.redis_server import redis_server
from tests.cluster.round_robin import PUBLIC_NAME, round_robin
from tests.cluster.worker_process import WorkerProcess
from tests.e2e.approval_tools import __file__ as DANGEROUS
from tests.e2e.gateway import TOOLS, Gateway, until
from tests.serve.api_client import Api

PLACES = ("gateways", "workers")  # at which functions run


class Member(Gateway):
    """One of the gateways; marks of its tools are in a folder that all share."""

    def __init__(
        self, folder: Path, marks: Path, settings: Mapping[str, object], targets: Sequence[Path]
    ) -> None:
        super().__init__(folder, settings)
        self._marks = marks
        self._targets = targets

    @property
    def environment(self) -> dict[str, str]:
        return {**super().environment, "E2E_MARKS": str(self._marks)}

    def command(self, *surface: str) -> list[str]:
        words = super().command(*surface)
        return [*words[: words.index("serve") + 1], *map(str, self._targets), *surface]


@contextmanager
def cluster_front(
    folder: Path, place: str, settings: Mapping[str, object] | None = None, tools: Sequence[Path] = ()
) -> Iterator[Gateway]:
    """The cluster, as its clients know it; `place` is where functions run, `tools` come besides the usual."""
    front = Gateway(folder / "front")
    front.folder.mkdir(parents=True)
    targets = [TOOLS, Path(DANGEROUS), *tools]
    with ExitStack() as stack:
        redis = stack.enter_context(redis_server(folder / "redis"))
        config = folder / "afoot.toml"
        config.write_text(
            f'allow_hosts = ["{PUBLIC_NAME}"]\n[cluster]\nredis = "{redis.url}"\nlease_s = 5.0\n'
        )
        more = {"config": config, "drain_s": 0.2, **(settings or {})}
        gateways = list[Gateway]()
        for number in (1, 2):
            own = targets if place == "gateways" else []
            gateways.append(Member(folder / str(number), front.folder, more, own))
            gateways[-1].start()
            stack.callback(gateways[-1].stop)
        if place == "workers":
            worker = WorkerProcess(redis, "afoot", folder / "w", 16, tools=targets, marks=front.folder)
            stack.callback(worker.kill)
            worker.wait_until_ready()
            for one in gateways:
                until(lambda at=one: Api(at).get("/api/tools").body["tools"], "the functions of the worker")
        home = front.folder / "home"
        home.mkdir(mode=0o700)
        key = redis.client().execute_command("GET", "{afoot}:sealing")
        (home / "key").write_text(key.decode())  # as the gateway itself would
        balancer = stack.enter_context(round_robin(folder, gateways))
        front.url = balancer.url
        yield front
