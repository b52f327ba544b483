// Work that never runs twice at once.
import assert from "node:assert/strict";
import { test } from "node:test";
import { serialized } from "../../../src/afoot/extension/background/concurrency.js";

test("work that is asked for while it runs runs once more, never twice at once", async () => {
  let running = 0;
  let runs = 0;
  const work = serialized(async () => {
    assert.equal(running, 0);
    running += 1;
    await new Promise((resolve) => setImmediate(resolve));
    running -= 1;
    runs += 1;
  });
  await Promise.all([work(), work(), work()]);
  assert.equal(runs, 2);
  await work();
  assert.equal(runs, 3);
});
