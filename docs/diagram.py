"""Draws TRANSITIONS as a state diagram into docs/design.md; run it after changing the table."""

import re
from pathlib import Path

from afoot.core.call import TRANSITIONS

PAGE = Path(__file__).with_name("design.md")
BEGIN, END = "<!-- transitions -->", "<!-- /transitions -->"


def diagram() -> str:
    """The table as a Mermaid state diagram, the facts of one arrow on one line."""
    lines = ["```mermaid", "stateDiagram-v2", "    [*] --> queued: Opened"]
    for state, arrows in TRANSITIONS.items():
        for target in dict.fromkeys(arrows.values()):
            facts = ", ".join(kind.__name__ for kind, leads in arrows.items() if leads is target)
            lines.append(f"    {state} --> {target}: {facts}")
    return "\n".join([*lines, "```"])


def drawn(page: str) -> str:
    """The page with the diagram between its marks; raises ValueError if a mark is missing or repeated."""
    if page.count(BEGIN) != 1 or page.count(END) != 1:
        raise ValueError(f"{PAGE.name} needs the marks {BEGIN} and {END} once each")
    between = re.compile(f"{re.escape(BEGIN)}.*?{re.escape(END)}", re.DOTALL)
    return between.sub(lambda _: f"{BEGIN}\n{diagram()}\n{END}", page)


if __name__ == "__main__":
    PAGE.write_text(drawn(PAGE.read_text()))
