// V1: fuzzy search of the palette: letters in order; what stands together or begins a word comes first.
import assert from "node:assert/strict";
import { test } from "node:test";

import { rankMatches, rankOf } from "../../../src/afoot/web/components/shell/fuzzy.js";

const ranked = (query, ...texts) => rankMatches(query, texts, String);

test("V1: letters match in order only, whatever their case", () => {
  assert.deepEqual(ranked("exp", "export_pages", "pxe", "EXPLAIN"), ["export_pages", "EXPLAIN"]);
  assert.equal(rankOf("zz", "fizz buzz") !== null, true);
  assert.equal(rankOf("zzzzz", "fizz buzz"), null);
});

test("V1: the beginnings of words come before letters in the middle", () => {
  assert.deepEqual(ranked("ep", "help", "deep", "export_pages"), ["export_pages", "deep", "help"]);
  assert.deepEqual(ranked("rp", "resize_photos", "carp")[0], "resize_photos");
});

test("V1: words match in any order, and no query keeps all in their order", () => {
  assert.deepEqual(ranked("pages local", "export_pages local", "pages web"), ["export_pages local"]);
  assert.deepEqual(ranked(" ", "b", "a"), ["b", "a"]);
});

test("V1: a whole word comes before scattered letters, and long texts are cut", () => {
  assert.equal(ranked("tabs", "the archive bookshop", "Tabs")[0], "Tabs");
  assert.deepEqual(ranked("end", `${"x".repeat(300)}end`), []);
});
