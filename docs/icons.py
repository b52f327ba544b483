"""Draws the icons of the extension: the mark of the console, on a ground that is seen on any toolbar.

python -m docs.icons
"""

import base64
from pathlib import Path

from tests.browser.chromium import running

FOLDER = Path(__file__).parents[1] / "src/afoot/extension/icons"
SIZES = (16, 32, 48, 128)
PAGE = """data:text/html,<body style="margin:0"><svg width="{size}" height="{size}" viewBox="0 0 32 32"
 style="display:block"><rect width="32" height="32" rx="7" fill="%2316181d"/><g transform="translate(6 6)"
 fill="none" stroke="white"><path d="M10 1.9a6.4 6.4 0 1 1-6.1 4.5" stroke-width="2.7"/>
<path d="M3.4 18.2h13.2" stroke-width="2.5"/></g></svg>"""


def main() -> None:
    """Write a picture of each size."""
    with running("--headless=new") as browser:
        page = browser.open()
        for size in SIZES:
            page.call("Emulation.setDefaultBackgroundColorOverride", color={"r": 0, "g": 0, "b": 0, "a": 0})
            page.call(
                "Emulation.setDeviceMetricsOverride",
                width=size,
                height=size,
                deviceScaleFactor=1,
                mobile=False,
            )
            page.navigate(PAGE.format(size=size).replace("\n", ""))
            shot = page.call("Page.captureScreenshot", format="png")["data"]
            (FOLDER / f"{size}.png").write_bytes(base64.b64decode(shot))


if __name__ == "__main__":
    main()
