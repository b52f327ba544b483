// V1, H2: the store takes what the feed sends, and shows what has changed once a frame.
import assert from "node:assert/strict";
import test from "node:test";
import { effect } from "../../../src/afoot/web/lib/signal.js";
import { Store } from "../../../src/afoot/web/lib/store.js";

const now = () => Date.now() / 1000;
const opened = (id, more = {}) =>
  fact(id, 1, { type: "opened", tool: "export", server: "s", caller: "c", ...more });
const fact = (call, seq, body) => ({ call, seq, fact: { at: now(), ...body } });
const reading = (call, progress, readings = 1) => ({ call, readings, reading: { at: now(), progress } });
const changes = (facts, readings = []) => ({ now: now(), facts, readings, degraded: null });
const asked = (call, seq, id) =>
  fact(call, seq, { type: "asked", question: { id, key: "k", kind: "form", message: "which?" } });
const view = (id, more = {}) => ({
  ...{
    id,
    tool: "export",
    server: "s",
    caller: "c",
    state: "running",
    outcome: null,
    progress: null,
    total: null,
  },
  ...{ message: null, opened: now(), started: now(), finished: null, seq: 2, readings: 0, ...more },
});
const snapshot = (calls) => ({
  now: now(),
  epoch: "e",
  pos: 1,
  version: "1",
  degraded: null,
  calls,
  questions: [],
});

function made(isHidden = () => false) {
  const frames = [];
  const store = new Store((draw) => frames.push(draw), isHidden);
  const draw = () => frames.splice(0).forEach((one) => one());
  return { store, frames, draw };
}

test("many changes ask for one frame, and each call is told of once", () => {
  const { store, frames, draw } = made();
  store.receive("changes", changes([opened("a"), opened("b")]));
  draw();
  let [facts, numbers] = [0, 0];
  effect(() => void (store.get("a").call(), facts++));
  effect(() => void (store.get("a").reading(), numbers++));
  for (let at = 0; at < 100; at++) store.receive("changes", changes([], [reading("a", at, at + 1)]));
  assert.equal(frames.length, 1);
  draw();
  assert.deepEqual([facts, numbers], [1, 2]);
  assert.equal(store.get("a").reading().latest.progress, 99);
});

test("V6: the readings of many calls are shared out over a few frames, each call in its turn", () => {
  const { store, frames, draw } = made();
  const ids = Array.from({ length: 30 }, (_, at) => `c${at}`);
  store.receive("changes", changes(ids.map((id) => opened(id))));
  draw();
  const drawn = new Map(ids.map((id) => [id, 0]));
  for (const id of ids) effect(() => void (store.get(id).reading(), drawn.set(id, drawn.get(id) + 1)));
  drawn.clear();
  const report = (number) =>
    store.receive("changes", changes([], ids.map((id) => reading(id, number, number)))); // prettier-ignore
  report(1);
  const steps = [];
  while (frames.length) steps.push((draw(), [...drawn.values()].length));
  assert.deepEqual(steps, [5, 10, 15, 20, 25, 30]);
  drawn.clear();
  for (let frame = 0; frame < 6; frame++) (report(frame + 2), draw());
  assert.deepEqual([drawn.size, new Set(drawn.values()).size], [30, 1], "a flood leaves no call behind");
  store.receive("changes", changes([fact("c29", 2, { type: "finished", outcome: "ok" })]));
  drawn.clear();
  draw();
  assert.ok(drawn.has("c29"), "a fact is drawn with the next frame");
});

test("V6: a call that nobody looks at asks for no frame", () => {
  const { store, frames, draw } = made();
  store.receive("changes", changes([opened("a"), opened("b")]));
  draw();
  let moved = 0;
  effect(() => void (store.get("b").pulse(), moved++));
  store.receive("changes", changes([], [reading("a", 1)]));
  assert.equal(frames.length, 0);
  assert.equal(store.get("a").reading.peek().latest.progress, 1);
  store.moveClocks();
  store.moveClocks();
  assert.equal(frames.length, 1);
  draw();
  assert.equal(moved, 2);
  store.receive("changes", changes([fact("b", 2, { type: "finished", outcome: "ok" })]));
  draw();
  store.moveClocks();
  assert.equal(frames.length, 0, "the clocks of a call that ended stand still");
});

