// The parts of a result: what repeats is shown once, and what is copied is what the tool returned.

import assert from "node:assert/strict";
import { test } from "node:test";

import { partsOf } from "../../../src/afoot/web/components/call/result.js";

const text = (words) => [{ type: "text", text: words }];

test("V1: a text is a text, and its wrapped form is not shown beside it", () => {
  const found = partsOf({ content: text("there"), structured: { result: "there" } });
  assert.deepEqual(found, { blocks: text("there"), value: undefined, text: "there" });
  assert.equal(partsOf({ content: text("[not json") }).value, undefined);
});

test("V1: structured content that the text repeats is shown once", () => {
  const rows = [{ a: 1 }, { a: 2 }];
  const found = partsOf({ content: text(JSON.stringify(rows)), structured: { result: rows } });
  assert.deepEqual([found.blocks, found.value], [[], rows]);
  const other = partsOf({ content: text("two rows"), structured: { rows } });
  assert.deepEqual([other.blocks, other.value], [text("two rows"), { rows }]);
});

test("V1: a text that is JSON is read as such, without loss of digits", () => {
  const found = partsOf({ content: text('{"big": 12345678901234567890}') });
  assert.equal(JSON.stringify(found.value), '{"big":12345678901234567890}');
  assert.deepEqual(found.blocks, []);
});

test("V1: several blocks, or none, are what they are", () => {
  const blocks = [{ type: "image", data: "" }, ...text("x")];
  assert.deepEqual(partsOf({ content: blocks }).blocks, blocks);
  assert.deepEqual(partsOf({ content: [] }), { blocks: [], value: undefined, text: "[]" });
});
