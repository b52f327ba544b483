// The view of one tool: a form to run it, how its runs went, and who lets it run.

import { histogram } from "../components/tool/histogram.js";
import { callRows } from "../components/history/call_rows.js";
import { approvalFacts } from "../components/tool/approval.js";
import { runForm } from "../components/form/run_form.js";
import { collapsible, textBlock } from "../components/content.js";
import { each, h } from "../lib/dom.js";
import { formatCount, formatSpan, safeText } from "../lib/format.js";
import { callPages } from "../lib/history/call_pages.js";
import { limitsInWords } from "../lib/call/facts_in_words.js";
import { errorMessage, resource } from "../lib/resource.js";
import { toolPath } from "../lib/router.js";
import { computed, onCleanup, signal } from "../lib/signal.js";
import { store } from "../lib/store.js";

/** @param {Route} route */
export const title = ({ params }) => safeText(params.name, 200);
export const isWide = true;

const LEAST_DRAWN = 5; // runs; with fewer, a drawing says less than the figures
const LAST_RUNS = 10;
const HINTS = /** @type {Record<string, [string, string]>} the texts for true and for false */ ({
  readOnlyHint: ["only reads", "changes things"],
  destructiveHint: ["may destroy", "destroys nothing"],
  idempotentHint: ["safe to repeat", "not to be repeated"],
  openWorldHint: ["reaches the outside world", "stays inside"],
});

/** @param {Route} route @returns {HTMLElement} */
export function view({ params: { name = "" } }) {
  const { value, problem, refetch } = resource(() => `/api${toolPath(name)}`);
  const ended = signal(0);
  onCleanup(
    store.listen((kind, { call }) => {
      if (kind !== "finished" || call.peek().tool !== name) return;
      ended.set(ended.peek() + 1);
      void refetch();
    }),
  );
  // The form keeps its input while the definition stays the same, however often the statistics change.
  const definition = () => (value() ? [{ ...value(), stats: undefined }] : []);
  const once = (/** @type {(tool: ToolView) => Element} */ make) => each(definition, JSON.stringify, make);
  return h(
    "section",
    errorMessage(problem),
    h(
      "div.page",
      { shown: value },
      once(toolHead),
      h("div.page-cards", once(runCard), durationsCard(value), recentRuns(name, value, ended), once(definitionCard)),
      h("aside.page-facts", { "aria-label": "Facts" }, once(toolFacts)),
    ),
  );
}

/** @param {ToolView} tool */
function toolHead({ name, title, description, annotations }) {
  const word = (/** @type {[string, string[]]} */ [key, [yes, no]]) =>
    annotations[key] === true ? yes : annotations[key] === false && no;
  const words = Object.entries(HINTS).map(word).filter(Boolean);
  const tag = (/** @type {string} */ one) => h(one === HINTS.destructiveHint[0] ? "span.tag.bad" : "span.tag", one);
  return h(
    "div.page-head",
    h("p.page-title", { "aria-hidden": "true" }, safeText(name, 200)),
    ...words.map((one) => tag(String(one))),
    h("p.lead", safeText([title, description].filter(Boolean).join(": "))),
  );
}

/** @param {ToolView} tool */
function runCard({ name, inputSchema, approval }) {
  const hint = approval === "ask" ? "It asks for your approval before it starts." : "";
  const how = { to: "/api/calls", body: { tool: name }, title: "Run it", label: "Run", hint };
  return runForm(inputSchema, { key: `tool:${name}` }, how);
}

/** @param {() => ToolView} tool */
function durationsCard(tool) {
  const runs = () => tool()?.stats?.runs ?? 0;
  return h(
    "div.card",
    h(
      "div.card-head",
      h("h2", "Durations"),
      h("span.faint", () => (runs() < 200 ? `${runs()} runs` : `newest ${runs()} runs`)),
    ),
    h("div.card-body", () => runStatistics(tool()?.stats)),
  );
}

/** @param {Stats | undefined} stats */
function runStatistics(stats) {
  if (!stats?.runs) return h("p.faint", "No run has ended yet.");
  const { runs, failures, p50_s: half, p95_s: most, histogram: bins } = stats;
  const time = (/** @type {number | null} */ seconds) => (seconds === null ? "unknown" : formatSpan(seconds));
  const share = failures ? `${formatCount(failures)} (${Math.max(1, Math.round((failures / runs) * 100))} %)` : "0";
  const rows = { "Usually (p50)": time(half), "Up to (p95)": time(most), Failed: share };
  const list = Object.entries(rows).map(([name, text]) => h("div", h("dt", name), h("dd", text)));
  const label = "How long the runs took";
  const plot = runs >= LEAST_DRAWN && bins.length > 0 && histogram(bins, label, [half ?? 0, most ?? 0]);
  const hint = plot && h("p.faint", `${label}, if they ended well. The dashed lines are p50 and p95.`);
  return h("div", h("dl.figure-row", ...list), plot, hint);
}

/**
 * The newest runs, as the history has them.
 * @param {string} name
 * @param {() => ToolView} tool
 * @param {() => number} ended counts the runs that have ended since
 */
function recentRuns(name, tool, ended) {
  const server = computed(() => tool()?.server);
  const path = () => {
    ended();
    const query = { tool: name, state: "finished", below: "true", limit: String(LAST_RUNS) };
    return server() ? `/api/calls?${new URLSearchParams({ ...query, server: server() })}` : "";
  };
  const list = callPages(path);
  const all = `/history?${new URLSearchParams({ tool: name, range: "7d" })}`;
  return h(
    "div.card",
    { shown: () => list.calls().length },
    h("div.card-head", h("h2", "Recent runs"), h("a.push", { href: all }, "All of them")),
    errorMessage(list.problem),
    callRows(list.rows, { label: "Recent runs", fold: list.fold, isUnfolded: list.isUnfolded }),
  );
}

/** @param {ToolView} tool */
function toolFacts({ name, own, server, approval, limits, concurrency, queue, safe }) {
  const facts = {
    Server: h("a", { href: `/servers?q=${encodeURIComponent(server)}` }, safeText(server, 100)),
    "Called there": own !== name && safeText(own, 100),
    "At once": concurrency ? `${concurrency}, and ${queue} in line` : "any number",
    "After a crash": safe ? "runs again" : "does not run again by itself",
  };
  const rows = Object.entries(facts).filter(([, value]) => value);
  return h(
    "div",
    h(
      "section",
      h("h3", "Tool"),
      h("dl.fact-list", ...rows.flatMap(([name, value]) => [h("dt", name), h("dd", value)])),
    ),
    approvalFacts({ name, own, server, approval }),
    h("section", h("h3", "Limits"), h("p.dim", limitsInWords(limits))),
  );
}

/** @param {ToolView} tool */
function definitionCard({ name, title, description, inputSchema, outputSchema, annotations }) {
  const told = Object.entries({ name, title, description, inputSchema, outputSchema, annotations });
  const text = JSON.stringify(Object.fromEntries(told.filter(([, one]) => one !== null)), null, 2);
  return h(
    "div.card",
    h(
      "div.card-body",
      collapsible(["What a model sees of it"], () => textBlock(text)),
    ),
  );
}
