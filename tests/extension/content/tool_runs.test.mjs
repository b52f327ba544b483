// The life of a run: frames with rising numbers, one end, a reason for its abort.
import assert from "node:assert/strict";
import test from "node:test";
import { FakeClock, load } from "./load.mjs";

const { ToolRuns } = load();

function start() {
  const frames = [];
  const clock = new FakeClock();
  const runs = new ToolRuns((text) => frames.push(JSON.parse(text)), clock);
  const perform = (run, call) => runs.perform(runs.open(run, "tool"), call).catch(() => {});
  return { clock, frames, perform, runs };
}

test("B4: reports and result have rising numbers, the result last", async () => {
  const { frames, perform } = start();
  await perform("r", ({ reportProgress }) => {
    for (let i = 1; i <= 3; i += 1) reportProgress({ progress: i });
    return { done: true };
  });
  assert.deepEqual(frames, [
    { method: "tool.progress", params: { run: "r", seq: 1, reports: [{ progress: 1 }] } },
    { method: "tool.progress", params: { run: "r", seq: 2, reports: [{ progress: 2 }, { progress: 3 }] } },
    { method: "tool.result", params: { run: "r", seq: 3, value: { done: true } } },
  ]);
});

test("B4: nothing is sent after the end", async () => {
  const { clock, frames, perform } = start();
  let late;
  await perform("r", (context) => {
    late = context;
  });
  late.reportProgress("too late");
  late.alive();
  clock.turn(100);
  assert.deepEqual(frames, [{ method: "tool.result", params: { run: "r", seq: 1 } }]);
});

test("B4: parallel runs are told apart", async () => {
  const { frames, runs } = start();
  const ids = new Set();
  const call = (context) => {
    ids.add(context.toolExecutionId);
    context.reportProgress("here");
  };
  await Promise.all(["a", "b"].map((run) => runs.perform(runs.open(run, "tool"), call)));
  assert.equal(ids.size, 2);
  for (const run of ["a", "b"]) {
    const own = frames.filter(({ params }) => params.run === run).map(({ params }) => params.seq);
    assert.deepEqual(own, [1, 2]);
  }
});

test("X1: a cancel reaches the signal with its reason, and the end says that it was aborted", async () => {
  const { frames, perform, runs } = start();
  let signal;
  const done = perform("r", (context) => {
    signal = context.signal;
    return new Promise((resolve) => signal.addEventListener("abort", () => resolve("half")));
  });
  runs.cancel("r", "the user said stop");
  runs.cancel("r", "again");
  await done;
  assert.equal(signal.reason.name, "AbortError");
  assert.equal(signal.reason.message, "the user said stop");
  assert.deepEqual(frames.at(-1).params, { run: "r", seq: 1, value: "half", aborted: true });
  runs.cancel("r", "too late");
  runs.cancel("unknown", "never");
});

test("B4: a run of the page's own is told to nobody outside", async () => {
  const { frames, runs } = start();
  const heard = [];
  const one = runs.open("", "tool");
  one.onReport = (report) => heard.push(report.message);
  const value = await runs.perform(one, ({ reportProgress }) => {
    reportProgress("inside");
    return 5n;
  });
  assert.equal(value, 5n);
  assert.deepEqual(heard, ["inside"]);
  assert.deepEqual(frames, []);
});

test("B7: a run is opened once", () => {
  const { runs } = start();
  assert.ok(runs.open("r", "tool"));
  assert.equal(runs.open("r", "tool"), null);
});

const ENDS = {
  "undefined is no value": [() => undefined, {}],
  "null is a value": [() => null, { value: null }],
  "a function is no value": [() => () => 1, {}],
  "a date writes itself": [() => new Date(0), { value: "1970-01-01T00:00:00.000Z" }],
  "a string that is thrown is the message": [
    () => Promise.reject("broken"),
    { error: { name: "Error", message: "broken" } },
  ],
  "nothing that is thrown": [
    () => Promise.reject(undefined),
    { error: { name: "Error", message: "undefined" } },
  ],
  "an error keeps its words": [
    () => {
      throw Object.assign(new RangeError("far"), { code: 7, category: "validation", retryAfterMs: 5 });
    },
    { error: { name: "RangeError", message: "far", code: "7", category: "validation", retryAfterMs: 5 } },
  ],
  "an error without words has its name": [
    () => {
      throw new TypeError();
    },
    { error: { name: "TypeError", message: "TypeError" } },
  ],
};
for (const [name, [call, wanted]] of Object.entries(ENDS)) {
  test(`B4: ${name}`, async () => {
    const { frames, perform } = start();
    await perform("r", call);
    assert.deepEqual(frames, [{ method: "tool.result", params: { run: "r", seq: 1, ...wanted } }]);
  });
}

const cycle = {};
cycle.self = cycle;
const MISTAKES = {
  "a cycle": [() => cycle, /cannot be written as JSON: Converting circular/],
  "a big integer": [() => ({ n: 1n }), /cannot be written as JSON: .*BigInt/],
  "an async generator": [() => (async function* () {})(), /async generator/],
  "something too large": [() => "x".repeat(33 * 1024 * 1024), /at most 33554432/],
  "an error that cannot be read": [
    () => {
      throw {
        get message() {
          throw new Error();
        },
        toString() {
          throw new Error();
        },
      };
    },
    /cannot be read/,
  ],
};
for (const [name, [call, words]] of Object.entries(MISTAKES)) {
  test(`B4: ${name} ends the run with a clear error`, async () => {
    const { frames, perform } = start();
    await perform("r", call);
    assert.equal(frames.length, 1);
    assert.match(frames[0].params.error.message, words);
    assert.ok(!frames[0].params.error.message.includes("\n"));
  });
}

test("B7: what a page did to all objects does not reach the frames", async () => {
  const { frames, perform } = start();
  Object.prototype.toJSON = Array.prototype.toJSON = () => "forged";
  try {
    await perform("r", ({ reportProgress }) => {
      reportProgress({ progress: 1, data: { list: [1, { a: 2 }], at: new Date(0) } });
      return [{ deep: [true] }];
    });
  } finally {
    delete Object.prototype.toJSON;
    delete Array.prototype.toJSON;
  }
  assert.deepEqual(frames[0].params.reports, [
    { progress: 1, data: { list: [1, { a: 2 }], at: "1970-01-01T00:00:00.000Z" } },
  ]);
  assert.deepEqual(frames[1].params.value, [{ deep: [true] }]);
});
