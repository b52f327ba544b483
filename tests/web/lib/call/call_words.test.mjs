// V6: what a row says before the last message of its call, as the terminal says it.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { cancelInWords, tagsOf, warningOf } from "../../../../src/afoot/web/lib/call/call_words.js";
import { readClocks } from "../../../../src/afoot/web/lib/call/clock_reading.js";
import { applyNews, beginCall, evolve } from "../../../../src/afoot/web/lib/fold.js";
import { stateOf } from "../../../../src/afoot/web/lib/state.js";

// The terminal agrees with the same vectors (`tests/cli/terminal/test_call_words.py`).
const vectors = JSON.parse(readFileSync(new URL("../../../vectors/row_words.json", import.meta.url), "utf8"));

for (const { name, facts, news, destructive = [], at, tags, warning, cancel } of vectors) {
  test(`V6: tags, warning and a pending cancel where ${name}`, () => {
    const [first, ...rest] = facts;
    const call = beginCall("c1", first);
    for (const fact of rest) evolve(call, fact);
    if (news) applyNews(call, { call: "c1", reading: null, readings: 0, ...news });
    const clocks = readClocks(call, at);
    const isDestructive = destructive.some((id) => call.open.has(id));
    assert.deepEqual(tagsOf(call, isDestructive), tags);
    assert.equal(warningOf(call, stateOf(call, clocks), clocks), warning);
    assert.equal(call.cancel_due ? cancelInWords(call.cancel_due, at) : "", cancel);
  });
}
