"""Every reader of bytes from outside, on inputs that once failed, on changed ones, and on long ones."""

import time
from pathlib import Path

import pytest

from tests.attack.fuzz.catalog import CORPUS, TARGETS, corpus, inputs
from tests.attack.fuzz.explore import explore
from tests.attack.fuzz.target import Target

CORPUS_BYTES = 300_000  # in all: the repository is no place for a large one
SMALL, LARGE = 4_000, 32_000
SLOW_S = 0.1  # of processor time; shorter runs are too short to compare
GROWTH = 4  # how much more than in proportion the time may grow: caches, and a busy machine
TARGET = pytest.mark.parametrize("target", TARGETS.values(), ids=lambda target: target.name)


@TARGET
def test_no_stored_input_fails(target: Target) -> None:
    """S8: an input that once failed never fails again, and those that reach much code are tried first."""
    for data in inputs(target):
        target.run(data)


@TARGET
def test_no_changed_input_fails(target: Target) -> None:
    """S8: a short run, the same each time; `scripts/fuzz` is the long one."""
    explore(target, target.examples)


@pytest.mark.parametrize(
    "target", [target for target in TARGETS.values() if target.is_quick], ids=lambda target: target.name
)
def test_time_grows_no_faster_than_the_input(target: Target) -> None:
    """S8, S5: a long input of one repeated part takes time in proportion to its length."""
    for part in [*target.tokens, *target.seeds, b"[", b'{"a":', b" ", b"\\", b'"', b"1"]:
        if not part or seconds(target, part, LARGE) < SLOW_S:
            continue
        small, large = (min(seconds(target, part, size) for _ in range(3)) for size in (SMALL, LARGE))
        assert large < small * LARGE / SMALL * GROWTH, f"{part!r}: {small:.3f} s, then {large:.3f} s"


def seconds(target: Target, part: bytes, size: int) -> float:
    """The processor time for so many bytes of a repeated part."""
    data = part * (size // len(part))
    began = time.process_time()
    target.run(data)
    return time.process_time() - began


def test_the_corpus_is_small_and_every_folder_has_a_target() -> None:
    """S8: a target that was renamed would leave its inputs untried."""
    assert {path.name for path in CORPUS.iterdir()} <= TARGETS.keys()
    files = [path for target in TARGETS.values() for path in corpus(target)]
    assert sum(path.stat().st_size for path in files) < CORPUS_BYTES
    assert all(Path(path).is_file() for path in files)
