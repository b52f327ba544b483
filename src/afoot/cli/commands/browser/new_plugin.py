"""`afoot new` writes the first files of a browser plugin, or the plugin SDK in one file."""

import json as json_module
import sys
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from afoot.cli.client import USAGE, CliError
from afoot.cli.options import JsonOption

SDK_FILE = "afoot-sdk.js"
TOOLS_JS = """// The tools of this plugin. It runs beside the page, in a world of its own: it sees the page's
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
TEST_JS = """\
// Run it with `node --test`. A handler works without a browser, as long as it finds what it needs.
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
    url: Annotated[str, Parameter(help="the pages on which it runs, for example https://shop.example/*")],
    to: Annotated[Path | None, Parameter(help="the folder; default: a folder with the plugin's name")] = None,
    json: JsonOption = False,
) -> int:
    """Write a plugin folder: plugin.json, a tool, a test, and the SDK for the test.

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
    _check_manifest(manifest)
    text = json_module.dumps(manifest, indent=2) + "\n"
    _write_files(
        folder,
        {"plugin.json": text, "tools.js": TOOLS_JS, "tools.test.mjs": TEST_JS, SDK_FILE: sdk_text()},
        json,
    )
    if not json:
        from afoot.cli.shell_commands import own_command

        print(f"next: {own_command()} serve {folder}, and open {url.removesuffix('*')}", file=sys.stderr)
    return 0


@app.command
def sdk(folder: Path = Path(), /, *, json: JsonOption = False) -> int:
    """Write afoot-sdk.js, the plugin SDK in one file, for unit tests and editors.

    Args:
        folder: the folder to write to; an older file there is replaced
    """
    (folder / SDK_FILE).unlink(missing_ok=True)
    _write_files(folder, {SDK_FILE: sdk_text()}, json)
    return 0


def sdk_text() -> str:
    """The SDK as a script that makes its names global, as in a plugin's files."""
    from afoot import __version__
    from afoot.providers.browser.plugins.plugin import sdk_exports, sdk_source

    first = f"// The SDK of afoot {__version__} for unit tests of plugins: `afoot new sdk` writes it anew."
    return f'{first}\n"use strict";\n{sdk_source()}\nObject.assign(globalThis, {sdk_exports()});\n'


def _check_manifest(manifest: dict[str, object]) -> None:
    """Check the name and the pattern before anything is written; raises CliError."""
    from msgspec import convert

    from afoot.providers.browser.plugins.plugin import PluginManifest, faults

    for key, what in faults(convert(manifest, PluginManifest)):
        raise CliError(USAGE, f"{'--url' if key.startswith('matches') else key}: {what}")


def _write_files(folder: Path, files: dict[str, str], json: bool) -> None:
    there = [name for name in files if (folder / name).exists()]
    if there:
        raise CliError(USAGE, f"{folder / there[0]} is there already: nothing was written")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (folder / name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise CliError(USAGE, f"{folder} cannot be written: {error.strerror}") from None
    written = [str(folder / name) for name in files]
    print(json_module.dumps({"written": written}) if json else "\n".join(f"wrote {one}" for one in written))
