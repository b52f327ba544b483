"""The difference that people see: all that changes, and no secret."""

from pathlib import Path

import pytest

from afoot.hosts import install
from afoot.hosts.document import HostDocument
from afoot.hosts.masked_diff import MASK, masked_diff, secret_values
from afoot.hosts.plan import FileChange
from tests.hosts.conftest import placed
from tests.hosts.sample_files import NAMES, SAMPLES, Sample


@pytest.mark.parametrize("sample", SAMPLES, ids=NAMES)
def test_no_secret_is_shown(sample: Sample) -> None:
    """S4: neither where it was nor where it goes; everything else is."""
    wish = placed(sample)
    plan = install.plan_install(wish, is_adopting=True)
    servers = HostDocument(wish.host, wish.file, sample.text).servers()
    texts = [masked_diff(change, secret_values(plan, servers.values())) for change in plan.changes()]
    assert "hush" not in "".join(texts)
    assert all(f"[servers.{name}]" in texts[1] for name in sample.adopted.values())
    assert '"afoot"' in texts[0] or "[mcp_servers.afoot]" in texts[0]


@pytest.mark.parametrize(
    ("line", "masked"),
    [
        ('"args": ["--api-key=abc"]', f'"args": ["--api-key={MASK}"]'),
        ('"url": "https://x/mcp?token=abc&b=1"', f'"url": "https://x/mcp?token={MASK}&b=1"'),
        ('"Authorization": "Bearer abc"', f'"Authorization": "Bearer {MASK}"'),
        ('GITHUB_TOKEN = "abc"', f'GITHUB_TOKEN = "{MASK}"'),
        ('"X_TOKEN": "${X_TOKEN}"', '"X_TOKEN": "${X_TOKEN}"'),
        ('X = "${secret:X_TOKEN}"', 'X = "${secret:X_TOKEN}"'),
        ('"url": "postgresql://ada:abc@localhost/x"', f'"url": "postgresql://ada:{MASK}@localhost/x"'),
        ('Authorization = "Bearer ${X}"', 'Authorization = "Bearer ${X}"'),
        ('"mode": "1"', '"mode": "1"'),
    ],
)
def test_what_its_key_gives_away_is_masked(line: str, masked: str) -> None:
    """S4: in arguments and addresses, too."""
    assert masked_diff(FileChange(Path("x"), None, f"{line}\n"), []).splitlines()[-1] == f"+{masked}"


def test_a_new_file_and_one_that_goes_are_told_apart() -> None:
    """V4: and very long lines are cut."""
    assert masked_diff(FileChange(Path("x"), None, "a\r\n"), []) == "--- /dev/null\n+++ x\n@@ -0,0 +1 @@\n+a"
    assert masked_diff(FileChange(Path("x"), "a\n", None), []) == "--- x\n+++ /dev/null\n@@ -1 +0,0 @@\n-a"
    assert len(masked_diff(FileChange(Path("x"), "", "a" * 1000), []).splitlines()[-1]) == 200
