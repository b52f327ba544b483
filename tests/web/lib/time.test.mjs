// V1, V5: the gateway's clock, whatever this machine's says.
import assert from "node:assert/strict";
import test from "node:test";
import { now, preciseNow, setTimer, startClock, syncClock, tick } from "../../../src/afoot/web/lib/time.js";

const near = (wanted) =>
  assert.ok(Math.abs(preciseNow() - wanted) < 0.001, `${preciseNow()} is not near ${wanted}`);

/** The page's clock, which goes on when told to. */
function stoppedClock(t, begin = 1_000_000) {
  let at = begin;
  t.mock.method(performance, "now", () => at * 1000);
  return { pass: (seconds) => (at += seconds), here: () => at };
}

test("V5: the clock follows the gateway's, and messages that were late do not set it back", (t) => {
  const { here } = stoppedClock(t);
  syncClock(here() + 100);
  near(here() + 100);
  syncClock(here() + 99);
  near(here() + 100);
  syncClock(here() + 100.05);
  near(here() + 100.05);
});

test("V5: the date of this machine may be wrong, and may be set meanwhile", (t) => {
  const { here } = stoppedClock(t);
  syncClock(here() + 5);
  t.mock.method(Date, "now", () => 0);
  near(here() + 5);
});

test("V5: a jump of the gateway's clock is followed at once", (t) => {
  const { here } = stoppedClock(t);
  syncClock(here() + 1000);
  syncClock(here() - 500);
  near(here() - 500);
});

test("V5: what a message brings is never shown at a time that was wrong", (t) => {
  const { here } = stoppedClock(t);
  for (const gap of [7000, -300]) {
    syncClock(here() + gap);
    assert.ok(Math.abs(tick.peek() - here() - gap) < 0.001, "at once, without a step of the clock");
    assert.equal(now.peek(), tick.peek());
  }
});

test("V5: a gateway that stood still for a second is followed as soon as enough messages say so", (t) => {
  const { here, pass } = stoppedClock(t);
  syncClock(here() + 10_000);
  for (let message = 0; message < 30; message++) {
    pass(0.5);
    syncClock(here() + 9_999 - Math.abs(message - 5) / 100);
  }
  assert.ok(Math.abs(preciseNow() - here() - 9_999) < 0.2, `${preciseNow() - here()}`);
});

test("what was called off does not happen", async () => {
  const done = [];
  setTimer(1, () => done.push("off"))();
  await new Promise((resolve) => setTimer(20, resolve));
  assert.deepEqual(done, []);
});

test("V6: the clock stands still while the gateway cannot be reached, and goes on when it is back", (t) => {
  const { here, pass } = stoppedClock(t);
  t.mock.timers.enable({ apis: ["setInterval"] });
  syncClock(here() + 20_000);
  const step = (seconds) => {
    pass(seconds);
    t.mock.timers.tick(100);
  };
  let isOnline = true;
  startClock(() => isOnline);
  step(0.1);
  near(tick.peek());
  step(2);
  const last = now.peek();
  assert.equal(last, preciseNow());
  isOnline = false;
  step(5);
  assert.deepEqual([now.peek(), tick.peek()], [last, last]);
  isOnline = true;
  step(1);
  assert.ok(Math.abs(now.peek() - last - 6) < 0.001);
});
