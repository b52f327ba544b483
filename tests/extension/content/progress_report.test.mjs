// Reports as they leave the page, on the vectors that the gateway's tests read, too.
import assert from "node:assert/strict";
import test from "node:test";
import { load, readVectors } from "./load.mjs";

const { encodeReport, readReport } = load().reports;

for (const { name, given, report } of readVectors("report")) {
  test(`B4: ${name}`, () => {
    const { $tail: tail = "", ...wanted } = report;
    if (tail) wanted.message += tail;
    assert.deepEqual(JSON.parse(encodeReport(readReport(...given))), wanted);
  });
}

test("B4: a getter that breaks costs what comes behind it", () => {
  const broken = {
    progress: 1,
    get total() {
      throw new Error("no");
    },
  };
  assert.equal(encodeReport(readReport(broken)), '{"progress":1}');
});

test("B4: data that JSON does not know costs only itself", () => {
  const cycle = { progress: 3 };
  cycle.data = cycle;
  assert.equal(encodeReport(readReport(cycle)), '{"progress":3}');
  assert.equal(encodeReport(readReport({ message: "m", data: 1n })), '{"message":"m"}');
  assert.equal(encodeReport(readReport({ message: "m", data: () => 1 })), '{"message":"m"}');
});
