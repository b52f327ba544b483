"""A newer afoot renews the extension in a real browser: its folder first, and then the extension itself."""

import asyncio
import json
from pathlib import Path

import pytest

from afoot.providers.browser.chromium import Chromium
from afoot.providers.browser.extension_files import shipped_manifest
from tests.cli.conftest import program
from tests.e2e.gateway import Gateway, serving
from tests.serve.api_client import Api

COMES_S = 30.0
pytestmark = pytest.mark.timeout(60)


def older(folder: Path, known: Path) -> None:
    """Make a copy look as an older version had made it."""
    for file in (folder / "manifest.json", known):
        text = file.read_text()
        assert f'"version": "{shipped_manifest().version}"' in text
        file.write_text(text.replace(f'"version": "{shipped_manifest().version}"', '"version": "0.0.1"'))


async def versions(gateway: Gateway, extension: Path, profile: Path) -> list[str]:
    """The versions of the extension that were seen, until the newest is there."""
    api, seen = Api(gateway), list[str]()
    async with (
        Chromium("--headless=new", "about:blank", profile=profile) as chromium,
        asyncio.timeout(COMES_S),
    ):
        await chromium.command("Extensions.loadUnpacked", {"path": str(extension)})
        while seen[-1:] != [shipped_manifest().version]:
            for link in (await asyncio.to_thread(api.get, "/api/extension")).body["links"]:
                seen += [link["version"]] if link["connected"] and link["version"] not in seen else []
            await asyncio.sleep(0.02)
    return seen


def test_an_old_extension_is_renewed_in_a_running_browser(tmp_path: Path) -> None:
    """B1: it comes back with the new version, by itself, and its pairing still holds."""
    profile = tmp_path / "profile" / "Default"
    profile.mkdir(parents=True)
    # Where somebody has loaded an extension from a folder, this is on.
    (profile / "Preferences").write_text(json.dumps({"extensions": {"ui": {"developer_mode": True}}}))
    with serving(tmp_path / "gateway") as gateway:
        program(("browser", "--to", str(tmp_path / "ext")), gateway.environment)
        older(tmp_path / "ext", Path(gateway.environment["AFOOT_HOME"]) / "browser.json")
        seen = asyncio.run(versions(gateway, tmp_path / "ext", profile.parent))
        assert seen[-1] == shipped_manifest().version and set(seen) <= {"0.0.1", shipped_manifest().version}
        copy = json.loads((tmp_path / "ext" / "manifest.json").read_text())
        assert copy["version"] == shipped_manifest().version
