"""The command of a soak: `python -m tests.soak --minutes N [--seed N] [--json] [--plot FILE.svg]`."""

import argparse
import json
import random
import signal
import sys
import tempfile
from pathlib import Path
from types import FrameType

from anyio.from_thread import start_blocking_portal

from tests.soak import report
from tests.soak.driver import Soak
from tests.soak.place import place


def main() -> int:
    """Soak a gateway; 1 if something did not hold, with the command that repeats it."""
    parser = argparse.ArgumentParser(
        prog="scripts/soak",
        description="Load and trouble for a gateway, and what must hold after each phase.",
    )
    parser.add_argument("--minutes", type=float, default=5.0, help="how long it takes, roughly (5)")
    parser.add_argument("--seed", type=int, help="chooses all actions; timing stays the machine's")
    parser.add_argument("--json", action="store_true", help="print all figures as JSON at the end")
    parser.add_argument("--plot", type=Path, help="write the memory over time to this SVG file")
    options = parser.parse_args()
    seed = random.SystemRandom().randrange(1_000_000) if options.seed is None else options.seed
    repeat = f"scripts/soak --seed {seed} --minutes {options.minutes:g}"
    signal.signal(signal.SIGTERM, _interrupt)
    say(repeat)
    with tempfile.TemporaryDirectory(prefix="soak") as folder, start_blocking_portal() as portal:
        with place(Path(folder)) as ground:
            soak = Soak(ground, seed, portal, say)
            try:
                problems = soak.run(options.minutes * 60)
            except KeyboardInterrupt:
                say("interrupted")
                return 130
            log = ground.gateway.said()
    say(report.table(soak))
    say(report.text_plot(soak.sampler.samples))
    if options.plot is not None:
        options.plot.write_text(report.svg_plot(soak.sampler.samples, repeat))
    if options.json:
        print(json.dumps(report.as_json(soak, seed, problems), indent=1))
    if not problems:
        return 0
    last = soak.phases[-1]
    say("\n".join(["", "the end of the gateway's log:", log[-3000:], "", *problems[:30]]))
    say(f"\n{len(problems)} wrong, phase {last.number} ({last.trouble}); again: {repeat}")
    return 1


def say(text: str) -> None:
    """Print for people; stdout is for JSON alone."""
    print(text, file=sys.stderr, flush=True)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
