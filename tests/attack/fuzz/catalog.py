"""`TARGETS` lists every fuzz target by its name; `corpus` has the stored inputs of one."""

from pathlib import Path

from tests.attack.fuzz.target import Target
from tests.attack.fuzz.targets import files, frames, requests, schemas, tokens, wire

CORPUS = Path(__file__).parent / "corpus"
TARGETS: dict[str, Target] = {
    target.name: target
    for module in (wire, tokens, files, frames, schemas, requests)
    for target in module.TARGETS
}


def corpus(target: Target) -> list[Path]:
    """The stored inputs of a target: those that once failed, and those that reach much of its code."""
    return sorted((CORPUS / target.name).glob("*"))


def inputs(target: Target) -> list[bytes]:
    """The seeds and the stored inputs of a target."""
    return [*target.seeds, *(path.read_bytes() for path in corpus(target))]
