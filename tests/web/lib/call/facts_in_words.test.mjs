// A call in words: limits, approvals, answers, the calls below, and when it was.

import assert from "node:assert/strict";
import { test } from "node:test";

import {
  answerInWords,
  approvalInWords,
  childrenInWords,
  formatInstant,
  limitsInShort,
  limitsInWords,
  stateInWords,
} from "../../../../src/afoot/web/lib/call/facts_in_words.js";
import { compareMembers } from "../../../../src/afoot/web/lib/call/compare.js";
import { cellText, tableOf } from "../../../../src/afoot/web/lib/call/result_table.js";

const LIMITS = {
  idle_s: 30,
  ceiling_s: 300,
  answer_s: 600,
  queue_s: 60,
  grace_s: 5,
  start_s: 60,
  patient: false,
};

test("V1: limits are sentences, and a few words beside a list", () => {
  assert.equal(limitsInShort(LIMITS), "0:30 of silence, 5:00 in all");
  assert.equal(limitsInShort({ ...LIMITS, idle_s: null }), "5:00 in all");
  assert.equal(
    limitsInWords(LIMITS),
    "Ends after 0:30 of silence or 5:00 on the clock. You have 10:00 to answer. It may queue for 1:00, and has 5.0 s to stop when cancelled.",
  );
  assert.match(
    limitsInWords({ ...LIMITS, idle_s: null }),
    /^Ends after 5:00 on the clock. Silence alone never ends it./,
  );
  assert.match(limitsInWords({ ...LIMITS, patient: true }), /Silence counts from its first report on./);
  assert.match(
    limitsInWords({ ...LIMITS, ceiling_by_caller: true }),
    /Its caller set the limit of the clock./,
  );
});

test("V1: an approval says who gave it, where, and after how long", () => {
  const answer = {
    action: "accept",
    content: { decision: "run" },
    by: "operator",
    surface: "console",
    at: 31,
  };
  const asked = { kind: "approval", asked: 10, answer };
  assert.equal(approvalInWords({ settled: [asked] }), "Run, answered in the console after 0:21");
  assert.equal(approvalInWords({ approved: "allowlist" }), "not needed: it is on the allowlist");
  assert.equal(approvalInWords({ approved: "auto" }), "not needed");
  assert.equal(approvalInWords({ approved: "none", questions: [{ kind: "approval" }] }), "asked now");
  const form = {
    kind: "form",
    asked: 0,
    answer: { ...answer, content: { who: ["ops", "editors"], n: 2 }, surface: "panel" },
  };
  assert.equal(answerInWords(form), "ops, editors, 2, answered in the side panel after 0:31");
  assert.equal(answerInWords({ kind: "form", asked: 0 }), "closed without an answer");
});

test("V1: the calls below are counted by state", () => {
  assert.equal(childrenInWords([]), "none");
  assert.equal(childrenInWords([{ state: "done" }, { state: "done" }]), "2, all done");
  assert.equal(
    childrenInWords([{ state: "done" }, { state: "failed" }, { state: "done" }]),
    "3: 2 done, 1 failed",
  );
  assert.deepEqual([stateInWords("failed", "timed_out"), stateInWords("failed", "failed"), stateInWords("done", "ok")], ["timed out", "failed", "done"]); // prettier-ignore
});

test("V1: an instant has the day in a word", () => {
  const at = new Date(2026, 10, 15, 14, 2, 10).getTime() / 1000;
  assert.equal(formatInstant(at, new Date(2026, 10, 15, 23)), "today 14:02:10");
  assert.equal(formatInstant(at, new Date(2026, 10, 16, 1)), "yesterday 14:02:10");
  assert.equal(formatInstant(at, new Date(2026, 11, 15)), "2026-11-15 14:02:10");
});

test("V1: two runs are compared member by member, whatever the order", () => {
  const members = compareMembers({ a: 1, b: { x: 1, y: 2 }, c: "new" }, { b: { y: 2, x: 1 }, a: 2, d: null });
  assert.deepEqual(members.map(({ key, isSame }) => [key, isSame]), [["a", false], ["b", true], ["c", false], ["d", false]]); // prettier-ignore
  assert.deepEqual([members[2].before, members[3].now], [null, null]);
});

test("V1: lists of alike objects are tables, and others are not", () => {
  const rows = [{ name: "a", size: 1 }, { name: "b", size: null, state: "ok" }]; // prettier-ignore
  const table = tableOf({ section: "x", rows });
  assert.deepEqual(table.columns, [
    { key: "name", isNumber: false },
    { key: "size", isNumber: true },
    { key: "state", isNumber: false },
  ]);
  assert.deepEqual([table.rows.length, table.more], [2, { section: "x" }]);
  assert.equal(tableOf([{ a: 1 }])?.rows.length, 1);
  for (const odd of [[], [1, 2], {}, "x", null, { a: [{ x: 1 }], b: [{ y: 1 }] }, [{ a: 1 }, 2]])
    assert.equal(tableOf(odd), null);
  assert.deepEqual(
    [cellText("<b>"), cellText(null), cellText({ a: 1 }), cellText(undefined)],
    ["<b>", "", '{"a":1}', ""],
  );
});
