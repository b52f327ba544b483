"""Reports as the page's scripts send them, read by the gateway: the vectors that Node's tests write."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from afoot.wire.browser_data import PageReport

VECTORS: list[dict[str, Any]] = json.loads(
    (Path(__file__).parents[1] / "vectors" / "report.json").read_text()
)["vectors"]


def spell(value: Any) -> Any:
    """A vector's value with its abbreviations written out."""
    match value:
        case {"$repeat": [text, times]}:
            return text * times
        case dict():
            return {key: spell(inner) for key, inner in value.items() if not key.startswith("$")}
        case list():
            return [spell(inner) for inner in value]
    return value


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["name"])
def test_a_report_of_a_page_is_read_as_it_was_sent(vector: dict[str, Any]) -> None:
    """B4: both ends agree on what a report is."""
    wanted = spell(vector["report"])
    report = msgspec.json.decode(msgspec.json.encode(wanted), type=PageReport)
    assert msgspec.json.decode(msgspec.json.encode(report)) == wanted
    assert len(report.message or "") <= 1000
    assert len(bytes(report.data)) <= 64 * 1024
