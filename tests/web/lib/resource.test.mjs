// V1: a view has the newest answer to what it asks now, and the old one while there is none.
import assert from "node:assert/strict";
import test from "node:test";
import { busyAction, resource } from "../../../src/afoot/web/lib/resource.js";
import { scope, signal } from "../../../src/afoot/web/lib/signal.js";
import { store } from "../../../src/afoot/web/lib/store.js";
import { settle } from "../fakes.mjs";

/** A gateway that answers when it is told to. */
function gateway() {
  const asked = [];
  globalThis.fetch = (path) =>
    new Promise((resolve) => {
      const answer = (body, status = 200) => (
        resolve(new Response(JSON.stringify(body), { status })),
        settle()
      );
      asked.push({ path, answer });
    });
  return asked;
}

/** What is loaded from a path, in a view that can end. */
function viewed(path, how) {
  const [found, end] = scope(() => resource(path, how));
  return { ...found, end };
}

test("an answer to what is not asked any more is dropped", async () => {
  const [asked, path] = [gateway(), signal("/a")];
  const { value, end } = viewed(path);
  path.set("/b");
  await asked[0].answer({ of: "a" });
  assert.equal(value(), null);
  await asked[1].answer({ of: "b" });
  assert.deepEqual([value().of, asked.map((one) => one.path)], ["b", ["/a", "/b"]]);
  end();
});

test("what is wanted again while it is on its way is asked for once more, not more often", async () => {
  const asked = gateway();
  const { value, refetch, end } = viewed(() => "/a");
  for (let times = 0; times < 5; times++) void refetch();
  await asked[0].answer({ number: 1 });
  await asked[1].answer({ number: 2 });
  assert.deepEqual([value().number, asked.length], [2, 2]);
  end();
});

test("the old answer stays while there is no other, and what is wrong is told", async () => {
  const asked = gateway();
  const { value, problem, refetch, end } = viewed(() => "/a");
  await asked[0].answer({ number: 1 });
  void refetch();
  await asked[1].answer({ error: { message: "not now", category: "unavailable" } }, 503);
  assert.deepEqual([value().number, problem()], [1, "not now"]);
  void refetch();
  await asked[2].answer({ number: 3 });
  assert.deepEqual([value().number, problem()], [3, ""]);
  end();
});

test("after a snapshot everything is asked for anew, but by no view that has ended", async () => {
  const asked = gateway();
  const { end } = viewed(() => "/a");
  await asked[0].answer({});
  store.about.touch();
  assert.equal(asked.length, 2);
  end();
  await asked[1].answer({});
  store.about.touch();
  assert.equal(asked.length, 2);
});

test("without a path nothing is asked", async () => {
  const [asked, path] = [gateway(), signal("")];
  const { end } = viewed(path);
  assert.equal(asked.length, 0);
  path.set("/a");
  assert.equal(asked.length, 1);
  await asked[0].answer({});
  end();
});

test("what somebody does is done once at a time, and again after it went wrong", async () => {
  const [calls, outcomes] = [[], [Promise.reject(new Error("no")), Promise.resolve(7)]];
  const { act, busy } = busyAction(() => (calls.push(1), outcomes.shift()));
  const first = act();
  void act();
  assert.deepEqual([calls.length, busy()], [1, "true"]);
  await first;
  await act();
  assert.deepEqual([calls.length, busy()], [2, "false"]);
});
