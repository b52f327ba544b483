"""The copy of the extension that tests load is the real one, but for the hosts that it may see."""

import json
import posixpath
import re
from pathlib import Path

from afoot.providers.browser.extension_files import extension_sources
from tests.browser.extension import extension_copy
from tests.e2e.gateway import Gateway

PAIRING = "pairing.json"
NAMED = re.compile(r'^import [^;]*?from "(\.[^"]+)";$|<link rel="stylesheet" href="([^"]+)"', re.MULTILINE)


def test_only_the_host_permissions_of_the_manifest_differ(tmp_path: Path) -> None:
    """B1: what tests try is what people load."""
    gateway = Gateway(tmp_path / "gateway")
    extension_copy.unpack(tmp_path / "copy", gateway.environment)
    shipped = {name: file.read_bytes() for name, file in extension_sources().items()}
    copied = files(tmp_path / "copy")
    assert set(copied) - set(shipped) == {PAIRING}
    assert set(shipped) <= set(copied)
    assert [name for name in shipped if shipped[name] != copied[name]] == ["manifest.json"]
    real, tried = json.loads(shipped["manifest.json"]), json.loads(copied["manifest.json"])
    assert tried.pop("host_permissions") == extension_copy.HOSTS
    assert "host_permissions" not in real
    assert tried == real


def test_every_module_and_style_that_a_copy_names_is_in_it() -> None:
    """V6, B1: with the parts that the panel shares with the console, and none that nobody uses."""
    sources = extension_sources()
    named = set[str]()
    for name, file in sources.items():
        if file.suffix in (".js", ".html"):
            found = NAMED.findall(file.read_text())
            named |= {posixpath.normpath(posixpath.join(posixpath.dirname(name), *one)) for one in found}
    assert named <= sources.keys()
    assert {name for name in sources if name.startswith("shared/")} <= named


def test_the_key_is_for_nobody_else(tmp_path: Path) -> None:
    """B7: the folder and the key in it are its owner's, and no page can load the file."""
    extension_copy.unpack(tmp_path / "copy", Gateway(tmp_path / "gateway").environment)
    assert (tmp_path / "copy").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "copy" / PAIRING).stat().st_mode & 0o777 == 0o600
    assert len(bytes.fromhex(json.loads((tmp_path / "copy" / PAIRING).read_text())["key"])) == 32
    manifest = json.loads((tmp_path / "copy" / "manifest.json").read_text())
    assert not {"web_accessible_resources", "externally_connectable", "content_scripts"} & set(manifest)


def files(folder: Path) -> dict[str, bytes]:
    """Every file of a folder, by its path there."""
    return {
        str(file.relative_to(folder)): file.read_bytes()
        for file in folder.rglob("*")
        if file.is_file() and not file.name.endswith((".pyc", ".d.ts"))  # of no use to a browser
    }
