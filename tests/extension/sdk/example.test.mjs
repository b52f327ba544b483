// The example plugin without a browser, as its author would test it.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { before, test } from "node:test";
import { runInThisContext } from "node:vm";
import { ROOT, loadSDK } from "./load.mjs";

const archive = new URL("src/afoot/providers/browser/example/", ROOT);
let sdk;

before((t) => {
  sdk = loadSDK();
  Object.assign(globalThis, sdk);
  runInThisContext(`(() => {${readFileSync(new URL("examples/plugin/tools.js", ROOT), "utf8")}})()`);
  t.mock.method(globalThis, "fetch", async (name) => new Response(readFileSync(new URL(name, archive))));
});

test("P2: the archive is exported page by page, with and without a context", async () => {
  const { handle } = sdk.findTool("export_archive");
  const alone = await handle({});
  assert.equal(alone.orders, 120);
  const reports = [];
  const stop = new AbortController();
  const context = { signal: stop.signal, reportProgress: (report) => reports.push(report), alive() {} };
  const ada = await handle({ customer: "Ada" }, context);
  assert.ok(ada.orders > 0 && ada.orders < 120);
  assert.equal(ada.csv.split("\n").length, ada.orders + 1);
  assert.match(ada.csv, /^number,customer,goods,price\n\d+,"Ada","[^"]+",\d+\.\d\d\n/);
  assert.deepEqual(reports.at(-1), { progress: 6, total: 6, message: "page 6 of 6" });
  await assert.rejects(handle({ customer: "Nobody" }), { category: "not_found" });
  stop.abort(new Error("enough"));
  await assert.rejects(handle({}, context), { message: "enough" });
});

test("B2: plugin.json lists what the code defines", () => {
  const { tools } = JSON.parse(readFileSync(new URL("examples/plugin/plugin.json", ROOT), "utf8"));
  for (const tool of tools) assert.deepEqual(JSON.parse(JSON.stringify(sdk.findTool(tool.name))), tool);
});
