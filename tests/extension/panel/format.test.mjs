// The panel's words: times, amounts, reasons, sites.
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  explainUnavailable,
  statusText,
  formatProgress,
  parseSitePattern,
  safeText,
  progressFraction,
  formatSite,
  formatElapsed,
  approvalSubject,
} from "../../../src/afoot/extension/panel/format.js";

test("B1: times and amounts are short", () => {
  assert.deepEqual(
    [formatElapsed(-1), formatElapsed(7.9), formatElapsed(760), formatElapsed(3723)],
    ["0:00", "0:07", "12:40", "1:02:03"],
  );
  assert.equal(formatProgress({ progress: 37, total: 120 }), "37 of 120 · 30 %");
  assert.equal(formatProgress({ progress: 0.256, total: 1 }), "0.26 of 1 · 25 %");
  assert.equal(formatProgress({ progress: 0.41, total: 2, source: "below" }), "21 %");
  assert.deepEqual(
    [formatProgress({ progress: 5, total: null }), formatProgress({ progress: null, total: 9 })],
    ["5", ""],
  );
  assert.deepEqual(
    [progressFraction({ progress: 9, total: 3 }), progressFraction({ progress: 9, total: 0 })],
    [1, null],
  );
});

test("B1: what a call is doing is said in a word", () => {
  const words = [
    [{ state: "finished", outcome: "ok" }, "done"],
    [{ state: "finished", outcome: "cancelled" }, "cancelled"],
    [{ state: "cancelling" }, "stopping"],
    [{ state: "running", waiting: "person" }, "waits for an answer"],
    [{ state: "running", stalled: true }, "not advancing"],
    [{ state: "running", stalled: true, hindered: { at: 1, by: "its tab is hidden" } }, "its tab is hidden"],
    [{ state: "queued" }, "queued"],
  ];
  for (const [call, word] of words) assert.equal(statusText(call), word);
  assert.match(explainUnavailable("reload"), /reload it/);
});

test("B1: what a person types becomes a pattern for that site alone", () => {
  const patterns = {
    "shop.example": "*://shop.example/*",
    " https://Shop.Example/orders?page=2#x ": "https://shop.example/*",
    "http://localhost:8080/": "http://localhost/*",
    "*.shop.example": "*://*.shop.example/*",
    "127.0.0.1": "*://127.0.0.1/*",
    "bücher.example": "*://xn--bcher-kva.example/*",
    "*": "*://*/*",
  };
  for (const [typed, pattern] of Object.entries(patterns)) assert.equal(parseSitePattern(typed), pattern);
  for (const typed of ["", "  ", "ftp://x.example", "a b", "https://", "*.*", "javascript:alert(1)", "x@y"]) {
    assert.equal(parseSitePattern(typed), null, typed);
  }
});

test("B1: a pattern is shown as people say it", () => {
  const names = {
    "*://*/*": "all sites",
    "https://*/*": "all https sites",
    "https://shop.example/*": "shop.example",
    "http://127.0.0.1/*": "http://127.0.0.1",
    "*://*.shop.example/*": "shop.example and below",
  };
  for (const [pattern, name] of Object.entries(names)) assert.equal(formatSite(pattern), name);
});

test("A2: a question says whose tool it is", () => {
  const asked = 'Run browser/export of page https://shop.example ({"a": "(b)"})?';
  assert.equal(approvalSubject(asked), "browser/export of page https://shop.example");
});

test("A2: arguments are shown whole, with nothing in them that steers what shows them", () => {
  assert.equal(safeText({ a: [1, "é"] }), '{\n  "a": [\n    1,\n    "é"\n  ]\n}');
  assert.equal(safeText("pay \u202eevil\u0007\u200b\u2028"), "pay \\u202eevil\\u0007\\u200b\\u2028");
  assert.equal(safeText("two\nlines"), "two\nlines");
});
