// A4: the arguments of an approval beside those of the last approved run.
import assert from "node:assert/strict";
import { test } from "node:test";

import { argumentRows, argumentsBefore } from "../../../src/afoot/web/components/question/arguments_table.js";
import { argumentSummary, questionSummary } from "../../../src/afoot/web/lib/call/open_questions.js";

const changed = (before) => ({ at: 1, definition: null, arguments: { before, after: "" } });

test("A4: the arguments of the last approved run are those of now, others, or unknown", () => {
  assert.equal(argumentsBefore({ a: 1 }, null), null);
  assert.deepEqual(argumentsBefore({ a: 1 }, { at: 1, definition: null, arguments: null }), { a: 1 });
  assert.deepEqual(argumentsBefore({ a: 1 }, changed('{"a": 2}')), { a: 2 });
  assert.equal(argumentsBefore({ a: 1 }, changed("")), null);
});

test("A4: a changed, a new and a removed argument are told apart from the same", () => {
  const rows = argumentRows({ a: 1, b: { c: [1] }, d: "new" }, { a: 1, b: { c: [2] }, e: "gone" });
  assert.deepEqual(
    rows.map(({ name, isChanged }) => [name, isChanged]),
    [
      ["a", false],
      ["b", true],
      ["d", true],
      ["e", true],
    ],
  );
  assert.deepEqual([rows[2].before, rows[3].now], [undefined, undefined]);
});

test("A4: without an earlier run, everything is new", () => {
  assert.ok(argumentRows({ a: 1 }, null).every(({ isChanged }) => isChanged));
});

test("A4: no argument is looked for in the prototype of an object", () => {
  const [row] = argumentRows(JSON.parse('{"constructor": 1}'), {});
  assert.deepEqual([row.now, row.before], [1, undefined]);
});

test("V1: a question in a line says what would run, or what is asked", () => {
  assert.equal(
    argumentSummary({ service: "shop", replicas: 3, env: { A: 1, B: 2 }, all: [1] }),
    "service shop, replicas 3, env {2}, all [1]",
  );
  assert.equal(argumentSummary({ key: { "dev.afoot/redacted": true } }), "key (secret)");
  assert.equal(argumentSummary({}), "no arguments");
  const form = { kind: "form", message: "Who\u202e?", schema: { properties: { a: {}, b: {} } } };
  assert.equal(questionSummary(form), "Who⟨U+202E⟩? · 2 fields");
});
