// The shared parts of the content scripts, loaded into Node as a page loads them, and a clock that tests turn.
import { readFileSync } from "node:fs";
import vm from "node:vm";

const extension = new URL("../../../src/afoot/extension/", import.meta.url);

/** Loads a list of content/files.json without what needs a document, and gives what it put together. */
export function load(list = "plugin") {
  const files = JSON.parse(readFileSync(new URL("content/files.json", extension)))[list];
  for (const file of files) vm.runInThisContext(readFileSync(new URL(file, extension), "utf8"), file);
  return globalThis[Symbol.for("dev.afoot.modules")];
}

/** What a vector says, with its abbreviations written out. */
export function spell(value) {
  if (Array.isArray(value)) return value.map(spell);
  if (typeof value !== "object" || value === null) return value;
  if (value.$repeat) return value.$repeat[0].repeat(value.$repeat[1]);
  if (value.$number) return Number(value.$number);
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, spell(inner)]));
}

export function readVectors(name) {
  return JSON.parse(readFileSync(new URL(`../../vectors/${name}.json`, import.meta.url))).vectors.map(spell);
}

/** A clock that stands still until it is turned. Its timers wait `delay(ms)`: a browser does not wait every delay whole. */
export class FakeClock {
  time = 1000;
  timers = [];

  constructor(delay = (ms) => ms) {
    this.delay = delay;
  }

  now() {
    return this.time;
  }

  later(ms, then) {
    const timer = { at: this.time + this.delay(ms), then };
    this.timers.push(timer);
    return () => (this.timers = this.timers.filter((one) => one !== timer));
  }

  turn(ms) {
    const end = this.time + ms;
    for (;;) {
      const next = this.timers.filter(({ at }) => at <= end).sort((a, b) => a.at - b.at)[0];
      if (!next) break;
      this.timers = this.timers.filter((one) => one !== next);
      this.time = next.at;
      next.then();
    }
    this.time = end;
  }
}
