// A tree of calls as rows of a waterfall: each state of a call has its mark, at the instants of its facts.

import assert from "node:assert/strict";
import { test } from "node:test";

import {
  clockTimes,
  markAt,
  mostAtOnce,
  saidAround,
  treeRows,
} from "../../../../src/afoot/web/lib/call/spans.js";
import { asked, call, plain, story } from "./a_story.mjs";

const marks = (row) => row.marks.map(({ kind, from, until }) => [kind, from, until]);

test("V5: a call is queued, then runs, and ends", () => {
  const [row] = treeRows(story([call("a", { opened: 1, finished: 5 })], plain("a", 1, 2, 5)), 99);
  assert.deepEqual(marks(row), [
    ["queued", 1, 2],
    ["running", 2, 5],
  ]);
  assert.deepEqual([row.state, row.until, row.isLive], ["done", 5, false]);
});

test("V5: a live call runs up to now", () => {
  const [row] = treeRows(story([call("a", { opened: 1 })], plain("a", 1, 1, null)), 7);
  assert.deepEqual(marks(row), [["running", 1, 7]]);
  assert.equal(row.isLive, true);
});

test("V5: a call that ended in the instant of its start has a mark", () => {
  const [row] = treeRows(story([call("a", { opened: 1, finished: 1 })], plain("a", 1, 1, 1)), 99);
  assert.deepEqual(marks(row), [["running", 1, 1]]);
  const [later] = treeRows(story([call("a", { opened: 1, finished: 3 })], plain("a", 1, 3, 3)), 99);
  assert.deepEqual(marks(later), [
    ["queued", 1, 3],
    ["running", 3, 3],
  ]);
});

test("V5: while a person is asked, before or after the start, nothing else is drawn", () => {
  const facts = [...plain("a", 0, 4, 10), ...asked("a", 1, 4, { kind: "approval" }), ...asked("a", 6, 8)];
  const [row] = treeRows(story([call("a", { finished: 10 })], facts), 99);
  assert.deepEqual(marks(row), [
    ["queued", 0, 1],
    ["asked", 1, 4],
    ["running", 4, 6],
    ["asked", 6, 8],
    ["running", 8, 10],
  ]);
  assert.deepEqual(clockTimes(row.phases), { spent_s: 4, asked_s: 5 });
});

test("V5: a parent whose child asks stands still, and says for whom", () => {
  const calls = [
    call("a", { tool: "report", finished: 10 }),
    call("b", { tool: "send", parent: "a", opened: 2, finished: 9 }),
  ];
  const facts = [
    ...plain("a", 0, 0, 10),
    ...plain("b", 2, 2, 9),
    ...asked("b", 4, 6),
    ...asked("a", 4, 6, { kind: "below", below: "b.9" }),
  ];
  const [above] = treeRows(story(calls, facts), 99);
  assert.deepEqual(marks(above), [
    ["running", 0, 2],
    ["parent", 2, 4],
    ["below", 4, 6],
    ["parent", 6, 9],
    ["running", 9, 10],
  ]);
  assert.equal(markAt(above, 5).words, "clocks stand still: send asks");
});

test("V5: a silence of more than ten seconds is a mark with its limit", () => {
  const story_ = story([call("a", { finished: 40 })], plain("a", 0, 0, 40), [
    ["a", 3, "three"],
    ["a", 24, "four"],
    ["a", 33, "five"],
  ]);
  const [row] = treeRows(story_, 99);
  assert.deepEqual(marks(row), [
    ["running", 0, 3],
    ["silent", 3, 24],
    ["running", 24, 40],
  ]);
  assert.equal(markAt(row, 10).words, "silent for 0:21 of 0:30");
  assert.deepEqual(
    [saidAround(row, 10).before?.message, saidAround(row, 10).after?.message],
    ["three", "four"],
  );
  assert.deepEqual([saidAround(row, 1).before, saidAround(row, 39).after], [undefined, undefined]);
  assert.deepEqual(row.ticks, [3, 24, 33]);
});

