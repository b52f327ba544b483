// Who a sender is, and what the worker passes on.
import assert from "node:assert/strict";
import { test } from "node:test";
import { addContext } from "../../../src/afoot/extension/background/frames.js";
import {
  PageContext,
  checkedUrl,
  contextAddress,
  senderSite,
} from "../../../src/afoot/extension/background/page_context.js";

test("B7: who speaks is the browser's word; a message cannot name another context", () => {
  const sender = {
    tab: { id: 7, url: "https://top.example/x" },
    frameId: 3,
    documentId: "D",
    origin: "https://in.example",
    url: "https://in.example/a",
    documentLifecycle: "active",
  };
  const address = contextAddress(sender, "page");
  assert.deepEqual(
    [address.id, address.origin, address.top],
    ["7.3.D", "https://in.example", "https://top.example"],
  );
  assert.equal(contextAddress(sender, "plugin:a@1").id, "7.3.D.plugin:a@1");
  assert.equal(contextAddress({ ...sender, tab: undefined }, "page"), null);
  assert.equal(contextAddress({ ...sender, documentLifecycle: "prerender" }, "page"), null);
  const unseen = { ...sender, origin: undefined, tab: { id: 7 } };
  assert.deepEqual([contextAddress(unseen, "page").origin, contextAddress(unseen, "page").top], ["null", ""]);
  assert.equal(checkedUrl(address, "https://in.example/b#c"), "https://in.example/b#c");
  assert.equal(checkedUrl(address, "https://bank.example/"), "https://in.example/a");
  const frame = { method: "tool.result", params: { run: "r", seq: 1, value: 1, room: "other", evil: 1 } };
  assert.deepEqual(addContext("7.3.D", frame).params, { run: "r", seq: 1, value: 1, room: "7.3.D" });
});

test("B7: a document without an origin belongs to the site of its address, or of its tab", () => {
  const tab = { url: "https://shop.example/a" };
  const sites = [
    [{ origin: "https://in.example", url: "https://in.example/x", tab }, "https://in.example"],
    [{ origin: "null", url: "https://in.example/x", tab }, "https://in.example"],
    [{ origin: "null", url: "about:srcdoc", tab }, "https://shop.example"],
    [{ origin: "null", url: "about:srcdoc", tab: {} }, ""],
    [undefined, ""],
  ];
  for (const [sender, site] of sites) assert.equal(senderSite(sender), site);
});

test("B7: no context can put something into the hello that the gateway refuses", () => {
  const output = { send: () => {}, count: () => {} };
  const running = [{ run: "a", seq: 1.5 }, { run: "b", seq: "7" }, { run: "c", seq: 1e300 }, { run: 5 }];
  const context = new PageContext(
    { id: "1.0.d", url: "" },
    {},
    { running: [...running, { run: "d", seq: 7 }] },
    output,
  );
  context.receive({ method: "tool.progress", params: { run: "a", seq: 2.5, reports: [] } });
  assert.deepEqual(
    context.running.map(({ run, seq }) => [run, seq]),
    [
      ["a", 0],
      ["b", 0],
      ["c", 0],
      ["d", 7],
    ],
  );
});
