"""A plugin that tries out what plugins can do, and the page that it is for."""

import json
from pathlib import Path
from typing import Final

from tests.browser.chain import Bench, Chain

HOST: Final = "plug.localhost"
MANIFEST: Final = {
    "name": "plug",
    "version": "1.0.0",
    "description": "tries out what plugins can do",
    "matches": [f"http://{HOST}/*"],
    "homepage": f"http://{HOST}/",
    "files": ["tools.js"],
    "tools": [
        {"name": "count", "description": "counts", "input": {"properties": {"n": {"type": "integer"}}}},
        {"name": "linger", "description": "waits to be stopped"},
        {"name": "look", "description": "reads the page, and asks its server"},
        {"name": "missing", "description": "finds nothing"},
    ],
}
STRICT: Final = "Content-Security-Policy: default-src 'none'; script-src 'unsafe-inline'"
TOOLS: Final = """
const n = {type: "integer"};
defineTool({
  name: "count", description: "counts", input: {type: "object", properties: {n}},
  async handle({n}, context) {
    for (let i = 1; i <= n; i++) {
      context?.reportProgress({progress: i, total: n, message: `plugin ${i}`});
      await sleep(20);
    }
    return {counted: n, by: "VERSION"};
  },
});
defineTool({
  name: "linger", description: "waits to be stopped",
  handle: (_, {signal, reportProgress}) => new Promise((_, reject) => {
    reportProgress({progress: 1, message: "lingering"});
    signal.addEventListener("abort", () => {
      document.documentElement.dataset.stopped = String(signal.reason?.message ?? signal.reason);
      reject(signal.reason);
    });
  }),
});
defineTool({
  name: "look", description: "reads the page, and asks its server",
  handle: async () => ({
    value: await pageValue("shop.cart.items"), title: document.title,
    fetched: await fetchJSON("/stock.json"), json: JSON.stringify({a: 1}),
  }),
});
defineTool({name: "missing", description: "finds nothing", handle() { throw ToolError.notFound("no tea"); }});
"""
PAGE: Final = """<!doctype html><title>Shop</title><link rel="icon" href="data:,"><script>
  window.shop = {cart: {items: ["tea", 2]}};
  window.fetch = JSON.stringify = () => { throw new Error("patched by the page"); };
  document.cookie = "login=ada";
  const own = {name: "count", description: "the page's own", execute: () => "the page"};
  document.modelContext?.registerTool(own);
</script>"""


def write(folder: Path, version: str = "one") -> Path:
    """The plugin's folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tools.js").write_text(TOOLS.replace("VERSION", version))
    (folder / "plugin.json").write_text(json.dumps(MANIFEST))
    return folder


def ready(chain: Chain, bench: Bench) -> bool:
    """Whether the plugin is in this tab, and its tools can run: before, they are `tab_not_ready`."""
    found = chain.api.get("/api/tabs").body
    can_run = any(plugin["state"] == "ready" for plugin in found["plugins"])
    return can_run and any(
        "plug" in str(tab["plugins"]) for tab in found["tabs"] if tab["origin"] == bench.origin
    )
