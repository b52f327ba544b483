// V1: one registry of keys: the newest registration that can act gets a key, and a hint is shown only where it would act.
import assert from "node:assert/strict";
import { beforeEach, mock, test } from "node:test";

mock.timers.enable({ apis: ["setTimeout"] });
/** An element, as far as the registry looks at one. */
class Target {
  constructor(...kinds) {
    this.kinds = kinds;
  }
  matches = (selector) => this.kinds.some((kind) => selector.split(", ").includes(kind));
  closest = (selector) => (this.matches(selector) ? this : null);
  blur = () => void (this.isLeft = true);
}
const floating = { found: null };
let listener = () => {};
Object.assign(globalThis, {
  Element: Target,
  document: { querySelector: () => floating.found },
  addEventListener: (_name, heard) => void (listener = heard),
});
const { actionOf, knownKeys, registerKeys, startKeys } = await import("../../../src/afoot/web/lib/keys.js");
const { scope, signal } = await import("../../../src/afoot/web/lib/signal.js");

startKeys();
let acted = [];
beforeEach(() => {
  acted = [];
  floating.found = null;
});

/** Press a key; whether the page kept it from the browser. */
function press(key, { target = new Target("body"), ...more } = {}) {
  const event = { key, target, repeat: false, defaultPrevented: false, ...more };
  event.preventDefault = () => void (event.defaultPrevented = true);
  listener(event);
  return event.defaultPrevented;
}

/** Keys that note that they acted, until they are dropped. */
const keys = (...actions) =>
  scope(() =>
    registerKeys(
      ...actions.map(({ keys, ...more }) => ({ keys, words: keys, act: () => acted.push(keys), ...more })),
    ),
  )[1];

test("V1: a key acts while its view is shown, and no longer", () => {
  const drop = keys({ keys: "j" });
  assert.ok(press("j"));
  drop();
  assert.ok(!press("j"));
  assert.deepEqual(acted, ["j"]);
});

test("V1: the newest registration that can act now gets the key", () => {
  const can = signal(false);
  const drops = [keys({ keys: "r" }), keys({ keys: "r", act: () => acted.push("new"), when: can })];
  press("r");
  can.set(true);
  press("r");
  assert.deepEqual(acted, ["r", "new"]);
  drops.forEach((drop) => drop());
});

test("V1: two keys lead to a view, and the second alone does not", () => {
  const drops = [keys({ keys: "g l" }), keys({ keys: "l" })];
  press("g");
  press("l");
  press("l");
  press("g");
  mock.timers.tick(1_500);
  press("l");
  assert.deepEqual(acted, ["g l", "l", "l"]);
  drops.forEach((drop) => drop());
});

test("V1: what is typed into a field, a dialog or a panel is no key, except Ctrl K", () => {
  const drop = keys({ keys: "y" }, { keys: "Ctrl K" });
  for (const kind of ["input", "textarea", "dialog", "[popover]"]) press("y", { target: new Target(kind) });
  assert.deepEqual(acted, []);
  press("k", { target: new Target("input"), ctrlKey: true });
  press("y", { ctrlKey: true });
  press("y", { altKey: true });
  assert.deepEqual(acted, ["Ctrl K"]);
  drop();
});

test("V1: Enter belongs to the button that has the focus, Escape first to what floats and to the field", () => {
  const drop = keys({ keys: "Enter" }, { keys: "Escape" });
  press("Enter", { target: new Target("button") });
  const field = new Target("input");
  press("Escape", { target: field });
  assert.ok(field.isLeft);
  floating.found = {};
  press("Escape");
  assert.deepEqual(acted, []);
  floating.found = null;
  press("Escape");
  press("Enter");
  assert.deepEqual(acted, ["Escape", "Enter"]);
  drop();
});

test("V1: a key that is held down repeats only where it moves", () => {
  const drop = keys({ keys: "j", repeats: true }, { keys: "y" });
  press("j", { repeat: true });
  press("y", { repeat: true });
  assert.deepEqual(acted, ["j"]);
  drop();
});

test("V1: the list of keys says which of them would act", () => {
  const drop = keys({ keys: "x", when: () => false }, { keys: "u" });
  assert.deepEqual(knownKeys(), [
    { keys: "x", words: "x", acts: false },
    { keys: "u", words: "u", acts: true },
  ]);
  assert.equal(actionOf("x"), undefined);
  drop();
});
