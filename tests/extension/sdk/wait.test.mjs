// The SDK's waits in a context whose carrier rings: no timer of the page is used, and time is the test's own.
import assert from "node:assert/strict";
import { test } from "node:test";
import { loadSDK } from "./load.mjs";

const INSIDE = [
  "runtime",
  "setTimer",
  "fireTimers",
  "renewTimers",
  "resolveLookup",
  "resendLookups",
  "pendingLookups",
];

/** An SDK in a room: `frames` is what the carrier was sent, `pass(ms)` lets time go by as the carrier does. */
function makeRoom(t) {
  const sdk = loadSDK(INSIDE);
  const frames = [];
  let now = 1000;
  t.mock.method(performance, "now", () => now);
  const timers = t.mock.method(globalThis, "setTimeout");
  sdk.runtime.send = (method, params) => frames.push({ method, params, due: now + (params.ms ?? 0) }) > 0;
  const pass = async (ms) => {
    await settle();
    const end = now + ms;
    for (;;) {
      const asked = frames.filter((frame) => frame.method === "wake" && !frame.rung && frame.due <= end);
      const wake = asked.toSorted((one, other) => one.due - other.due)[0];
      if (!wake) break;
      now = Math.max(now, wake.due);
      wake.rung = true;
      sdk.fireTimers();
      await settle();
    }
    now = end;
  };
  return { ...sdk, frames, pass, timers };
}

/** Lets everything that is due happen. */
function settle() {
  return new Promise(setImmediate);
}

/** A context whose signs of life are counted. */
function makeContext() {
  const stop = new AbortController();
  const context = { signal: stop.signal, beats: 0, alive: () => (context.beats += 1) };
  return { context, stop };
}

test("B2: a sleep is ended by the carrier, not by a timer of the page", async (t) => {
  const { sleep, pass, frames, timers } = makeRoom(t);
  let woken = false;
  const slept = sleep(700).then(() => (woken = true));
  await pass(699);
  assert.equal(woken, false);
  await pass(1);
  await slept;
  assert.deepEqual(frames[0].params, { id: "w1", ms: 700 });
  assert.equal(timers.mock.callCount(), 0);
});

test("B2: many sleeps at once ask for one ring at a time", async (t) => {
  const { sleep, pass, frames } = makeRoom(t);
  const order = [];
  const all = [300, 100, 200, 100].map((ms, i) => sleep(ms).then(() => order.push(i)));
  assert.equal(frames.length, 2); // for 300, then for 100
  await pass(400);
  await Promise.all(all);
  assert.deepEqual(order, [1, 3, 2, 0]);
});

test("B2: a ring that comes too early or too often ends no sleep", async (t) => {
  const { sleep, pass, fireTimers } = makeRoom(t);
  let woken = 0;
  const slept = sleep(500).then(() => (woken += 1));
  for (let i = 0; i < 5; i += 1) fireTimers();
  await settle();
  assert.equal(woken, 0);
  await pass(500);
  await slept;
  fireTimers();
  await settle();
  assert.equal(woken, 1);
});

test("B6: a carrier that is gone is replaced by a timer, one that is back is asked again", async (t) => {
  const { sleep, pass, runtime, renewTimers, timers, frames } = makeRoom(t);
  const send = runtime.send;
  const slept = sleep(500);
  runtime.send = () => false;
  renewTimers();
  assert.equal(timers.mock.calls[0].arguments[1], 500);
  await pass(0);
  runtime.send = send;
  frames.length = 0;
  renewTimers();
  assert.deepEqual(frames[0].params, { id: "w3", ms: 500 });
  await pass(500);
  await slept;
  clearTimeout(timers.mock.calls[0].result);
});

test("C5: a wait gives a sign of life every 5 s, and none when it is over", async (t) => {
  const { sleep, pass } = makeRoom(t);
  const { context } = makeContext();
  const slept = sleep(12_000, { context });
  await pass(4_999);
  assert.equal(context.beats, 0);
  await pass(1);
  assert.equal(context.beats, 1);
  await pass(7_000);
  await slept;
  assert.equal(context.beats, 2);
  await pass(60_000);
  assert.equal(context.beats, 2);
});

test("C5: many short waits in a row give signs of life, too", async (t) => {
  const { sleep, pass } = makeRoom(t);
  const { context } = makeContext();
  const slept = (async () => {
    for (let i = 0; i < 10; i += 1) await sleep(3_000, { context });
  })();
  await pass(30_000);
  await slept;
  assert.ok(context.beats >= 5 && context.beats <= 6, String(context.beats));
});

