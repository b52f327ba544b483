// V5: the clocks of a call at an instant, on the vectors that the gateway's engine agrees with.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { readClocks } from "../../../../src/afoot/web/lib/call/clock_reading.js";
import { applyNews, beginCall, callFromView, evolve } from "../../../../src/afoot/web/lib/fold.js";

const vectors = JSON.parse(readFileSync(new URL("../../../vectors/clocks.json", import.meta.url), "utf8"));
const OPENED = { type: "opened", at: 10, tool: "t", server: "s", caller: "c", arguments: {} };

function folded({ facts: [first, ...rest], heard, readings = 0, clocks }) {
  const call = beginCall("c1", first);
  for (const fact of rest) evolve(call, fact);
  // The gateway sends the newest sign of life, whether it is a fact or not.
  if (heard !== undefined) applyNews(call, { call: "c1", reading: null, readings, heard: clocks.heard });
  return call;
}

/** The instant at which the first clock fires, if nothing is heard until then. */
function firesAt(call, at) {
  const { frozen, idle_s, silent_s, ceiling_left_s, answer_left_s } = readClocks(call, at);
  if (answer_left_s !== null) return at + answer_left_s;
  if (frozen) return null;
  return at + Math.min(ceiling_left_s, idle_s === null ? Infinity : idle_s - silent_s);
}

for (const vector of vectors) {
  test(`V5: ${vector.name}`, () => {
    const call = folded(vector);
    const { below, ...clocks } = vector.clocks;
    assert.deepEqual(call.clocks, clocks);
    assert.deepEqual(readClocks(call, vector.at), vector.reading);
    if (!below) assert.equal(firesAt(call, vector.at), vector.fires?.at ?? null);
  });

  test(`V5: ${vector.name}, of a snapshot`, () => {
    const { state, open, opened, outcome } = folded(vector);
    const questions = [...open.values()].filter(({ kind }) => kind !== "below");
    const view = { id: "c1", state, outcome, opened, progress: null, message: null, clocks: vector.clocks };
    const call = callFromView({
      ...view,
      questions: questions.map(({ id, at, kind }) => ({ id, kind, asked: at })),
    });
    assert.deepEqual(readClocks(call, vector.at), vector.reading);
  });
}

/** Some of the figures of a reading. */
const readingOf = (call, at) => {
  const { silent_s, used_s, frozen, answer_left_s } = readClocks(call, at);
  return { silent_s, used_s, frozen, answer_left_s };
};

test("V5: the last quarter of silence and the last tenth of the ceiling are told", () => {
  const call = folded({ facts: [OPENED, { type: "started", at: 10 }], clocks: {} });
  const told = (at) => {
    const { is_silence_last, is_ceiling_last } = readClocks(call, at);
    return [is_silence_last, is_ceiling_last];
  };
  assert.deepEqual(told(32.4), [false, false]);
  assert.deepEqual(told(32.5), [true, false]);
  applyNews(call, { call: "c1", reading: null, readings: 1, heard: 278 });
  assert.deepEqual(told(279.9), [false, false]);
  assert.deepEqual(told(280), [false, true]);
  evolve(call, { type: "asked", at: 300, question: { id: "a", key: "k", kind: "form" } });
  assert.deepEqual(told(310), [false, false], "nothing is urgent while the clocks stand still");
});

test("V5: shares stay between nothing and all, whatever the page's clock says", () => {
  const call = folded({ facts: [OPENED, { type: "started", at: 10 }] });
  const early = readClocks(call, 5);
  assert.deepEqual([early.silent_s, early.silence_left, early.used_s, early.used], [0, 1, 0, 0]);
  const late = readClocks(call, 5000);
  assert.deepEqual([late.silence_left, late.used, late.ceiling_left_s], [0, 1, 0]);
  evolve(call, { type: "asked", at: 20, question: { id: "a", key: "k", kind: "form" } });
  const lefts = [19.9, 21, 5000].map((at) => readClocks(call, at).answer_left_s);
  assert.deepEqual(lefts, [600, 599, 0], "no more than the limit");
});

test("V5: a question below that is answered lets the clocks of a snapshot go on", () => {
  const clocks = { idle_s: 30, ceiling_s: 300, answer_s: 600, heard: 12, spent_s: 8, since: null };
  const view = { id: "c1", state: "running", outcome: null, opened: 10, progress: null, message: null };
  const call = callFromView({ ...view, clocks: { ...clocks, below: ["a", "b"] } });
  evolve(call, { type: "answered", at: 40, question: "a", answer: {} });
  assert.equal(readClocks(call, 41).frozen, "below");
  evolve(call, { type: "answered", at: 50, question: "b", answer: {} });
  assert.deepEqual(readingOf(call, 51), { silent_s: 1, used_s: 9, frozen: "", answer_left_s: null });
});

test("V5: a line of the history has the time from its start to its end", () => {
  const view = { id: "c1", state: "finished", outcome: "ok", opened: 10, started: 12, finished: 20 };
  const call = callFromView({ ...view, progress: null, message: null });
  assert.deepEqual(readingOf(call, 90), { silent_s: 0, used_s: 8, frozen: "ended", answer_left_s: null });
});
