// V1, H1: the console folds facts as the gateway does, on the same vectors.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { applyNews, approvalOf, beginCall, callFromView, evolve } from "../../../src/afoot/web/lib/fold.js";

const vectors = JSON.parse(readFileSync(new URL("../../vectors/fold.json", import.meta.url), "utf8"));
const lines = JSON.parse(readFileSync(new URL("../../vectors/result_line.json", import.meta.url), "utf8"));
const OPENED = { type: "opened", at: 1, tool: "export", server: "tools", caller: "local", arguments: {} };

function fold(id, [first, ...rest]) {
  const call = beginCall(id, first);
  for (const fact of rest) evolve(call, fact);
  return call;
}

function summary({ id, state, outcome, attempt, seq, latest, open }) {
  const { progress = null, total = null, message = null } = latest ?? {};
  const waiting = open.size > 0;
  return { id, state, outcome, attempt, seq, progress, total, message, open: [...open.keys()], waiting };
}

for (const vector of vectors) {
  test(vector.name, () => assert.deepEqual(summary(fold(vector.call, vector.facts)), vector.summary));
}

for (const { name, result, line } of lines) {
  test(`V6: a call that ended well is listed by its result in a line: ${name}`, () => {
    const call = fold("c1", [OPENED, { type: "finished", at: 2, outcome: "ok", result }]);
    assert.equal(call.result_line, line);
  });
}

test("a call begins with opened, and is opened once", () => {
  assert.throws(() => beginCall("c1", { type: "started", at: 1 }), /does not begin with opened/);
  assert.throws(() => fold("c1", [OPENED, OPENED]), /opened twice/);
});

test("a fact of a kind that is not known only counts", () => {
  assert.equal(fold("c1", [OPENED, { type: "novelty", at: 2 }]).seq, 2);
});

test("how a call came to run is told as the gateway tells it", () => {
  const ask = { type: "asked", at: 2, question: { id: "c1.1", key: "afoot_approval", kind: "approval" } };
  const started = { type: "started", at: 3 };
  assert.equal(approvalOf(fold("c1", [OPENED, started])), "auto");
  assert.equal(approvalOf(fold("c1", [{ ...OPENED, approval: "allowlist" }, started])), "allowlist");
  assert.equal(approvalOf(fold("c1", [OPENED, ask])), "none");
  const redefined = { type: "redefined", at: 2, digest: "b" };
  assert.equal(approvalOf(fold("c1", [{ ...OPENED, approval: "ask" }, redefined, started])), "auto");
  assert.equal(approvalOf(fold("c1", [OPENED, { ...redefined, approval: "ask" }])), "none");
  assert.equal(approvalOf(fold("c1", [OPENED, ask, started])), "user");
  const answered = (by) => ({ type: "answered", at: 3, question: "c1.1", answer: { action: "accept", by } });
  assert.equal(approvalOf(fold("c1", [OPENED, ask, answered("operator"), started])), "user");
  assert.equal(approvalOf(fold("c1", [OPENED, ask, answered("local"), started])), "caller");
});

test("a call is a task since a request ended with it", () => {
  const handed = (what) => ({ type: "handed_over", at: 3, ...(what && { what }) });
  assert.equal(fold("c1", [OPENED, handed("handle")]).task, false);
  assert.equal(fold("c1", [OPENED, handed("handle"), handed()]).task, true);
  assert.equal(fold("c1", [OPENED, handed(), handed("handle")]).task, true);
});

test("what hinders a call goes when nothing does, and when it starts anew", () => {
  const hindered = { type: "hindered", at: 2, by: "its tab is hidden", hint: "show it" };
  const call = fold("c1", [OPENED, hindered]);
  assert.deepEqual(call.hindered, { by: "its tab is hidden", hint: "show it" });
  evolve(call, { type: "hindered", at: 3 });
  assert.equal(call.hindered, null);
  assert.equal(fold("c1", [OPENED, hindered, { type: "started", at: 3 }]).hindered, null);
});

test("a call whose gateway died shows nothing of its last attempt", () => {
  const admitted = { type: "admitted", at: 2, what: "starting server files" };
  const call = fold("c1", [OPENED, admitted, { type: "started", at: 2 }]);
  Object.assign(call, {
    stalled: true,
    eta: { left_s: 2 },
    rate: 2,
    hindered: { by: "x", hint: "" },
  });
  evolve(call, { type: "interrupted", at: 9, spent_s: 1 });
  const { state, starting, stalled, eta, rate, hindered } = call;
  assert.deepEqual(
    [state, starting, stalled, eta, rate, hindered],
    ["queued", undefined, false, null, null, null],
  );
});

test("V1: the newest reading replaces the one before, and its forecast with it", () => {
  const call = fold("c1", [OPENED, { type: "started", at: 2 }]);
  call.stalled = true;
  applyNews(call, { call: "c1", reading: { at: 3, progress: 4 }, readings: 7, eta: { left_s: 2 } });
  assert.deepEqual(call.latest, { at: 3, progress: 4, total: null, message: null });
  assert.deepEqual([call.readings, call.stalled, call.eta], [7, false, { left_s: 2 }]);
});

test("X1: a pending cancel is known until it is withdrawn or the call ends", () => {
  const call = fold("c1", [OPENED, { type: "started", at: 2 }]);
  const news = { call: "c1", reading: null, readings: 0 };
  applyNews(call, { ...news, cancel_due: 9 });
  assert.equal(call.cancel_due, 9);
  applyNews(call, news);
  assert.equal(call.cancel_due, null);
  applyNews(call, { ...news, cancel_due: 9 });
  evolve(call, { type: "finished", at: 9, outcome: "cancelled" });
  assert.equal(call.cancel_due, null);
});

test("calls at a gateway behind this one are known by their newest state", () => {
  const told = (...children) => ({ type: "reported", at: 3, children });
  const [first, second] = [
    { id: "r1", tool: "knit", state: "running" },
    { id: "r2", tool: "sew", state: "running", parent: "r1" },
  ];
  const ended = { ...first, state: "finished", outcome: "ok" };
  const call = fold("c1", [OPENED, { type: "started", at: 2 }, told(first, second), told(ended)]);
  assert.deepEqual(call.remote, [ended, second]);
});

test("a call of a snapshot goes on behind its last fact", () => {
  const view = {
    ...{
      id: "c1",
      tool: "export",
      server: "tools",
      caller: "local",
      state: "running",
      outcome: null,
      seq: 4,
    },
    ...{ progress: 3, total: 9, message: "page 3", opened: 1, started: 2, finished: null, approved: "user" },
    ...{
      parent: "c0",
      children: { total: 2, live: 1, failed: 0 },
      stalled: true,
      eta: { left_s: 2 },
      rate: 2,
    },
    questions: [{ id: "c1.1", key: "k", kind: "form", message: "which?", asked: 3 }],
  };
  const call = callFromView(view);
  assert.deepEqual([...call.open.keys()], ["c1.1"]);
  assert.equal(call.open.get("c1.1").at, 3);
  assert.deepEqual(
    [call.parent, call.children.total, call.stalled, approvalOf(call)],
    ["c0", 2, true, "user"],
  );
  evolve(call, { type: "answered", at: 5, question: "c1.1", answer: {} });
  evolve(call, { type: "finished", at: 6, outcome: "failed", failure: { message: "broke" } });
  assert.deepEqual([call.seq, call.state, call.failure.message, call.eta], [6, "finished", "broke", null]);
});
