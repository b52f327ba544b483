// What a room keeps of its runs until the gateway has it.
import assert from "node:assert/strict";
import test from "node:test";
import { load } from "./parts.mjs";

const { Outbox } = load();
const frame = (method, run, seq) => ({ method, params: { run, seq } });

function start(t) {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const sent = [];
  return { outbox: new Outbox((one) => sent.push(one)), sent };
}

test("B6: the newest progress and the result are sent again, in order", (t) => {
  const { outbox, sent } = start(t);
  outbox.open("a");
  outbox.take(frame("tool.progress", "a", 1));
  outbox.take(frame("tool.progress", "a", 2));
  outbox.take(frame("tool.result", "a", 3));
  sent.length = 0;
  assert.deepEqual(outbox.running(), [{ run: "a", seq: 3 }]);
  outbox.replay();
  assert.deepEqual(sent, [frame("tool.progress", "a", 2), frame("tool.result", "a", 3)]);
});

test("B6: a settled run is forgotten, one that still runs is not", (t) => {
  const { outbox } = start(t);
  outbox.open("a");
  outbox.settle("a");
  assert.deepEqual(outbox.running(), [{ run: "a", seq: 0 }]);
  outbox.take(frame("tool.result", "a", 1));
  outbox.settle("a");
  assert.deepEqual(outbox.running(), []);
});

test("B6: a result that nobody settles is kept for 30 s", (t) => {
  const { outbox } = start(t);
  outbox.open("a");
  outbox.take(frame("tool.result", "a", 1));
  t.mock.timers.tick(29_999);
  assert.equal(outbox.running().length, 1);
  t.mock.timers.tick(1);
  assert.equal(outbox.running().length, 0);
});

test("B7: frames about runs that were not sent here, or have ended, go nowhere", (t) => {
  const { outbox, sent } = start(t);
  outbox.take(frame("tool.result", "stranger", 1));
  assert.equal(outbox.open("a"), true);
  assert.equal(outbox.open("a"), false);
  outbox.take(frame("tool.result", "a", 1));
  outbox.take(frame("tool.progress", "a", 2));
  outbox.take(frame("tool.result", "a", 3));
  assert.deepEqual(sent, [frame("tool.result", "a", 1)]);
});
