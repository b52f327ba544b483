// V1: the gateway's clock, whatever this machine's says.
import assert from "node:assert/strict";
import test from "node:test";
import { now, setTimer, startClock, preciseNow, syncClock } from "../../../src/afoot/web/lib/time.js";

const near = (wanted) =>
  assert.ok(Math.abs(preciseNow() - wanted()) < 0.5, `${preciseNow()} is not near ${wanted()}`);
const here = () => Date.now() / 1000;

test("the clock follows the gateway's, and frames that were late do not set it back", () => {
  syncClock(here() + 100);
  near(() => here() + 100);
  syncClock(here() + 99);
  near(() => here() + 100);
});

test("a jump of either clock is followed", () => {
  syncClock(here() - 500);
  near(() => here() - 500);
});

test("what was called off does not happen", async () => {
  const done = [];
  setTimer(1, () => done.push("off"))();
  await new Promise((resolve) => setTimer(20, resolve));
  assert.deepEqual(done, []);
});

test("the clock stands still while the gateway cannot be reached, and goes on when it is back", (t) => {
  t.mock.timers.enable({ apis: ["setInterval", "Date"], now: Date.now() });
  let isOnline = true;
  startClock(() => isOnline);
  t.mock.timers.tick(1000);
  const last = now.peek();
  assert.equal(last, preciseNow());
  isOnline = false;
  t.mock.timers.tick(5000);
  assert.equal(now.peek(), last);
  isOnline = true;
  t.mock.timers.tick(1000);
  assert.ok(Math.abs(now.peek() - last - 6) < 0.001);
});
