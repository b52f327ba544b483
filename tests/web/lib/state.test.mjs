import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { readClocks } from "../../../src/afoot/web/lib/call/clock_reading.js";
import { applyNews, beginCall, evolve } from "../../../src/afoot/web/lib/fold.js";
import { isLive, stateOf, STATE_WORDS } from "../../../src/afoot/web/lib/state.js";

const running = { state: "running", outcome: null, open: new Map(), stalled: false, attempt: 1 };
const asking = (more) => new Map([["q", { kind: "form", ...more }]]);

test("V1: a call has one state, the most telling", () => {
  assert.equal(stateOf(running), "running");
  assert.equal(stateOf({ ...running, stalled: true }), "stalled");
  assert.equal(stateOf({ ...running, stalled: true, hindered: { by: "its tab is hidden" } }), "held_up");
  assert.equal(stateOf({ ...running, hindered: { by: "x" }, open: asking() }), "waiting");
  assert.equal(stateOf({ ...running, state: "cancelling", open: asking() }), "cancelling");
  assert.equal(stateOf({ ...running, state: "queued", attempt: 0 }), "queued");
});

test("V1: silence near its limit is stalled, whatever the gateway's forecast says", () => {
  assert.equal(stateOf(running, { is_silence_last: true }), "stalled");
  assert.equal(stateOf(running, { is_silence_last: false }), "running");
});

test("V1: a call whose child asks runs on; the child waits", () => {
  assert.equal(stateOf({ ...running, open: asking({ kind: "below" }) }), "running");
  assert.equal(stateOf({ ...running, open: asking({ below: "child.1" }) }), "running");
});

test("V1: an attempt after the first, running or still to begin, is told as such", () => {
  assert.equal(stateOf({ ...running, attempt: 2 }), "retrying");
  assert.equal(stateOf({ ...running, state: "queued", attempt: 1 }), "retrying");
});

test("V1: a call that ended is done, cancelled or failed, and no longer live", () => {
  const ended = { ...running, state: "finished" };
  assert.equal(stateOf({ ...ended, outcome: "ok" }), "done");
  assert.equal(stateOf({ ...ended, outcome: "cancelled" }), "cancelled");
  for (const outcome of ["failed", "refused", "timed_out", "lost", "uncertain"])
    assert.equal(stateOf({ ...ended, outcome }), "failed");
  assert.deepEqual(
    Object.keys(STATE_WORDS).filter((one) => !isLive(one)),
    ["done", "failed", "cancelled"],
  );
});

// The terminal agrees with the same vectors (`tests/cli/terminal/test_call_words.py`).
const vectors = JSON.parse(readFileSync(new URL("../../vectors/states.json", import.meta.url), "utf8"));

for (const { name, facts, news, at, state, word } of vectors) {
  test(`V6: the state and its word where ${name}`, () => {
    const [first, ...rest] = facts;
    const call = beginCall("c1", first);
    for (const fact of rest) evolve(call, fact);
    if (news) applyNews(call, { call: "c1", reading: null, readings: 0, ...news });
    assert.equal(stateOf(call, readClocks(call, at)), state);
    assert.equal(STATE_WORDS[state], word);
  });
}
