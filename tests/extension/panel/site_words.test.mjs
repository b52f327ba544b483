// The panel's words for tabs and sites.
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  explainUnavailable,
  formatSite,
  parseSitePattern,
} from "../../../src/afoot/extension/panel/site_words.js";

test("B1: why no tool can run in a tab is said in words", () => {
  assert.match(explainUnavailable("reload"), /reload it/);
  assert.equal(explainUnavailable("its probe says no"), "its probe says no");
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
