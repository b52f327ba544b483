// The silence of a call over time: it rises, each report sets it back, and it stands still while a person is asked.

import assert from "node:assert/strict";
import { test } from "node:test";

import { lengthOf, outline, silenceOver } from "../../../../src/afoot/web/lib/call/silence.js";
import { treeRows } from "../../../../src/afoot/web/lib/call/spans.js";
import { asked, call, plain, story } from "./a_story.mjs";

const over = (told, now = 99, heard = []) => silenceOver(treeRows(told, now)[0], heard);
const teeth = ({ teeth }) => teeth.map(({ from, until }) => [from, until]);

test("V5: each report begins a tooth, and the longest is known", () => {
  const told = story([call("a", { finished: 20 })], plain("a", 0, 1, 20), [
    ["a", 4, "x"],
    ["a", 15, "y"],
  ]);
  const silence = over(told);
  assert.deepEqual(teeth(silence), [
    [1, 4],
    [4, 15],
    [15, 20],
  ]);
  assert.equal(lengthOf(silence.longest), 11);
  assert.equal(silence.limit_s, 30);
  assert.deepEqual([silence.spent_s, silence.asked_s], [19, 0]);
});

test("V5, C2: while a person is asked no silence grows, and it begins anew with the answer", () => {
  const silence = over(story([call("a", { finished: 30 })], [...plain("a", 0, 0, 30), ...asked("a", 5, 25)]));
  assert.deepEqual(teeth(silence), [
    [0, 5],
    [25, 30],
  ]);
  assert.deepEqual(
    silence.still.map(({ from, until }) => [from, until]),
    [[5, 25]],
  );
});

test("V5, P8: a call hears the calls below it, and says which of them was silent", () => {
  const calls = [
    call("a", { finished: 30 }),
    call("b", { tool: "render", parent: "a", opened: 1, finished: 28 }),
  ];
  const facts = [...plain("a", 0, 0, 30), ...plain("b", 1, 1, 28)];
  const silence = over(story(calls, facts, [["b", 3, "x"], ["b", 20, "y"]])); // prettier-ignore
  assert.deepEqual(teeth(silence), [
    [0, 3],
    [3, 20],
    [20, 28],
    [28, 30],
  ]);
  assert.equal(silence.where, "render");
});

test("V5, C1: the silence of a patient call counts from its first report on", () => {
  const limits = { patient: true };
  const told = story([call("a", { finished: 60 })], plain("a", 0, 0, 60, limits), [["a", 50, "x"]]);
  assert.deepEqual(teeth(over(told)), [[50, 60]]);
  assert.deepEqual(teeth(over(story([call("a", { finished: 60 })], plain("a", 0, 0, 60, limits)))), []);
});

test("V5: a silence beyond the limit had signs of life that the history does not have", () => {
  const told = story([call("a", { finished: 100 })], plain("a", 0, 0, 100), [["a", 80, "x"]]);
  const silence = over(told);
  assert.deepEqual(
    silence.teeth.map(({ isUnknown }) => isUnknown),
    [true, false],
  );
  assert.equal(lengthOf(silence.longest), 20);
  const seen = over(told, 99, [20, 40, 60]);
  assert.deepEqual(teeth(seen).slice(0, 2), [
    [0, 20],
    [20, 40],
  ]);
});

test("V5: a call without an idle limit has no line, and its silences are teeth all the same", () => {
  const silence = over(story([call("a", { finished: 100 })], plain("a", 0, 0, 100, { idle_s: null })));
  assert.equal(silence.limit_s, null);
  assert.deepEqual(silence.teeth, [{ from: 0, until: 100, isUnknown: false }]);
});

test("V5: teeth closer than a pixel are drawn as the longest of them", () => {
  const readings = Array.from({ length: 10_000 }, (_, n) => ["a", n / 10 + 0.1, "x"]);
  const silence = over(story([call("a", { finished: 1020 })], plain("a", 0, 0, 1020), readings));
  const points = outline(silence, 1020 / 400);
  assert.ok(points.length < 1300, String(points.length));
  assert.equal(Math.max(...points.map(([, silent]) => silent)).toFixed(1), "20.0");
  assert.ok(points.every(([at], n) => !n || at >= points[n - 1][0]));
});
