// V1: one polite live region: what waits, what failed and what finished of calls that were opened, at most one in 5 s.
import assert from "node:assert/strict";
import test, { mock } from "node:test";
import { parseRoute, route } from "../../../../src/afoot/web/lib/router.js";

mock.timers.enable({ apis: ["setTimeout", "Date"], now: 1_000_000_000 });
const { announceEvents: speak } = await import("../../../../src/afoot/web/components/shell/notifications.js");
const { Store, store } = await import("../../../../src/afoot/web/lib/store.js");

globalThis.document = { hidden: true };
const told = [];
const region = { set textContent(text) { told.push(text); } }; // prettier-ignore
const facts = (...all) =>
  store.receive("changes", { facts: all.map(([call, seq, fact]) => ({ call, seq, fact })), readings: [] });
const opened = (id, tool) => [id, 1, { type: "opened", at: 1, tool, server: "s", caller: "c" }];
const asked = (id, seq) => [
  id,
  seq,
  { type: "asked", at: 2, question: { id: `${id}.${seq}`, key: "k", kind: "form", message: "which?" } },
];
const finished = (id, seq, outcome) => [id, seq, { type: "finished", at: 3, outcome }];

test("what waits is said, what nobody opened ends in silence", () => {
  assert.ok(store instanceof Store);
  speak(region);
  facts(opened("a", "export"), opened("b", "index"), finished("b", 2, "failed"), asked("a", 2));
  mock.timers.tick(1);
  assert.deepEqual(told.splice(0), ["export waits for you"]);
});

test("at most one thing is said in five seconds, and the rest is counted", () => {
  route.set(parseRoute("/calls/d"));
  facts(opened("c", "one"), opened("d", "two"), asked("c", 2), asked("d", 2), finished("d", 3, "ok"));
  mock.timers.tick(4_900);
  assert.deepEqual(told, []);
  mock.timers.tick(200);
  assert.deepEqual(told.splice(0), ["two finished, and 2 more"]);
});

test("a call that was opened says that it failed, with marks for what is not seen", () => {
  facts(opened("e", "odd\u202ename"));
  route.set(parseRoute("/calls/e"));
  facts(finished("e", 2, "timed_out"));
  mock.timers.tick(5_100);
  assert.deepEqual(told.splice(0), ["odd⟨U+202E⟩name failed"]);
});
