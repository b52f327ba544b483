"""The fuzzer's command line, behind `scripts/fuzz`: every target in turn, for its share of the time."""

import argparse
import os
import re
import shutil
import subprocess
import sys
import traceback
from pathlib import Path

from tests.attack.fuzz.catalog import CORPUS, TARGETS
from tests.attack.fuzz.explore import shrink
from tests.attack.fuzz.target import Target

ROOT = Path(__file__).resolve().parents[3]
WORK = ROOT / ".fuzz"  # what a run leaves; git ignores it
FINDINGS = WORK / "findings"
EXAMPLES = 200  # of hypothesis, before libFuzzer begins
INPUT_S = 10  # a single input that takes longer is a finding
MEMORY_MB = 2048
CORPUS_FILE_BYTES = 1000  # larger inputs are not kept in the repository
CORPUS_FILES = 40  # for each target
LONGEST_RUN_S = 100_000
_STATS = re.compile(r"#(\d+)\s.*?cov: (\d+)")


def main() -> int:
    """Fuzz, or repeat one input; returns 1 if there was a finding."""
    asked = _arguments()
    targets = [TARGETS[name] for name in asked.target or TARGETS]
    if asked.input is not None:
        return max(_repeat(target, asked.input) for target in targets)
    os.nice(10)
    FINDINGS.mkdir(parents=True, exist_ok=True)
    share_s = max(1, round(asked.minutes * 60 / len(targets)))
    findings = [path for target in targets for path in _fuzz(target, share_s, asked.seed)]
    if asked.merge:
        for target in targets:
            _merge(target)
    print(f"{len(findings)} findings" if findings else "no findings")
    return 1 if findings else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/fuzz", description="Fuzz everything that reads bytes.")
    parser.add_argument("--minutes", type=float, default=10.0, help="for all targets together")
    parser.add_argument(
        "--target", action="append", choices=sorted(TARGETS), help="only this one; repeatable"
    )
    parser.add_argument("--seed", type=int, default=1, help="another one tries other inputs")
    parser.add_argument("--input", type=Path, help="run the target on this file alone, to repeat a finding")
    parser.add_argument("--merge", action="store_true", help="add inputs that reach new code to the corpus")
    asked = parser.parse_args()
    if asked.input is not None and not asked.target:
        parser.error("--input needs --target")
    return asked


def _repeat(target: Target, file: Path) -> int:
    try:
        target.run(file.read_bytes())
    except Exception:
        traceback.print_exc()
        return 1
    print(f"{target.name}: {file} does not fail")
    return 0


def _fuzz(target: Target, seconds: int, seed: int) -> list[Path]:
    """Fuzz one target until its time is over or an input fails; returns the findings."""
    before = set(FINDINGS.iterdir())
    options = [
        *_folders(target), f"-dict={_dictionary(target)}", f"-max_total_time={seconds}", f"-seed={seed}",
        f"-max_len={target.max_bytes}", f"-timeout={INPUT_S}", f"-rss_limit_mb={MEMORY_MB}",
        f"-artifact_prefix={FINDINGS}/{target.name}-",
    ]  # fmt: skip
    log = WORK / f"{target.name}.log"
    code = _work(target, [str(EXAMPLES), str(seed), str(FINDINGS), *options], log, seconds)
    stats = _STATS.findall(log.read_text(errors="replace"))
    runs, cov = stats[-1] if stats else ("0", "0")
    print(f"{target.name}: {runs} inputs, {cov} edges of code", flush=True)
    found = sorted(set(FINDINGS.iterdir()) - before)
    for path in found:
        if not path.name.startswith(f"{target.name}-timeout"):
            path.write_bytes(shrink(target, path.read_bytes()))
        print(f"FINDING in {target.name}; {log.relative_to(ROOT)} says more. Repeat it:")
        print(f"  scripts/fuzz --target {target.name} --input {path.relative_to(ROOT)}", flush=True)
    if code and not found:
        raise SystemExit(f"the fuzzer failed: {log} says why")
    return found


def _work(target: Target, arguments: list[str], log: Path, seconds: int) -> int:
    command = [sys.executable, "-m", "tests.attack.fuzz.worker", target.name, *arguments]
    with log.open("wb") as out:
        return subprocess.run(
            command,
            stdout=out,
            stderr=subprocess.STDOUT,
            cwd=ROOT,
            timeout=seconds + LONGEST_RUN_S,
            check=False,
        ).returncode


def _folders(target: Target) -> list[str]:
    """The folder for new inputs, then those with the inputs to begin with."""
    new, seeds, kept = WORK / "corpus" / target.name, WORK / "seeds" / target.name, CORPUS / target.name
    for folder in (new, seeds):
        folder.mkdir(parents=True, exist_ok=True)
    for number, data in enumerate(target.seeds):
        (seeds / str(number)).write_bytes(data)
    return [str(one) for one in (new, seeds, kept) if one.is_dir()]


def _dictionary(target: Target) -> Path:
    """The words of the target's format, as libFuzzer reads them."""
    path = WORK / f"{target.name}.dict"
    escaped = ["".join(f"\\x{sign:02x}" for sign in word) for word in target.tokens]
    path.write_text("".join(f'"{word}"\n' for word in escaped))
    return path


def _merge(target: Target) -> None:
    """Add to the repository the small inputs of this run that reach code which no stored input reaches."""
    kept, merged = CORPUS / target.name, WORK / "merged" / target.name
    shutil.rmtree(merged, ignore_errors=True)
    merged.mkdir(parents=True)
    new, seeds, *_ = _folders(target)
    small = WORK / "small" / target.name
    shutil.rmtree(small, ignore_errors=True)
    small.mkdir(parents=True)
    for path in Path(new).iterdir():
        if path.stat().st_size <= CORPUS_FILE_BYTES:
            shutil.copy(path, small)
    folders = [str(merged), seeds, *([str(kept)] if kept.is_dir() else []), str(small)]
    _work(
        target, ["1", "1", str(FINDINGS), "-merge=1", f"-timeout={INPUT_S}", *folders], WORK / "merge.log", 0
    )
    have = {path.read_bytes() for path in kept.glob("*")} | set(target.seeds)
    wanted = sorted(
        (path for path in merged.iterdir() if path.read_bytes() not in have),
        key=lambda one: one.stat().st_size,
    )
    kept.mkdir(parents=True, exist_ok=True)
    for path in wanted[: max(0, CORPUS_FILES - len(have) + len(target.seeds))]:
        shutil.copy(path, kept / path.name[:16])


if __name__ == "__main__":
    sys.exit(main())
