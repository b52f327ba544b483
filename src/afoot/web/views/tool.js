// One tool: run it, what a model sees of it, and how its runs went.

import { post } from "../api.js";
import { histogram } from "../chart.js";
import { each, h } from "../dom.js";
import { form } from "../form.js";
import { attempt, loaded, trouble } from "../load.js";
import { lasted, visible } from "../parts.js";
import { callAt, go } from "../router.js";
import { callRows } from "../rows.js";
import { ending, signal } from "../signal.js";
import { store } from "../store.js";
import { plain } from "../value.js";

/** @param {import("../router.js").Route} route */
export const title = ({ params }) => visible(params.name, 200);

const HINTS = /** @type {Record<string, [string, string]>} what is told by true, and by false */ ({
  readOnlyHint: ["only reads", "changes things"],
  destructiveHint: ["may destroy", "destroys nothing"],
  idempotentHint: ["safe to repeat", "not to be repeated"],
  openWorldHint: ["reaches the outside world", "stays inside"],
});

/** @param {import("../router.js").Route} route @returns {HTMLElement} */
export function view({ params: { name = "" } }) {
  const { value, problem, again } = loaded(() => `/api/tools/${encodeURIComponent(name)}`);
  ending(store.listen((kind, { call }) => kind === "finished" && call.peek().tool === name && void again()));
  // What somebody types stays while the same tool is on offer, however often its runs are counted.
  const definition = () => (value() ? [{ ...value(), stats: undefined }] : []);
  const once = (/** @type {(tool: any) => Element} */ make) => each(definition, JSON.stringify, make);
  const stats = () => value()?.stats;
  return h(
    "section",
    null,
    h("p", { class: "problem", hidden: () => !problem() }, () => visible(problem())),
    once(about),
    h("div", { class: "two", hidden: () => !value() }, once(runner), h("div", { class: "sheet" }, h("h2", null, "How it went"), () => went(stats()))), // prettier-ignore
    once(definitionOf),
    h("h2", { hidden: () => !stats()?.last.length }, "Last calls ", h("a", { class: "aside", href: `/history?${new URLSearchParams({ tool: name })}` }, "all of them")), // prettier-ignore
    callRows(() => stats()?.last ?? [], "Last calls of this tool"),
  );
}

/** @param {any} tool */
function about({ title, server, description, annotations, approval }) {
  const words = Object.entries(HINTS).map(([key, told]) => told[{ true: 0, false: 1 }[String(annotations[key])] ?? 2]); // prettier-ignore
  const chips = [approval === "ask" && "asks before it runs", ...words].filter(Boolean);
  return h(
    "div",
    null,
    h(
      "p",
      { class: "chips" },
      h("a", { class: "chip said", href: "/servers" }, `from ${visible(server, 100)}`),
      ...chips.map((word) => h("span", { class: "chip" }, word)),
    ),
    h("p", { class: "said lead" }, visible([title, description].filter(Boolean).join(": "))),
  );
}

/** @param {any} tool */
function runner({ name, inputSchema, approval }) {
  const [fields, problem, isBusy] = [form(inputSchema, { key: `tool:${name}` }), signal(""), signal(false)];
  const onsubmit = async (/** @type {Event} */ event) => {
    event.preventDefault();
    const given = fields.read();
    if (!given || isBusy.peek()) return;
    isBusy.set(true);
    const call = await attempt(problem, () => post("/api/calls", { tool: name, arguments: given.value }));
    isBusy.set(false);
    if (!call) return;
    fields.forget();
    go(callAt(call.id));
  };
  return h(
    "form",
    { class: "sheet", onsubmit, novalidate: true, "aria-label": "Run it" },
    h("h2", null, "Run it"),
    fields.node,
    trouble(problem),
    h(
      "p",
      { class: "row" },
      h("button", { class: "main", disabled: isBusy }, "Run"),
      approval === "ask" && h("span", { class: "soft" }, "It asks in the inbox before it starts."),
    ),
  );
}

/** @param {any} stats */
function went(stats) {
  if (!stats?.runs) return h("p", { class: "soft" }, "No run has ended yet. Once some have, this shows how long it usually takes."); // prettier-ignore
  const { runs, failures, p50_s: half, p95_s: most, histogram: bins } = stats;
  const fact = (/** @type {string} */ name, /** @type {string | number} */ text) =>
    h("div", null, h("dt", null, name), h("dd", null, text));
  const share = failures ? `${failures} (${Math.max(1, Math.round((failures / runs) * 100))} %)` : "0";
  const time = (/** @type {number | null} */ seconds) => (seconds === null ? "unknown" : lasted(seconds));
  const label = "How long the runs took";
  return h(
    "div",
    null,
    h(
      "dl",
      { class: "figures" },
      fact("Usually (p50)", time(half)),
      fact("Up to (p95)", time(most)),
      fact(runs < 200 ? "Runs" : "Newest runs", runs),
      fact("Failed", share),
    ),
    bins.length && histogram(bins, { label, marks: { p50: half, p95: most } }),
    bins.length && h("p", { class: "aside" }, `${label}, if they ended well. The lines are p50 and p95.`),
  );
}

/** @param {any} tool */
function definitionOf({ name, title, description, inputSchema, outputSchema, annotations, limits, ...more }) {
  const told = { name, title, description, inputSchema, outputSchema, annotations };
  const seen = Object.fromEntries(Object.entries(told).filter(([, value]) => value !== null));
  const rules = [
    ...Object.entries(limits).map(([key, limit]) => limit !== null && `${key.replace(/_s$/, "").replaceAll("_", " ")} ${lasted(limit)}`), // prettier-ignore
    more.concurrency && `${more.concurrency} at a time`,
    more.safe && "run again if what it runs on dies",
  ];
  return h(
    "details",
    { class: "sheet" },
    h("summary", null, "What a model sees of it, and its limits"),
    plain(JSON.stringify(seen, null, 2)),
    h("p", { class: "soft" }, `Limits: ${rules.filter(Boolean).join(" · ")}`),
  );
}
