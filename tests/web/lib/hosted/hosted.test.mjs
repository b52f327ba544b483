// Which calls a frame in a host shows: those of the tool that the host called, and no others.
import assert from "node:assert/strict";
import { test } from "node:test";
import { inTreeOrder } from "../../../../src/afoot/web/lib/call/call_tree.js";
import { hostedCalls } from "../../../../src/afoot/web/lib/hosted/hosted.js";

const view = (id, more = {}) => ({ id, tool: "t", server: "local", caller: "c", state: "running", outcome: null, opened: 1, finished: null, progress: null, total: null, message: null, ...more }); // prettier-ignore
const told = (...calls) => ({ calls, anonymous: false });

test("V7: the call of a tool is found once, and stays the one that is shown", () => {
  const calls = hostedCalls();
  calls.showTool("export", { pages: 3 }, 7);
  const { age_s, ...asked } = calls.subject();
  assert.ok(age_s >= 0);
  assert.deepEqual(asked, { tool: "export", arguments: { pages: 3 }, request: 7 });
  calls.take(asked, told(view("a"), view("b", { parent: "a" })));
  assert.deepEqual(calls.subject(), { call: "a" });
  assert.deepEqual(
    calls.shown().map(({ call, depth }) => [call.id, depth]),
    [["a", 0], ["b", 1]], // prettier-ignore
  );
});

test("V7: an answer about other calls than those to be shown is dropped", () => {
  const calls = hostedCalls();
  calls.showTool("export", {});
  calls.take({}, told(view("of another frame")));
  assert.deepEqual(calls.shown(), []);
  assert.equal(calls.subject().tool, "export");
});

test("V7: the result of a tool says which call it was, a handle too; that of the gateway's own tools does not", () => {
  const calls = hostedCalls();
  calls.showTool("export", {});
  calls.showResult({ _meta: { "dev.afoot/call": "a" } });
  assert.deepEqual(calls.subject(), { call: "a" });
  calls.showResult({ structuredContent: { afoot_call: "b" }, _meta: { "dev.afoot/call": "b" } });
  assert.deepEqual(calls.subject(), { call: "b" });
  calls.showTool("afoot_wait", { call: "c" });
  calls.showResult({ _meta: { "dev.afoot/call": "d" } });
  assert.deepEqual(calls.subject(), { call: "c" });
  calls.showTool("afoot_calls", {});
  assert.deepEqual(calls.subject(), {});
});

test("V7: nothing is asked any more once the one call is over", () => {
  const calls = hostedCalls();
  calls.showTool("afoot_wait", { call: "a" });
  calls.take({ call: "a" }, told(view("a")));
  assert.equal(calls.isOver(), false);
  calls.take({ call: "a" }, told(view("a", { state: "finished", outcome: "ok", finished: 2 })));
  assert.equal(calls.isOver(), true);
});

test("V7: a call stands below the one that made it, in the order they were opened", () => {
  const views = [view("late", { opened: 3 }), view("child", { opened: 2, parent: "early" }), view("early")];
  const order = inTreeOrder([...views, view("orphan", { opened: 4, parent: "gone" })]);
  assert.deepEqual(
    order.map(({ call, depth }) => `${call.id} ${depth}`),
    ["early 0", "child 1", "late 0", "orphan 0"],
  );
});
