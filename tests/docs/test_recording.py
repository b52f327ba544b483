"""The picture of a terminal: small, whole, and nothing in it that runs."""

from pathlib import Path
from xml.etree import ElementTree

PICTURE = Path(__file__).parents[2] / "docs" / "terminal.svg"
SVG = "{http://www.w3.org/2000/svg}"


def test_the_recording_shows_a_call_and_an_approval() -> None:
    """V2: of a real session, in light and dark, still where nothing may move."""
    root = ElementTree.fromstring(PICTURE.read_text())
    shown = ["".join(line.itertext()) for line in root.iter(f"{SVG}text")]
    for part in (
        "afoot call export_pages",
        "running",
        "━",
        "afoot call delete_backups",
        "a)lways:",
        "ok after",
    ):
        assert any(part in line for line in shown), part
    style = root.findtext(f"{SVG}style") or ""
    assert "prefers-color-scheme:dark" in style and "prefers-reduced-motion:reduce" in style


def test_the_recording_is_small_and_runs_nothing() -> None:
    """V2: a README may show it anywhere."""
    assert PICTURE.stat().st_size < 60_000
    kinds = {element.tag.removeprefix(SVG) for element in ElementTree.fromstring(PICTURE.read_text()).iter()}
    assert kinds == {"svg", "style", "rect", "text", "tspan"}
    names = {name for element in ElementTree.parse(PICTURE).iter() for name in element.attrib}
    assert not any(name.startswith("on") or "href" in name for name in names)
