"""The pages of the documentation as the tests read them: headings, code blocks, links."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parent.parent.parent
DOCS: Final = ROOT / "docs"
FOLDERS: Final = ("tutorial", "how-to", "reference", "reasons")

_FENCE = re.compile(r"^```(.*)$")
_HEADING = re.compile(r"^(#+) (.+)$")
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


@dataclass(frozen=True)
class Block:
    """A block of code: its language, the words behind it, and where it begins."""

    page: str
    line: int
    language: str
    words: tuple[str, ...]
    text: str

    @property
    def where(self) -> str:
        """For messages."""
        return f"{self.page}:{self.line}"


def pages() -> list[str]:
    """Every page, as a path below the root."""
    found = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted(DOCS.rglob("*.md"))]
    return [str(path.relative_to(ROOT)) for path in found]


def read(page: str) -> str:
    """The text of a page."""
    return (ROOT / page).read_text(encoding="utf-8")


def blocks(page: str) -> list[Block]:
    """The code blocks of a page, in order."""
    found: list[Block] = []
    start, info, inside = 0, "", list[str]()
    for number, line in enumerate(read(page).splitlines(), 1):
        fence = _FENCE.match(line)
        if fence and not start:
            start, info, inside = number, fence[1], list[str]()
        elif fence:
            language, *words = info.split() or [""]
            found.append(Block(page, start, language, tuple(words), "\n".join(inside) + "\n"))
            start = 0
        elif start:
            inside.append(line)
    assert not start, f"{page}:{start}: a block is not closed"
    return found


def prose(page: str) -> str:
    """The page without its code blocks."""
    kept, is_inside = list[str](), False
    for line in read(page).splitlines():
        if _FENCE.match(line):
            is_inside = not is_inside
        elif not is_inside:
            kept.append(line)
    return "\n".join(kept)


def sections(page: str, level: int) -> dict[str, str]:
    """By heading of this level, its backticks taken off: the text below it."""
    found: dict[str, str] = {}
    title, is_inside = "", False
    for line in read(page).splitlines():
        is_inside ^= bool(_FENCE.match(line))
        heading = None if is_inside else _HEADING.match(line)
        if heading and len(heading[1]) <= level:
            title = heading[2].replace("`", "") if len(heading[1]) == level else ""
            assert title not in found, f"{page}: {title} has two headings"
        if title:
            found[title] = f"{found.get(title, '')}{line}\n"
    return found


def links(page: str) -> Iterator[str]:
    """Where a page links to, outside of code."""
    yield from _LINK.findall(prose(page))