test("a reading changes no list", () => {
  const { store, draw } = made();
  store.receive("changes", changes([opened("a")]));
  draw();
  const before = store.roots();
  store.receive("changes", changes([], [reading("a", 1)]));
  draw();
  assert.equal(store.roots(), before);
});

test("a fact that is known is not taken again", () => {
  const { store, draw } = made();
  store.receive("snapshot", snapshot([view("a", { seq: 3 })]));
  store.receive("changes", changes([fact("a", 3, { type: "finished", outcome: "ok" })]));
  draw();
  assert.equal(store.get("a").call().state, "running");
  store.receive("changes", changes([fact("a", 4, { type: "finished", outcome: "ok" })]));
  assert.equal(store.get("a").call().state, "finished");
});

test("facts of a call that ended before we came are left alone", () => {
  const { store } = made();
  store.receive("changes", changes([fact("old", 9, { type: "released" })], [reading("old", 1)]));
  assert.equal(store.get("old"), undefined);
});

test("calls stand below those that made them, and are counted there", () => {
  const { store, draw } = made();
  store.receive(
    "changes",
    changes([opened("a"), opened("b", { parent: "a" }), opened("c", { parent: "b" })]),
  );
  draw();
  assert.deepEqual(store.roots().map((entry) => entry.id), ["a"]); // prettier-ignore
  assert.deepEqual(store.get("a").below().map((entry) => entry.id), ["b"]); // prettier-ignore
  assert.deepEqual(store.get("a").call().children, { total: 1, live: 1, failed: 0 });
  store.receive("changes", changes([fact("b", 2, { type: "finished", outcome: "failed" })]));
  store.receive("changes", changes([opened("d", { parent: "a" })]));
  assert.deepEqual(store.get("a").call().children, { total: 2, live: 1, failed: 1 });
});

test("V6: a flood of new calls is one change of the list", () => {
  const { store, draw } = made();
  let told = 0;
  effect(() => void (store.changed(), told++));
  store.receive("changes", changes(Array.from({ length: 10_000 }, (_, at) => opened(`c${at}`))));
  draw();
  assert.deepEqual([store.roots().length, told], [10_000, 2]);
});

test("V5: a heartbeat moves the ring, and no list", () => {
  const { store, draw } = made();
  store.receive("changes", changes([opened("a"), fact("a", 2, { type: "started" })]));
  draw();
  let told = 0;
  effect(() => void (store.changed(), told++));
  store.receive("changes", changes([], [{ call: "a", reading: null, readings: 0, heard: 77 }]));
  draw();
  assert.deepEqual([store.get("a").call.peek().clocks.heard, told], [77, 1]);
});

test("a second snapshot keeps what is shown, and drops what is no more", () => {
  const { store, draw } = made();
  store.receive("snapshot", snapshot([view("a"), view("b")]));
  draw();
  const entry = store.get("a");
  let state = "";
  effect(() => void (state = entry.call().state));
  store.receive("snapshot", snapshot([view("a", { state: "cancelling", seq: 5 })]));
  draw();
  assert.equal(store.get("a"), entry);
  assert.equal(state, "cancelling");
  assert.deepEqual(store.roots().map((one) => one.id), ["a"]); // prettier-ignore
});

test("open questions are listed oldest first, and go with their answer or their call", () => {
  const { store, draw } = made();
  const below = { id: "b.1", key: "k", kind: "below", message: "" };
  store.receive("changes", changes([opened("a"), asked("a", 2, "a.1"), opened("b"), asked("b", 2, "b.2")]));
  store.receive("changes", changes([fact("b", 3, { type: "asked", question: below })]));
  draw();
  assert.deepEqual(store.questions().map((one) => one.id), ["a.1", "b.2"]); // prettier-ignore
  store.receive("changes", changes([fact("a", 3, { type: "answered", question: "a.1", answer: {} })]));
  store.receive("changes", changes([fact("b", 4, { type: "finished", outcome: "cancelled" })]));
  draw();
  assert.deepEqual(store.questions(), []);
});

