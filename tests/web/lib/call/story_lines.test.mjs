// The story of a call: who said what, in words, with repetitions folded and nothing lost from the count.

import assert from "node:assert/strict";
import { test } from "node:test";

import {
  countLines,
  foldLines,
  storyLines,
  unfoldLines,
} from "../../../../src/afoot/web/lib/call/story_lines.js";
import { asked, call, plain, story } from "./a_story.mjs";

const told = (lines) =>
  lines.map(({ subject, words, code, note }) => [subject, words, code, note].filter(Boolean).join(" | "));
const never = () => false;

const calls = [call("a", { tool: "report", finished: 50 }), call("b", { tool: "export", parent: "a", opened: 1, finished: 40 }), call("c", { tool: "index", parent: "a", opened: 1.4, finished: 30 })]; // prettier-ignore
const facts = [
  ...plain("a", 0, 0, 50),
  ...plain("b", 1, 1, 40),
  ...plain("c", 1.4, 12.4, 30),
  ...asked("b", 20, 25),
  ...asked("a", 20, 25, { kind: "below", below: "b.1" }),
];

test("V1: calls that begin together are one line, a wait is told, a question is told once", () => {
  const lines = storyLines(story(calls, facts));
  assert.deepEqual(told(lines), [
    "Opened | by cursor",
    "export, index | started",
    "index | began after 0:11",
    "Asked: | Which? | by export",
    "ops, editors, | answered in the side panel after 5.0 s",
    "index | done",
    "export | done",
    "Done",
  ]);
});

test("V1: reports between the first and the end are one line that opens, and all are counted", () => {
  const readings = Array.from({ length: 100 }, (_, n) => ["b", 2 + n / 5, `page ${n + 1}`, n ? 1 : 0]);
  const lines = storyLines(story(calls, facts, readings));
  assert.equal(countLines(lines).message, 199);
  const folded = foldLines(lines, never);
  const fold = folded.find(({ folded: hidden }) => hidden.length);
  assert.equal(fold.words, "198 reports of export folded");
  assert.deepEqual(told(folded.filter(({ kind, folded: hidden }) => kind === "message" && !hidden.length)), [
    "export | page 1",
  ]);
  const open = unfoldLines(folded, new Set([fold.key]));
  assert.equal(open.filter(({ kind }) => kind === "message").length, 101);
});

test("V1: the newest report of a live call is shown", () => {
  const readings = Array.from({ length: 9 }, (_, n) => ["b", 2 + n, `page ${n + 1}`]);
  const shown = told(foldLines(storyLines(story(calls, facts, readings)), (id) => id === "b"));
  assert.ok(shown.includes("export | page 1") && shown.includes("export | page 9"));
  assert.ok(shown.includes("7 reports of export folded"));
});

test("V1: log lines that differ in numbers and names are alike", () => {
  const log = (at, text, level = "warning") => ["c", { type: "logged", at, text, level }];
  const all = [...facts, log(13, "font fallback for “Δ”"), log(14, "font fallback for “Ω”"), log(15, "3 left", "info"), log(16, "2 left", "info"), log(17, "done", "info")]; // prettier-ignore
  const lines = storyLines(story(calls, all));
  assert.equal(countLines(lines).log, 5);
  const shown = foldLines(lines, never).filter(({ kind }) => kind === "log");
  assert.deepEqual(told(shown), [
    "index | WARNING font fallback for “Δ” | and 1 alike",
    "index | 3 left | and 1 alike",
    "index | done",
  ]);
});

test("V1: an attempt that was lost says why, and from where the next goes on", () => {
  const more = [
    ["c", { type: "reported", at: 14, checkpoint: 1640 }],
    ["c", { type: "started", at: 20, attempt: 2, why: "connection closed (exit 137)" }],
  ];
  const lines = told(storyLines(story(calls, [...facts, ...more])));
  assert.ok(lines.includes("index | attempt 1 lost: | connection closed (exit 137)"), lines.join("\n"));
  assert.ok(lines.includes("index | attempt 2, from checkpoint 1640"));
});

test("V1: reports of two attempts are folded apart", () => {
  const more = [["b", { type: "started", at: 20, attempt: 2, why: "closed" }]];
  const readings = Array.from({ length: 30 }, (_, n) => ["b", 2 + n, `page ${n}`]);
  const folds = foldLines(storyLines(story(calls, [...facts, ...more], readings)), never).filter(
    ({ folded }) => folded.length,
  );
  assert.deepEqual(
    folds.map(({ words }) => words),
    ["17 reports of export folded", "11 reports of export folded"],
  );
});

test("V1: a failure of the call itself is told by one word here, for its words stand above", () => {
  const end = { type: "finished", at: 50, outcome: "timed_out", failure: { message: "silent for 30 s" } };
  const lines = told(
    storyLines(
      story([call("a", { finished: 50, outcome: "timed_out" })], [...plain("a", 0, 0, null), ["a", end]]),
    ),
  );
  assert.equal(lines.at(-1), "Timed out");
});

test("V1: what adds up the calls below is not told twice", () => {
  const one = story(calls, facts, [["b", 3, "page 1"]]);
  one.readings.push({
    call: "a",
    number: 999,
    reading: { at: 3, message: "page 1", source: "below" },
    left_out: 0,
  });
  assert.equal(countLines(storyLines(one)).message, 1);
});

test("V1: a text of a tool stays as it came, whatever is in it", () => {
  const hostile = "<img src=x onerror=alert(1)> \u202e \u0000";
  const lines = storyLines(story(calls, facts, [["b", 3, hostile]]));
  assert.equal(lines.find(({ kind }) => kind === "message").words, hostile);
});
