"""The page of our app as it is put together: nothing is loaded, nothing else runs, nothing is lost."""

import re
from base64 import b64encode
from hashlib import sha256
from pathlib import Path

import pytest

from afoot.serve.mcp.app.page import app_page, joined_modules

LIBRARY = """// two: counts.
export const two = 2;
export function add(a, b) {
  return a + b;
}
"""
ENTRY = 'import { add as sum, two } from "./lib/two.js";\n\nreport(sum(two, 1));\n'


def test_the_page_allows_its_own_script_and_style_and_nothing_else() -> None:
    """V7, S8: by their digests; no address can be reached, and no text becomes markup."""
    page = app_page()
    [policy] = re.findall(r'Content-Security-Policy" content="([^"]*)"', page)
    for kind, tag in (("script", 'script type="module"'), ("style", "style")):
        [inside] = re.findall(rf"<{tag}>(.*?)</{kind}>", page, re.DOTALL)
        digest = b64encode(sha256(inside.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}';" in policy
    assert policy.startswith("default-src 'none';") and "unsafe" not in policy
    assert "require-trusted-types-for 'script'" in policy


def test_the_page_loads_nothing() -> None:
    """V7: a host's frame has no origin from which it could."""
    page = app_page()
    assert not re.findall(r"^(?:import|export)\b|\bimport\(|@import|url\(", page, re.MULTILINE)
    assert not re.findall(r"<(?:script|link|img)[^>]* (?:src|href)=", page)


def test_a_module_and_what_it_imports_become_one_script(tmp_path: Path) -> None:
    """V7: each module once, before those that need it, with the names under which they import."""
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib/two.js").write_text(LIBRARY)
    (tmp_path / "main.js").write_text(ENTRY)
    script = joined_modules(tmp_path, "main.js")
    assert script.index("return a + b;") < script.index("report(sum(two, 1));")
    assert "return { two, add };" in script and "const { add: sum, two } = module0;" in script


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ('import { other } from "./main.js";\nexport const a = 1;\n', "imports itself"),
        ("export default 1;\n", "cannot be put into one script"),
        ('import * as all from "./x.js";\n', "cannot be put into one script"),
        ('export const a = "</script>";\n', "would end its own element"),
    ],
    ids=["a circle", "a default export", "a namespace", "an end of the element"],
)
def test_a_module_that_would_mean_something_else_is_refused(tmp_path: Path, source: str, why: str) -> None:
    """V7: never a page that is broken in silence."""
    (tmp_path / "main.js").write_text('import { a } from "./a.js";\nexport const other = a;\n')
    (tmp_path / "a.js").write_text(source)
    with pytest.raises(ValueError, match=why):
        joined_modules(tmp_path, "main.js")
