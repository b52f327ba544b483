// What a context keeps of its runs until the gateway has it.
import assert from "node:assert/strict";
import test from "node:test";
import { load } from "./load.mjs";

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
  outbox.send(frame("tool.progress", "a", 1));
  outbox.send(frame("tool.progress", "a", 2));
  outbox.send(frame("tool.result", "a", 3));
  sent.length = 0;
  assert.deepEqual(outbox.running(), [{ run: "a", seq: 3 }]);
  outbox.resend();
  assert.deepEqual(sent, [frame("tool.progress", "a", 2), frame("tool.result", "a", 3)]);
});

test("B6: a settled run is forgotten, one that still runs is not", (t) => {
  const { outbox } = start(t);
  outbox.open("a");
  outbox.settle("a");
  assert.deepEqual(outbox.running(), [{ run: "a", seq: 0 }]);
  outbox.send(frame("tool.result", "a", 1));
  outbox.settle("a");
  assert.deepEqual(outbox.running(), []);
});

test("B6: a result that nobody settles is kept for 30 s", (t) => {
  const { outbox } = start(t);
  outbox.open("a");
  outbox.send(frame("tool.result", "a", 1));
  t.mock.timers.tick(29_999);
  assert.equal(outbox.running().length, 1);
  t.mock.timers.tick(1);
  assert.equal(outbox.running().length, 0);
});

test("B7: frames about runs that were not sent here, or have ended, go nowhere", (t) => {
  const { outbox, sent } = start(t);
  outbox.send(frame("tool.result", "stranger", 1));
  assert.equal(outbox.open("a"), true);
  assert.equal(outbox.open("a"), false);
  outbox.send(frame("tool.result", "a", 1));
  outbox.send(frame("tool.progress", "a", 2));
  outbox.send(frame("tool.result", "a", 3));
  assert.deepEqual(sent, [frame("tool.result", "a", 1)]);
});

const nested = (levels) => {
  let value = 1;
  for (let i = 0; i < levels; i += 1) value = [value];
  return value;
};

test("B6: what is nested too deeply for the gateway is an error at once, or left out", (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const sent = [];
  const outbox = new Outbox((frame) => sent.push(frame));
  for (const [run, levels] of [
    ["a", 501],
    ["b", 499],
  ]) {
    outbox.open(run);
    const reports = [{ message: "m", data: nested(levels) }];
    outbox.send({ method: "tool.progress", params: { run, seq: 1, reports } });
    outbox.send({ method: "tool.result", params: { run, seq: 2, value: nested(levels) } });
  }
  assert.deepEqual(sent[0].params.reports, [{ message: "m" }]);
  assert.match(sent[1].params.error.message, /nested/);
  assert.deepEqual([sent[1].params.run, sent[1].params.seq], ["a", 2]);
  assert.deepEqual([sent[2].params.reports[0].data, sent[3].params.value], [nested(499), nested(499)]);
});

test("C6: that a run waits for a person is said again, too", () => {
  const sent = [];
  const outbox = new Outbox((frame) => sent.push(frame));
  outbox.open("a");
  outbox.send({ method: "tool.asking", params: { run: "a", message: "send the form" } });
  outbox.resend();
  assert.deepEqual(sent[1], sent[0]);
  assert.equal(sent.length, 2);
});