test("C5: two waits of a run at once beat once", async (t) => {
  const { sleep, pass } = makeRoom(t);
  const { context } = makeContext();
  const slept = Promise.all([sleep(11_000, { context }), sleep(11_000, { context })]);
  await pass(11_000);
  await slept;
  assert.equal(context.beats, 2);
});

test("C5: a wait that names no run is that of the only one; of several it is nobody's", async (t) => {
  const { sleep, pass, runtime } = makeRoom(t);
  const [one, two] = [makeContext().context, makeContext().context];
  runtime.runs.add(one);
  const first = sleep(6_000);
  await pass(6_000);
  await first;
  assert.deepEqual([one.beats, two.beats], [1, 0]);
  runtime.runs.add(two);
  const second = sleep(6_000);
  await pass(6_000);
  await second;
  assert.deepEqual([one.beats, two.beats], [1, 0]);
});

test("X1: a cancelled run ends its waits with the canceller's reason, and nothing is left", async (t) => {
  const { sleep, waitUntil, retry, pass, frames } = makeRoom(t);
  const { context, stop } = makeContext();
  const reason = new Error("the person said stop");
  const waits = [
    sleep(60_000, { context }),
    waitUntil(() => false, { context, timeoutMs: 60_000 }),
    retry(() => Promise.reject(Object.assign(new Error("busy"), { retryable: true })), { context }),
  ];
  await pass(10);
  stop.abort(reason);
  for (const wait of waits) await assert.rejects(wait, reason);
  await assert.rejects(sleep(1, { context }), reason);
  const before = frames.length;
  await pass(120_000);
  assert.equal(context.beats, 0);
  assert.ok(frames.length - before <= 1); // the ring that had been asked for
});

test("B2: what is waited for in vain ends in a timeout that says what it was", async (t) => {
  const { waitUntil, pass } = makeRoom(t);
  const wait = waitUntil(() => 0, { what: "the basket", timeoutMs: 2_000 });
  const refused = assert.rejects(wait, {
    ...{ name: "ToolError", category: "timeout", retryable: true, message: "the basket: not within 2 s" },
  });
  await pass(2_000);
  await refused;
});

test("B2: waitUntil gives back what it found, and throws what the function throws", async (t) => {
  const { waitUntil, pass } = makeRoom(t);
  let looked = 0;
  const wait = waitUntil(async () => (++looked === 3 ? "there" : undefined), { intervalMs: 100 });
  await pass(200);
  assert.equal(await wait, "there");
  await assert.rejects(
    waitUntil(() => {
      throw new RangeError("no");
    }),
    RangeError,
  );
});

test("E1: only what may pass is tried again, after the pause that was asked for", async (t) => {
  const { retry, ToolError, pass } = makeRoom(t);
  const tried = [];
  const work = (attempt) => {
    tried.push(attempt);
    if (attempt < 3) throw ToolError.rateLimited("slow down", attempt === 1 ? 4_000 : undefined);
    return "done";
  };
  const answer = retry(work, { attempts: 3, delayMs: 1_000 });
  await pass(3_999);
  assert.deepEqual(tried, [1]);
  await pass(1);
  assert.deepEqual(tried, [1, 2]);
  await pass(2_000);
  assert.equal(await answer, "done");
  await assert.rejects(
    retry(() => Promise.reject(ToolError.auth("no"))),
    { category: "auth" },
  );
  const given = retry(() => Promise.reject(ToolError.timeout("late")), { attempts: 2, delayMs: 10 });
  const refused = assert.rejects(given, { category: "timeout" });
  await pass(10);
  await refused;
});

test("B2: a value of the page is asked of the carrier, again if it was gone, and not for ever", async (t) => {
  const { pageValue, frames, resolveLookup, resendLookups, pass, pendingLookups } = makeRoom(t);
  const values = () => frames.filter((frame) => frame.method === "value").map((frame) => frame.params);
  const wanted = pageValue("app.user");
  assert.deepEqual(values(), [{ id: "v1", path: "app.user" }]);
  resendLookups();
  assert.equal(values().length, 2);
  resolveLookup({ id: "v9", ok: true, value: 1 });
  resolveLookup({ id: "v1", ok: true, value: { name: "Ada" } });
  assert.deepEqual(await wanted, { name: "Ada" });
  const late = assert.rejects(pageValue("app.user"), { category: "timeout", message: /the page's app.user/ });
  await pass(5_000);
  await late;
  assert.equal(pendingLookups.size, 0);
});
