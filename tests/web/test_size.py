"""How large the console may become: the numbers may only go down."""

import re
from pathlib import Path

WEB = Path(__file__).parents[2] / "src" / "afoot" / "web"
MOST = {"signal.js": 80, "dom.js": 150}
CODE = 2500  # lines of code in all scripts: neither blank nor comment
ALL = 3490  # lines of all scripts, and of the types that no browser is sent
COMMENT = re.compile(r"\s*(//|/\*|\*|$)")


def test_each_script_of_the_console_stays_small() -> None:
    """V1: a view has 200 lines at most, and the primitives what was set for them."""
    for path in WEB.rglob("*.js"):
        limit = 200 if path.parent.name == "views" else MOST.get(path.name, 300)
        count = len(path.read_text().splitlines())
        assert count <= limit, f"{path.name}: {count} lines"


def test_the_console_as_a_whole_stays_small() -> None:
    """V1: what somebody reads who wants to know all of it."""
    scripts = [path.read_text().splitlines() for path in WEB.rglob("*.js")]
    types = [path.read_text().splitlines() for path in WEB.rglob("*.d.ts")]
    assert sum(not COMMENT.match(line) for lines in scripts for line in lines) <= CODE
    assert sum(map(len, scripts + types)) <= ALL
