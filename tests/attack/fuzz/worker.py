"""One target under libFuzzer, in a process of its own: atheris ends the process with the run.

`python -m tests.attack.fuzz.worker TARGET EXAMPLES SEED FOLDER [options of libFuzzer]`. First hypothesis
tries some examples, then libFuzzer is led by which code of afoot its inputs reach.
"""

import importlib
import sys
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Any

FAILED = 77  # the exit status of libFuzzer for a failing input


def main() -> None:
    """Fuzz until the time is over or an input fails."""
    name, examples, start, folder, *options = sys.argv[1:]
    # atheris is in an extra of its own, which only scripts/fuzz installs.
    atheris: Any = importlib.import_module("atheris")
    with atheris.instrument_imports(include=["afoot"]):
        catalog = importlib.import_module("tests.attack.fuzz.catalog")
    explore = importlib.import_module("tests.attack.fuzz.explore")
    mutation = importlib.import_module("tests.attack.fuzz.mutation")
    target = catalog.TARGETS[name]
    try:
        explore.explore(target, int(examples), int(start))
    except explore.Finding as finding:
        print(finding, file=sys.stderr)
        found = Path(folder) / f"{name}-{sha256(finding.data).hexdigest()[:16]}"
        found.write_bytes(finding.data)
        sys.exit(FAILED)

    def change(data: bytes, max_size: int, seed: int) -> bytes:
        """Every other input is changed by the mutator that knows formats, the rest by libFuzzer's own."""
        random = Random(seed)
        if random.random() < 0.5:
            return bytes(atheris.Mutate(data, max_size))
        return bytes(mutation.mutate(data, random, target.tokens, max_size))

    atheris.Setup([sys.argv[0], *options], target.run, custom_mutator=change)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
