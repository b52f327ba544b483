"""`encode_large`: a value that does not fit into memory is an error."""

import subprocess
import sys

from msgspec import Raw, json

from afoot.core.fact_size import fact_bytes
from afoot.core.facts import Finished, Result
from afoot.core.large_json import encode_large

TEXT = Raw(b'[{"type":"text","text":"' + b"x" * 9000 + b'"}]')


def test_a_large_value_is_encoded_as_any_other() -> None:
    """H8: only the way differs."""
    fact = Finished(1.0, "ok", Result(TEXT))
    assert encode_large(fact, fact_bytes(fact)) == encode_large(fact, 0) == json.encode(fact)


def test_a_value_that_does_not_fit_into_memory_is_an_error_and_no_crash() -> None:
    """H8: a process at its limit of memory ended with SIGSEGV here."""
    script = """
import resource
from msgspec import Raw
from afoot.core.large_json import encode_large
values = [Raw(b'"' + b"x" * (50 << 20) + b'"')] * 20
resource.setrlimit(resource.RLIMIT_AS, (400 << 20, 400 << 20))
for size in (0, 1000 << 20):
    try:
        encode_large(values, size)
    except MemoryError:
        print("MemoryError")
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=25)
    assert (done.returncode, done.stdout.split()) == (0, ["MemoryError", "MemoryError"])
