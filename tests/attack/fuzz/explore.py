"""`explore` looks for failures of a target with hypothesis; `shrink` makes a failing input small."""

from random import Random

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from tests.attack.fuzz.catalog import inputs
from tests.attack.fuzz.mutation import mutate
from tests.attack.fuzz.target import Target

SHRINK_RUNS = 2000


class Finding(AssertionError):
    """A target raised what its reader does not document."""

    def __init__(self, target: Target, data: bytes, error: BaseException) -> None:
        super().__init__(f"{target.name}: {type(error).__name__}: {error} (input {data[:200]!r})")
        self.data = data


def explore(target: Target, examples: int, start: int | None = None) -> None:
    """Run a target on changed inputs; the same ones each time, unless `start` begins other ones.

    Raises Finding with the smallest input that hypothesis could make of the failing one.
    """
    failing: list[tuple[bytes, BaseException]] = []

    @settings(
        max_examples=examples, derandomize=start is None, database=None, deadline=None,
        phases=(Phase.generate, Phase.shrink), suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(st.sampled_from(inputs(target)), st.randoms(use_true_random=False))
    def try_one(first: bytes, random: Random) -> None:
        data = mutate(first, random, target.tokens, target.max_bytes)
        try:
            target.run(data)
        except BaseException as error:
            failing.append((data, error))
            raise

    try:
        (try_one if start is None else seed(start)(try_one))()
    except BaseException as error:
        if not failing or isinstance(error, KeyboardInterrupt):
            raise
        data, first = min(failing, key=lambda one: len(one[0]))
        raise Finding(target, data, first) from first


def shrink(target: Target, data: bytes) -> bytes:
    """A part of a failing input that fails with the same kind of error; the input itself if none does."""
    kind = failure(target, data)
    if kind is None:
        return data
    left, size = SHRINK_RUNS, max(1, len(data) // 2)
    while size and left > 0:
        at = 0
        while at < len(data) and left > 0:
            shorter = data[:at] + data[at + size :]
            left -= 1
            if failure(target, shorter) is kind:
                data = shorter
            else:
                at += size
        size //= 2
    return data


def failure(target: Target, data: bytes) -> type[BaseException] | None:
    """The kind of error with which a target fails; None if it does not."""
    try:
        target.run(data)
    except Exception as error:
        return type(error)
    return None
