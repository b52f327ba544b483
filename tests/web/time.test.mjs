// V1: the gateway's clock, whatever this machine's says.
import assert from "node:assert/strict";
import test from "node:test";
import { after, exactly, sync } from "../../src/afoot/web/time.js";

const near = (wanted) =>
  assert.ok(Math.abs(exactly() - wanted()) < 0.5, `${exactly()} is not near ${wanted()}`);
const here = () => Date.now() / 1000;

test("the clock follows the gateway's, and frames that were late do not set it back", () => {
  sync(here() + 100);
  near(() => here() + 100);
  sync(here() + 99);
  near(() => here() + 100);
});

test("a jump of either clock is followed", () => {
  sync(here() - 500);
  near(() => here() - 500);
});

test("what was called off does not happen", async () => {
  const done = [];
  after(1, () => done.push("off"))();
  await new Promise((resolve) => after(20, resolve));
  assert.deepEqual(done, []);
});
