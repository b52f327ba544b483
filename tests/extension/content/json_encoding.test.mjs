// The size of a result.
import assert from "node:assert/strict";
import { test } from "node:test";
import { load } from "./load.mjs";

const { encoding } = load();

test("G3: a result is measured in bytes", () => {
  assert.throws(() => encoding.encodeResult("語".repeat(12_000_000)), /36000002 bytes/);
  assert.equal(encoding.encodeResult("x".repeat(12_000_000)).length, 12_000_002);
});
