// V1: signals tell who depends on them, once, and nobody who has gone.
import assert from "node:assert/strict";
import test from "node:test";
import {
  batch,
  computed,
  distinct,
  effect,
  onCleanup,
  scope,
  signal,
} from "../../../src/afoot/web/lib/signal.js";

test("an effect runs at once, and again when what it read has changed", () => {
  const [one, seen] = [signal(1), []];
  effect(() => seen.push(one()));
  one.set(2);
  one.set(2);
  assert.deepEqual(seen, [1, 2]);
});

test("a touch tells of a change inside", () => {
  const [box, seen] = [signal({ n: 1 }), []];
  effect(() => seen.push(box().n));
  box.peek().n = 2;
  box.touch();
  assert.deepEqual(seen, [1, 2]);
});

test("a batch runs an effect once", () => {
  const [a, b, seen] = [signal(1), signal(1), []];
  effect(() => seen.push(a() + b()));
  batch(() => (a.set(2), b.set(3)));
  assert.deepEqual(seen, [2, 5]);
});

test("a computed value is made when read, and never seen half old", () => {
  const [n, seen] = [signal(1), []];
  let made = 0;
  const double = computed(() => (made++, n() * 2));
  assert.equal(made, 0);
  effect(() => seen.push([n(), double()]));
  n.set(2);
  assert.deepEqual(seen, [[1, 2], [2, 4]]); // prettier-ignore
  assert.equal(made, 2);
});

test("a distinct value tells only of another value, and nothing once its scope has ended", () => {
  const [number, seen] = [signal(1), []];
  const [parity, end] = scope(() => distinct(() => number() % 2));
  effect(() => seen.push(parity()));
  for (const next of [3, 5, 6, 8]) number.set(next);
  assert.deepEqual(seen, [1, 0]);
  end();
  number.set(9);
  assert.deepEqual([seen, parity()], [[1, 0], 0]);
});

test("what an effect no longer reads does not wake it", () => {
  const [which, a, seen] = [signal(true), signal("a"), []];
  effect(() => seen.push(which() ? a() : "none"));
  which.set(false);
  a.set("b");
  assert.deepEqual(seen, ["a", "none"]);
});

test("an effect ends what it began before it runs again", () => {
  const [outer, inner, seen] = [signal(0), signal(0), []];
  effect(() => {
    const at = outer();
    effect(() => seen.push([at, inner()]));
    onCleanup(() => seen.push(`end ${at}`));
  });
  outer.set(1);
  inner.set(1);
  assert.deepEqual(seen, [[0, 0], "end 0", [1, 0], [1, 1]]);
});

test("a scope ends all effects begun in it", () => {
  const [one, seen] = [signal(1), []];
  const [value, end] = scope(() => (effect(() => seen.push(one())), "made"));
  end();
  one.set(2);
  assert.equal(value, "made");
  assert.deepEqual(seen, [1]);
});

test("an effect that ends another one of the same batch is obeyed", () => {
  const [one, seen] = [signal(1), []];
  let end = () => {};
  effect(() => one() > 1 && end());
  end = effect(() => seen.push(one()));
  one.set(2);
  assert.deepEqual(seen, [1]);
});

test("an effect that throws leaves the others theirs", () => {
  const [one, seen] = [signal(1), []];
  effect(() => {
    if (one() === 2) throw new Error("broken");
  });
  effect(() => seen.push(one()));
  assert.throws(() => one.set(2), /broken/);
  one.set(3);
  assert.equal(seen.at(-1), 3);
});
