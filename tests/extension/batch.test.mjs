// When reports go, and what a flood loses.
import assert from "node:assert/strict";
import test from "node:test";
import { FakeClock, load } from "./parts.mjs";

const { Batch } = load();

function start() {
  const clock = new FakeClock();
  const flushes = [];
  const batch = new Batch(clock, (reports, dropped) =>
    flushes.push([JSON.parse(reports), dropped, clock.time]),
  );
  return { batch, clock, flushes };
}

test("B4: the first report goes at once", () => {
  const { batch, flushes } = start();
  batch.add("1");
  assert.deepEqual(flushes, [[[1], 0, 1000]]);
});

test("B4: reports close behind one another go together, 8 ms later, in order", () => {
  const { batch, clock, flushes } = start();
  batch.add("1");
  batch.add("2");
  clock.turn(3);
  batch.add("3");
  assert.equal(flushes.length, 1);
  clock.turn(5);
  assert.deepEqual(flushes[1], [[2, 3], 0, 1008]);
});

test("B4: a busy loop is seen though no timer runs", () => {
  const { batch, clock, flushes } = start();
  for (let i = 0; i < 100; i += 1) {
    batch.add(String(i));
    clock.time += 1; // time goes by, timers do not
  }
  assert.equal(flushes.length, 13);
  assert.deepEqual(
    flushes.flatMap(([reports]) => reports),
    Array.from({ length: 97 }, (_, i) => i),
  );
});

test("B6: a flood loses its oldest, which are counted, never its newest", () => {
  const { batch, clock, flushes } = start();
  for (let i = 0; i <= 1000; i += 1) batch.add(String(i));
  clock.turn(8);
  const [reports, dropped] = flushes[1];
  assert.equal(reports.length, 64);
  assert.equal(reports.at(-1), 1000);
  assert.equal(dropped, 1000 - 64);
  batch.add("1001");
  clock.turn(8);
  assert.deepEqual(flushes[2].slice(0, 2), [[1001], 0]);
});

test("B4: what waits can be sent before its time, and is sent once", () => {
  const { batch, clock, flushes } = start();
  batch.add("1");
  batch.add("2");
  batch.flush();
  clock.turn(100);
  batch.flush();
  assert.deepEqual(
    flushes.map(([reports]) => reports),
    [[1], [2]],
  );
});

test("C5: a heartbeat says nothing beside a report that waits", () => {
  const { batch, clock, flushes } = start();
  const alive = '{"alive":true}';
  batch.add(alive);
  batch.add("2");
  batch.add(alive);
  clock.turn(8);
  batch.add(alive);
  batch.add(alive);
  clock.turn(8);
  assert.deepEqual(
    flushes.map(([reports]) => reports),
    [[{ alive: true }], [2], [{ alive: true }]],
  );
});
