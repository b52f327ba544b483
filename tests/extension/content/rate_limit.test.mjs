// When reports go, and what a flood loses.
import assert from "node:assert/strict";
import test from "node:test";
import { FakeClock, load } from "./load.mjs";

const { RateLimit } = load();

/** A limit on a clock whose timers wait `delay(ms)` in place of `ms`. */
function start(delay = (ms) => ms) {
  const clock = new FakeClock(delay);
  const flushes = [];
  const limit = new RateLimit(clock, (reports, dropped) =>
    flushes.push([JSON.parse(reports), dropped, clock.time]),
  );
  return { limit, clock, flushes };
}

test("B4: the first report goes at once", () => {
  const { limit, flushes } = start();
  limit.add("1");
  assert.deepEqual(flushes, [[[1], 0, 1000]]);
});

test("B4: reports close behind one another go together, 8 ms later, in order", () => {
  const { limit, clock, flushes } = start();
  limit.add("1");
  limit.add("2");
  clock.turn(3);
  limit.add("3");
  assert.equal(flushes.length, 1);
  clock.turn(5);
  assert.deepEqual(flushes[1], [[2, 3], 0, 1008]);
});

test("B6: no flush comes before the whole gap, though a browser drops the fraction of a timer's delay", () => {
  const { limit, clock, flushes } = start((ms) => Math.trunc(ms));
  for (let i = 0; i < 4000; i += 1) {
    limit.add(String(i));
    clock.turn(0.3);
  }
  const gaps = flushes.slice(1).map(([, , at], before) => at - flushes[before][2]);
  assert.ok(gaps.length > 100);
  assert.ok(Math.min(...gaps) >= 8, `${Math.min(...gaps)} ms`);
  assert.ok(Math.max(...gaps) < 9.1, `${Math.max(...gaps)} ms`);
});

test("B6: a timer that fires too early waits the rest, and the report is sent once", () => {
  const { limit, clock, flushes } = start((ms) => ms / 2);
  limit.add("1");
  limit.add("2");
  clock.turn(100);
  assert.deepEqual(
    flushes.map(([reports]) => reports),
    [[1], [2]],
  );
  assert.ok(flushes[1][2] >= 1008, `${flushes[1][2]}`);
});

test("B4: a busy loop is seen though no timer runs", () => {
  const { limit, clock, flushes } = start();
  for (let i = 0; i < 100; i += 1) {
    limit.add(String(i));
    clock.time += 1; // time goes by, timers do not
  }
  assert.equal(flushes.length, 13);
  assert.deepEqual(
    flushes.flatMap(([reports]) => reports),
    Array.from({ length: 97 }, (_, i) => i),
  );
});

test("B6: a flood loses its oldest, which are counted, never its newest", () => {
  const { limit, clock, flushes } = start();
  for (let i = 0; i <= 1000; i += 1) limit.add(String(i));
  clock.turn(8);
  const [reports, dropped] = flushes[1];
  assert.equal(reports.length, 64);
  assert.equal(reports.at(-1), 1000);
  assert.equal(dropped, 1000 - 64);
  limit.add("1001");
  clock.turn(8);
  assert.deepEqual(flushes[2].slice(0, 2), [[1001], 0]);
});

test("B4: what waits can be sent before its time, and is sent once", () => {
  const { limit, clock, flushes } = start();
  limit.add("1");
  limit.add("2");
  limit.flush();
  clock.turn(100);
  limit.flush();
  assert.deepEqual(
    flushes.map(([reports]) => reports),
    [[1], [2]],
  );
});

test("C5: a heartbeat says nothing beside a report that waits", () => {
  const { limit, clock, flushes } = start();
  const alive = '{"alive":true}';
  limit.add(alive);
  limit.add("2");
  limit.add(alive);
  clock.turn(8);
  limit.add(alive);
  limit.add(alive);
  clock.turn(8);
  assert.deepEqual(
    flushes.map(([reports]) => reports),
    [[{ alive: true }], [2], [{ alive: true }]],
  );
});

test("B6: small reports keep the rate of one flush in 8 ms for as long as they come", () => {
  const { limit, clock, flushes } = start();
  for (let i = 0; i < 40_000; i += 1) {
    limit.add(`{"progress":${i}}`);
    if (i % 4 === 3) clock.turn(1);
  }
  const seen = flushes.flatMap(([reports]) => reports.map(({ progress }) => progress));
  assert.equal(seen[0], 0);
  assert.deepEqual(
    seen,
    Array.from(seen, (_, at) => at),
  );
  const gaps = flushes.slice(1).map(([, , at], before) => at - flushes[before][2]);
  assert.deepEqual([Math.min(...gaps), Math.max(...gaps)], [8, 8]);
});

test("B6: after a burst large reports are held to 500 KB a second, and the newest is always sent", () => {
  const { limit, clock, flushes } = start();
  const text = (number) => JSON.stringify([number, "x".repeat(60_000)]);
  for (let i = 0; i < 2000; i += 1) {
    limit.add(text(i), true);
    clock.turn(5);
  }
  const chars = flushes.reduce((sum, [reports]) => sum + JSON.stringify(reports).length, 0);
  assert.ok(chars < 500 * 10_000 + 3_000_000, `${chars} characters in 10 s`);
  assert.ok(chars > 500 * 10_000 * 0.8, `${chars} characters in 10 s`);
  limit.flush();
  assert.equal(flushes.at(-1)[0].at(-1)[0], 1999);
  const numbers = flushes.flatMap(([reports]) => reports.map(([number]) => number));
  assert.deepEqual(
    numbers,
    [...numbers].sort((one, other) => one - other),
  );
  const dropped = flushes.reduce((sum, [, count]) => sum + count, 0);
  assert.equal(numbers.length + dropped, 2000);
});

test("B6: after a burst reports with data are held to 500 a second", () => {
  const { limit, clock, flushes } = start();
  for (let i = 0; i < 20_000; i += 1) {
    limit.add("1", true);
    if (i % 2) clock.turn(1);
  }
  limit.flush();
  const sent = flushes.reduce((sum, [reports]) => sum + reports.length, 0);
  assert.ok(sent > 4800 && sent < 6200, `${sent} reports in 10 s`);
});

test("B6: one report is sent however large it is", () => {
  const { limit, flushes } = start();
  limit.add(JSON.stringify("x".repeat(2_000_000)));
  limit.add("1");
  limit.add(JSON.stringify("y".repeat(2_000_000)));
  limit.flush();
  assert.deepEqual(
    flushes.map(([reports, dropped]) => [reports.length, dropped]),
    [
      [1, 0],
      [1, 1],
    ],
  );
});
