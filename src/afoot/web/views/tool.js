// One tool: run it, what a model sees of it, and how its runs went.

import { histogram } from "../chart.js";
import { each, h } from "../dom.js";
import { loaded, trouble } from "../load.js";
import { lasted, visible } from "../parts.js";
import { toolAt } from "../router.js";
import { callRows } from "../rows.js";
import { runner } from "../run.js";
import { ending } from "../signal.js";
import { store } from "../store.js";
import { folded, plain, structure } from "../value.js";

/** @param {Route} route */
export const title = ({ params }) => visible(params.name, 200);

const HINTS = /** @type {Record<string, [string, string]>} what is told by true, and by false */ ({
  readOnlyHint: ["only reads", "changes things"],
  destructiveHint: ["may destroy", "destroys nothing"],
  idempotentHint: ["safe to repeat", "not to be repeated"],
  openWorldHint: ["reaches the outside world", "stays inside"],
});

/** @param {Route} route @returns {HTMLElement} */
export function view({ params: { name = "" } }) {
  const { value, problem, again } = loaded(() => `/api${toolAt(name)}`);
  ending(store.listen((kind, { call }) => kind === "finished" && call.peek().tool === name && void again()));
  // What somebody types stays while the same tool is on offer, however often its runs are counted.
  const definition = () => (value() ? [{ ...value(), stats: undefined }] : []);
  const once = (/** @type {(tool: ToolView) => Element} */ make) => each(definition, JSON.stringify, make);
  const last = () => /** @type {CallView[]} */ (value()?.stats.last ?? []);
  const all = h("a.aside", { href: `/history?${new URLSearchParams({ tool: name })}` }, "all of them");
  const went = h("div.sheet", h("h2", "How it went"), () => figures(value()?.stats));
  return h(
    "section",
    trouble(problem),
    once(about),
    h("div.two", { shown: value }, once(run), went),
    once(seen),
    h("h2", { shown: () => last().length }, "Last calls ", all),
    callRows(last, "Last calls of this tool"),
  );
}

/** @param {ToolView} tool */
function about({ title, server, description, annotations, approval }) {
  const word = (/** @type {[string, string[]]} */ [key, [yes, no]]) =>
    annotations[key] === true ? yes : annotations[key] === false && no;
  const words = [approval === "ask" && "asks before it runs", ...Object.entries(HINTS).map(word)].filter(Boolean);
  const from = h("a.chip", { href: "/servers" }, `from ${visible(server, 100)}`);
  const chips = h("p.chips", from, ...words.map((word) => h("span.chip", word)));
  return h("div", chips, h("p.lead", visible([title, description].filter(Boolean).join(": "))));
}

/** @param {ToolView} tool */
function run({ name, inputSchema, approval }) {
  const hint = approval === "ask" ? "It asks in the inbox before it starts." : "";
  const how = { to: "/api/calls", body: { tool: name }, title: "Run it", label: "Run", hint };
  return runner(inputSchema, { key: `tool:${name}` }, how);
}

/** @param {Stats | undefined} stats */
function figures(stats) {
  if (!stats?.runs) return h("p.soft", "No run has ended yet. Once some have, this shows how long it usually takes.");
  const { runs, failures, p50_s: half, p95_s: most, histogram: bins } = stats;
  const time = (/** @type {number | null} */ seconds) => (seconds === null ? "unknown" : lasted(seconds));
  const share = failures ? `${failures} (${Math.max(1, Math.round((failures / runs) * 100))} %)` : "0";
  const count = runs < 200 ? runs : `newest ${runs}`;
  const rows = { "Usually (p50)": time(half), "Up to (p95)": time(most), Runs: count, Failed: share };
  const list = Object.entries(rows).map(([name, text]) => h("div", h("dt", name), h("dd", text)));
  const label = "How long the runs took";
  const plot = bins.length > 0 && histogram(bins, label, [half ?? 0, most ?? 0]);
  const hint = plot && h("p.aside", `${label}, if they ended well. The lines are p50 and p95.`);
  return h("div", h("dl.figures", ...list), plot, hint);
}

/** @param {ToolView} tool */
function seen({ name, title, description, inputSchema, outputSchema, annotations, limits, concurrency, safe }) {
  const told = Object.entries({ name, title, description, inputSchema, outputSchema, annotations });
  const text = JSON.stringify(Object.fromEntries(told.filter(([, one]) => one !== null)), null, 2);
  const inside = () => h("div", plain(text), h("h3", "Limits"), structure({ ...limits, concurrency, safe }));
  return h("div.sheet", folded(["What a model sees of it, and its limits"], inside));
}
