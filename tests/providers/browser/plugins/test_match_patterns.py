"""Match patterns: the vectors that the SDK's own matching is tested with, too."""

import json
from pathlib import Path
from typing import Any

import pytest

from afoot.providers.browser.plugins.match_patterns import (
    covers_url,
    matches_url,
    parse_narrow_pattern,
    parse_pattern,
)

VECTORS: dict[str, Any] = json.loads(
    (Path(__file__).parents[3] / "vectors" / "match_patterns.json").read_text()
)


@pytest.mark.parametrize("vector", VECTORS["fits"], ids=lambda vector: f"{vector['pattern']} {vector['url']}")
def test_an_address_fits_as_in_chrome(vector: dict[str, Any]) -> None:
    """B2: scheme, host, port and path, stars in their places only."""
    assert matches_url(parse_pattern(vector["pattern"]), vector["url"]) is vector["fits"]


@pytest.mark.parametrize("vector", VECTORS["wrong"], ids=lambda vector: vector["pattern"])
def test_what_is_no_pattern_says_why(vector: dict[str, str]) -> None:
    """B2: the text names what is wrong with it."""
    with pytest.raises(ValueError, match=vector["why"].replace("*", r"\*")):
        parse_pattern(vector["pattern"])


@pytest.mark.parametrize("pattern", VECTORS["broad"])
def test_a_pattern_for_everything_is_refused(pattern: str) -> None:
    """B2: a plugin says whose pages it is for."""
    parse_pattern(pattern)
    with pytest.raises(ValueError, match="too broad: name the site"):
        parse_narrow_pattern(pattern)


@pytest.mark.parametrize("pattern", VECTORS["narrow"])
def test_a_pattern_of_one_site_is_taken(pattern: str) -> None:
    """B2: a host, all hosts below one, or a machine of one's own."""
    assert parse_narrow_pattern(pattern) == parse_pattern(pattern)


def test_excluded_addresses_are_not_covered() -> None:
    """B2: an exclusion wins, and may be broad."""
    matches, excludes = ["https://shop.example/*", "https://store.example/*"], ["*://*/logout*"]
    assert covers_url(matches, excludes, "https://store.example/orders")
    assert not covers_url(matches, excludes, "https://store.example/logout?now")
    assert not covers_url(matches, [], "https://other.example/")


def test_a_path_of_many_stars_takes_no_time() -> None:
    """B7: an address is a page's own word, and may be made to be slow."""
    pattern = parse_pattern("https://shop.example/" + "*a" * 10)
    assert not matches_url(pattern, "https://shop.example/" + "a" * 100_000 + "b")