test("whoever listens is told what asks and what ends", () => {
  const { store } = made();
  const heard = [];
  const end = store.listen((kind, entry) => heard.push([kind, entry.id]));
  store.receive(
    "changes",
    changes([opened("a"), asked("a", 2, "a.1"), fact("a", 3, { type: "finished", outcome: "ok" })]),
  );
  end();
  store.receive("changes", changes([opened("b"), asked("b", 2, "b.1")]));
  assert.deepEqual(heard, [["asked", "a"], ["finished", "a"]]); // prettier-ignore
});

test("V1: an ended call stays five minutes, goes later, and not while somebody points at it", () => {
  const { store, draw } = made();
  const long = { at: now() - 400 };
  store.receive("changes", changes([opened("new"), opened("old"), opened("below", { parent: "old" })]));
  store.receive("changes", changes([fact("new", 2, { type: "finished", outcome: "ok", at: now() - 200 })]));
  store.receive("changes", changes([fact("old", 2, { type: "finished", outcome: "ok", ...long })]));
  draw();
  store.prune();
  assert.ok(store.get("old"), "something below it lives");
  store.receive("changes", changes([fact("below", 2, { type: "finished", outcome: "ok", ...long })]));
  store.pointerHeldUntil = now() + 60;
  store.prune();
  assert.ok(store.get("old"));
  store.pointerHeldUntil = 0;
  store.prune();
  assert.deepEqual([store.get("old"), store.get("below")], [undefined, undefined]);
  assert.deepEqual(store.roots().map((one) => one.id), ["new"]); // prettier-ignore
});

test("V6: what ended long ago below a live call goes, too, so that a long tree does not grow for ever", () => {
  const { store, draw } = made();
  store.receive("changes", changes([opened("a"), opened("b", { parent: "a" })]));
  store.receive("changes", changes([fact("b", 2, { type: "finished", outcome: "ok", at: now() - 400 })]));
  draw();
  store.prune();
  assert.deepEqual([store.get("b"), store.get("a").below()], [undefined, []]);
  assert.deepEqual(store.get("a").call().children, { total: 1, live: 0, failed: 0 });
});

test("V1: a call that ended stays through a reconnect, and one that ended meanwhile comes from the history", () => {
  const { store, draw } = made();
  const c = view("c", { opened: now() + 1 });
  store.receive("snapshot", snapshot([view("a"), view("b"), c]));
  store.receive("changes", changes([fact("a", 3, { type: "finished", outcome: "ok" })]));
  draw();
  store.receive("snapshot", snapshot([c]));
  draw();
  assert.deepEqual(store.roots().map((one) => one.id), ["a", "c"]); // prettier-ignore
  const ended = (id, more) => view(id, { state: "finished", outcome: "ok", finished: now(), ...more });
  store.addEnded([ended("b"), ended("a", { tool: "other" }), ended("old", { finished: now() - 400 })]);
  draw();
  assert.deepEqual(store.roots().map((one) => one.id), ["a", "c", "b"]); // prettier-ignore
  assert.equal(store.get("a").call().tool, "export");
  store.receive("changes", changes([fact("b", 1, { type: "opened", tool: "export" })]));
  assert.equal(store.get("b").call().state, "finished", "its facts are in the line of the history already");
});

test("a hidden page has no frames, but its questions are counted", () => {
  const { store, frames } = made(() => true);
  store.receive("changes", changes([opened("a"), asked("a", 2, "a.1")]));
  assert.equal(frames.length, 0);
  assert.equal(store.questions().length, 1);
});

test("a history that cannot be written is told of", () => {
  const { store } = made();
  store.receive("snapshot", snapshot([]));
  store.receive("changes", { ...changes([]), degraded: "disk full" });
  assert.equal(store.about().degraded, "disk full");
});
