// timeRange: the time that the history shows, as a row of buttons; a custom one has two fields.

import { h } from "../../lib/dom.js";
import { RANGES } from "../../lib/history/range.js";
import { navigate, withQuery } from "../../lib/router.js";
import { signal } from "../../lib/signal.js";

/** @typedef {import("../../lib/history/range.js").TimeRange} TimeRange */

const NO_SELECTION = { from: null, to: null };

/** @param {() => TimeRange} time */
export function timeRange(time) {
  const isOpen = signal(false);
  const segment = (/** @type {[string, {words: string}]} */ [name, { words }]) => {
    const href = () => withQuery({ ...NO_SELECTION, range: name, since: null, until: null });
    return h("a", { href, "aria-current": () => time().name === name && "true" }, words);
  };
  const custom = h(
    "button",
    {
      type: "button",
      "aria-expanded": () => String(isOpen()),
      "aria-pressed": () => String(!time().name),
      onclick: () => isOpen.set(!isOpen.peek()),
    },
    "Custom…",
  );
  const bar = h(
    "span.segments",
    { role: "group", "aria-label": "Time" },
    ...Object.entries(RANGES).map(segment),
    custom,
  );
  return h("span.time-range", bar, () => (isOpen() ? customForm(time(), () => isOpen.set(false)) : null));
}

/** @param {TimeRange} time @param {() => void} close */
function customForm(time, close) {
  const field = (/** @type {string} */ label, /** @type {number} */ at) => {
    const input = h("input", { type: "datetime-local", step: "1", required: true, ".value": localTime(at) });
    return { input, label: h("label", label, " ", input) };
  };
  const first = field("From", time.since);
  const last = field("to", time.until);
  const problem = signal("");
  const onsubmit = (/** @type {Event} */ event) => {
    event.preventDefault();
    const [since, until] = [first, last].map(({ input }) => new Date(input.value).getTime() / 1000);
    if (!(since < until)) return problem.set("The first time must be before the second");
    navigate(withQuery({ ...NO_SELECTION, range: null, since, until }));
    close();
  };
  return h(
    "form.custom-time",
    { onsubmit, novalidate: true, "aria-label": "Custom time" },
    first.label,
    last.label,
    h("button.small", { type: "button", onclick: close }, "Close"),
    h("button.small.main", "Show"),
    h("span.problem", { role: "alert", shown: problem }, problem),
  );
}

/** An instant as a field for local times has it. @param {number} at */
export function localTime(at) {
  const day = new Date(at * 1000);
  const two = (/** @type {number} */ part) => String(part).padStart(2, "0");
  const date = `${day.getFullYear()}-${two(day.getMonth() + 1)}-${two(day.getDate())}`;
  return `${date}T${two(day.getHours())}:${two(day.getMinutes())}:${two(day.getSeconds())}`;
}
