// The view of one tool: a form to run it, its statistics, and its definition as a model sees it.

import { histogram } from "../components/chart.js";
import { each, h } from "../lib/dom.js";
import { resource, errorMessage } from "../lib/resource.js";
import { formatDuration, safeText } from "../lib/format.js";
import { toolPath } from "../lib/router.js";
import { callTable } from "../components/call_table.js";
import { runForm } from "../components/run_form.js";
import { onCleanup } from "../lib/signal.js";
import { store } from "../lib/store.js";
import { collapsible, textBlock, jsonTree } from "../components/content.js";

/** @param {Route} route */
export const title = ({ params }) => safeText(params.name, 200);

const HINTS = /** @type {Record<string, [string, string]>} the texts for true and for false */ ({
  readOnlyHint: ["only reads", "changes things"],
  destructiveHint: ["may destroy", "destroys nothing"],
  idempotentHint: ["safe to repeat", "not to be repeated"],
  openWorldHint: ["reaches the outside world", "stays inside"],
});

/** @param {Route} route @returns {HTMLElement} */
export function view({ params: { name = "" } }) {
  const { value, problem, refetch } = resource(() => `/api${toolPath(name)}`);
  onCleanup(store.listen((kind, { call }) => kind === "finished" && call.peek().tool === name && void refetch()));
  // The form keeps its input while the definition stays the same, however often the statistics change.
  const definition = () => (value() ? [{ ...value(), stats: undefined }] : []);
  const once = (/** @type {(tool: ToolView) => Element} */ make) => each(definition, JSON.stringify, make);
  const last = () => /** @type {CallView[]} */ (value()?.stats.last ?? []);
  const all = h("a.aside", { href: `/history?${new URLSearchParams({ tool: name })}` }, "all of them");
  const went = h("div.sheet", h("h2", "How it went"), () => runStatistics(value()?.stats));
  return h(
    "section",
    errorMessage(problem),
    once(toolSummary),
    h("div.two", { shown: value }, once(runPanel), went),
    once(definitionPanel),
    h("h2", { shown: () => last().length }, "Last calls ", all),
    callTable(last, "Last calls of this tool"),
  );
}

/** @param {ToolView} tool */
function toolSummary({ name, own, title, server, description, annotations, approval }) {
  const word = (/** @type {[string, string[]]} */ [key, [yes, no]]) =>
    annotations[key] === true ? yes : annotations[key] === false && no;
  const words = [approval === "ask" && "asks before it runs", ...Object.entries(HINTS).map(word)].filter(Boolean);
  const from = h("a.chip", { href: "/servers" }, `from ${safeText(server, 100)}`);
  const called = own !== name && h("span.chip", `called ${safeText(own, 100)} there`);
  const chips = h("p.chips", from, called, ...words.map((word) => h("span.chip", word)));
  return h("div", chips, h("p.lead", safeText([title, description].filter(Boolean).join(": "))));
}

/** @param {ToolView} tool */
function runPanel({ name, inputSchema, approval }) {
  const hint = approval === "ask" ? "It asks in the inbox before it starts." : "";
  const how = { to: "/api/calls", body: { tool: name }, title: "Run it", label: "Run", hint };
  return runForm(inputSchema, { key: `tool:${name}` }, how);
}

/** @param {Stats | undefined} stats */
function runStatistics(stats) {
  if (!stats?.runs) return h("p.soft", "No run has ended yet. Once some have, this shows how long it usually takes.");
  const { runs, failures, p50_s: half, p95_s: most, histogram: bins } = stats;
  const time = (/** @type {number | null} */ seconds) => (seconds === null ? "unknown" : formatDuration(seconds));
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
function definitionPanel({
  name,
  title,
  description,
  inputSchema,
  outputSchema,
  annotations,
  limits,
  concurrency,
  safe,
}) {
  const told = Object.entries({ name, title, description, inputSchema, outputSchema, annotations });
  const text = JSON.stringify(Object.fromEntries(told.filter(([, one]) => one !== null)), null, 2);
  const inside = () => h("div", textBlock(text), h("h3", "Limits"), jsonTree({ ...limits, concurrency, safe }));
  return h("div.sheet", collapsible(["What a model sees of it, and its limits"], inside));
}
