"""`afoot new`: folders to begin with, for those who write plugins."""

import json as json_module
import sys
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from afoot.cli.ending import USAGE, Stop

Json = Annotated[bool, Parameter(help="print one JSON object a line")]

SDK = "afoot-sdk.js"
TOOLS = """// The tools of this plugin. It runs beside the page, in a world of its own: it sees the page's
// elements and has its login, but not its variables. afoot follows this file while you change it.

defineTool({
  name: "read_page",
  displayName: "Read the page",
  description: "The title of the page and its headings, in order.",
  input: { type: "object", properties: { level: { type: "integer", minimum: 1, maximum: 6 } } },
  annotations: { readOnlyHint: true },
  async handle({ level = 2 }, context) {
    const found = [...document.querySelectorAll(`h${level}`)];
    const headings = [];
    for (const heading of found) {
      headings.push(heading.textContent.trim());
      context?.reportProgress({ progress: headings.length, total: found.length, message: headings.at(-1) });
    }
    return { title: document.title, headings };
  },
});
"""
TEST = """// Run it with `node --test`. A handler works without a browser, as long as it finds what it needs.
import assert from "node:assert/strict";
import { test } from "node:test";
import "./afoot-sdk.js";
import "./tools.js";

test("the headings of the page are read in order", async () => {
  const headings = [{ textContent: " Tea " }, { textContent: "Milk" }];
  globalThis.document = { title: "Shop", querySelectorAll: () => headings };
  const reports = [];
  const context = { reportProgress: (report) => reports.push(report.message) };
  const wanted = { title: "Shop", headings: ["Tea", "Milk"] };
  assert.deepEqual(await findTool("read_page").handle({}), wanted);
  assert.deepEqual(await findTool("read_page").handle({}, context), wanted);
  assert.deepEqual(reports, ["Tea", "Milk"]);
});
"""

app = App("new", default_parameter=Parameter(negative=(), show_default=False), help_format="plaintext")


@app.command
def plugin(
    name: str,
    /,
    *,
    url: Annotated[str, Parameter(help="where it runs, as https://shop.example/*")],
    to: Annotated[Path | None, Parameter(help="the folder; else one of its name, here")] = None,
    json: Json = False,
) -> int:
    """Write the folder of a plugin for tabs: its plugin.json, a tool, a test, and the SDK for the test.

    Args:
        name: lower case letters, digits and -
    """
    folder = Path(name) if to is None else to
    tool = {
        "name": "read_page",
        "displayName": "Read the page",
        "description": "The title of the page and its headings, in order.",
        "input": {"type": "object", "properties": {"level": {"type": "integer", "minimum": 1, "maximum": 6}}},
        "annotations": {"readOnlyHint": True},
    }
    manifest: dict[str, object] = {
        "name": name, "version": "0.1.0", "displayName": name.replace("-", " ").capitalize(),
        "description": f"Tools for {url}", "matches": [url], "files": ["tools.js"], "tools": [tool],
    }  # fmt: skip
    _check(manifest)
    text = json_module.dumps(manifest, indent=2) + "\n"
    _write(folder, {"plugin.json": text, "tools.js": TOOLS, "tools.test.mjs": TEST, SDK: sdk_text()}, json)
    if not json:
        from afoot.cli.serve import myself

        print(f"next: {myself()} serve {folder}, and open {url.removesuffix('*')}", file=sys.stderr)
    return 0


@app.command
def sdk(folder: Path = Path(), /, *, json: Json = False) -> int:
    """Write afoot-sdk.js, the SDK of plugins as one file, for unit tests and for your editor.

    Args:
        folder: where to; an older one there is replaced
    """
    (folder / SDK).unlink(missing_ok=True)
    _write(folder, {SDK: sdk_text()}, json)
    return 0


def sdk_text() -> str:
    """The SDK as a script that makes its names global, as they are in a plugin's files."""
    from afoot import __version__
    from afoot.providers.browser.plugin import offered, sdk

    first = f"// The SDK of afoot {__version__} for unit tests of plugins: `afoot new sdk` writes it anew."
    return f'{first}\n"use strict";\n{sdk()}\nObject.assign(globalThis, {offered()});\n'


def _check(manifest: dict[str, object]) -> None:
    """Find what is wrong with a name or a pattern before anything is written; raises CallerError."""
    from msgspec import convert

    from afoot.providers.browser.plugin import Manifest, faults

    for key, what in faults(convert(manifest, Manifest)):
        raise Stop(USAGE, f"{'--url' if key.startswith('matches') else key}: {what}")


def _write(folder: Path, files: dict[str, str], json: bool) -> None:
    there = [name for name in files if (folder / name).exists()]
    if there:
        raise Stop(USAGE, f"{folder / there[0]} is there already: nothing was written")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (folder / name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise Stop(USAGE, f"{folder} cannot be written: {error.strerror}") from None
    written = [str(folder / name) for name in files]
    print(json_module.dumps({"written": written}) if json else "\n".join(f"wrote {one}" for one in written))