test("V5: an attempt that was lost stays, and the next begins behind it", () => {
  const facts = [
    ...plain("a", 0, 1, 20),
    ["a", { type: "started", at: 9, attempt: 2, why: "connection closed" }],
  ];
  facts.splice(2, 0, facts.pop());
  const [row] = treeRows(story([call("a", { finished: 20 })], facts, [["a", 12, "again"]]), 99);
  assert.deepEqual(marks(row), [
    ["queued", 0, 1],
    ["lost", 1, 9],
    ["running", 9, 20],
  ]);
  assert.equal(row.marks[1].words, "attempt 1 lost, connection closed");
  assert.equal(row.attempts, 2);
});

test("V5, U4: the time without a gateway is no mark", () => {
  const facts = [
    ["a", { type: "opened", at: 0, caller: "x" }],
    ["a", { type: "started", at: 1 }],
    ["a", { type: "interrupted", at: 50, spent_s: 3 }],
    ["a", { type: "started", at: 52, attempt: 2, why: "the gateway died", spent_s: 3 }],
    ["a", { type: "finished", at: 60, outcome: "ok" }],
  ];
  const [row] = treeRows(story([call("a", { finished: 60 })], facts, [["a", 4, "so far"]]), 99);
  assert.deepEqual(marks(row), [
    ["queued", 0, 1],
    ["lost", 1, 4],
    ["queued", 50, 52],
    ["running", 52, 60],
  ]);
  assert.deepEqual(clockTimes(row.phases), { spent_s: 11, asked_s: 0 });
});

test("V5: children stand below their parent, in the order of their start, with the lines of their tree", () => {
  const calls = [
    call("a", { finished: 10 }),
    call("late", { parent: "a", opened: 5, finished: 6 }),
    call("early", { parent: "a", opened: 1, finished: 7 }),
    call("deep", { parent: "early", opened: 2, finished: 3 }),
  ];
  const rows = treeRows(
    story(
      calls,
      calls.flatMap(({ id, opened, finished }) => plain(id, opened, opened, finished)),
    ),
    99,
  );
  assert.deepEqual(
    rows.map(({ id, rails }) => [id, rails]),
    [
      ["a", []],
      ["early", [true]],
      ["deep", [true, false]],
      ["late", [false]],
    ],
  );
  assert.equal(mostAtOnce(rows), 2);
});

test("V5: calls that end in the instant in which they began ran one after the other", () => {
  const row = (from, until) => ({ from, until });
  const above = row(0, 9);
  assert.equal(mostAtOnce([above, row(1, 1), row(1, 1), row(2, 2)]), 1);
  assert.equal(mostAtOnce([above, row(1, 3), row(2, 2), row(2, 2)]), 2);
  assert.equal(mostAtOnce([above, row(1, 2), row(2, 2), row(2, 3)]), 1);
  assert.equal(mostAtOnce([above]), 0);
});

test("V5: a cancel is a mark of its own, and an unknown fact changes nothing", () => {
  const facts = [
    ...plain("a", 0, 0, 9),
    ["a", { type: "cancel_requested", at: 5, by: "operator" }],
    ["a", { type: "of_the_future", at: 6 }],
  ];
  facts.splice(2, 0, facts.pop(), facts.pop());
  const [row] = treeRows(story([call("a", { finished: 9, outcome: "cancelled" })], facts), 99);
  assert.deepEqual(marks(row), [
    ["running", 0, 5],
    ["cancelling", 5, 9],
  ]);
  assert.equal(row.state, "cancelled");
});

test("V5: a tree of 500 calls with 20,000 reports is read in a moment", () => {
  const calls = [call("top", { finished: 600 })];
  for (let n = 1; n < 500; n++)
    calls.push(call(`c${n}`, { parent: n < 20 ? "top" : `c${(n % 19) + 1}`, opened: n, finished: n + 90 }));
  const facts = calls.flatMap(({ id, opened, finished }) => plain(id, opened, opened, finished));
  const readings = Array.from({ length: 20_000 }, (_, n) => [
    `c${(n % 499) + 1}`,
    (n % 499) + 1 + (n % 80),
    `report ${n}`,
  ]);
  const told = story(calls, facts, readings);
  const times = [1, 2, 3].map(() => {
    const began = performance.now();
    assert.equal(treeRows(told, 0).length, 500);
    return performance.now() - began;
  });
  // 40 ms where nothing else runs; a time that grows with the square of the reports would be minutes.
  assert.ok(Math.min(...times) < 2000, `it took ${times} ms`);
});
