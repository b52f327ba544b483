// emptyState, emptyMessage and loadingRows: what a view shows while it has nothing to show.

import { get } from "../lib/api.js";
import { each, h } from "../lib/dom.js";
import { plural, safeText } from "../lib/format.js";
import { attempt } from "../lib/resource.js";
import { toolPath } from "../lib/router.js";
import { computed, onCleanup, signal } from "../lib/signal.js";
import { setTimer } from "../lib/time.js";
import { ceilingLine, frozenRing, silenceRing } from "./marks/clocks.js";
import { copyButton } from "./controls.js";
import { icon } from "./marks/icon.js";
import { progressBar } from "./marks/progress_bar.js";
import { mcpAddress } from "./shell/address.js";
import { stateIcon } from "./marks/state_icon.js";

/** @typedef {{name: string, title: string, state: string, command: string}} HostView */

const LOADING_AFTER_MS = 150;
const MOST_HOSTS = 4;
const MOST_TOOLS = 4;
/** @type {Record<string, string>} */
const HOST_WORDS = { absent: "not found", ours: "connected", unreadable: "its file cannot be read" };
const SAMPLE_SILENCE = { silence_left: 0.6, silent_s: 12, idle_s: 30, is_silence_last: false };

/**
 * The message in place of an empty list.
 * @param {() => unknown} isKnown
 * @param {() => readonly unknown[]} list
 * @param {() => Child[]} words
 */
export const emptyMessage = (isKnown, list, words) =>
  h("p.empty", { shown: () => isKnown() && !list().length }, () =>
    isKnown() && !list().length ? h("span", ...words()) : null,
  );

/** A search without a match: names the filter and offers to clear it. @param {string} what @param {string} clear an address */
export const noMatch = (what, clear) => [
  `Nothing matches ${safeText(what, 200)}. `,
  h("a", { href: clear }, "Clear the filter"),
];

/**
 * Grey rows of the true height, in place of a list that is still being fetched: after 150 ms, and until then nothing.
 * @param {() => unknown} isKnown
 * @param {number} [count]
 */
export function loadingRows(isKnown, count = 8) {
  const isLate = signal(false);
  onCleanup(setTimer(LOADING_AFTER_MS, () => isLate.set(true)));
  const rows = Array.from({ length: count }, () => h("i"));
  return h("div.loading", { "aria-hidden": "true", shown: () => isLate() && !isKnown() }, ...rows);
}

/** The page before the first call: how to connect a host, the address, a tool to run, and how to read a row. */
export function emptyState() {
  return h(
    "section.first-run",
    h("h2.greeting", "Nothing has run yet"),
    h("p.lead", "Calls appear here the moment an agent makes one. Three ways to see the first:"),
    h("div.ways", h("div.card", hostLines()), h("div.card", addressLine(), toolLines())),
    h("div.card", rowLegend()),
  );
}

/** @param {number} number @param {string} words */
const step = (number, words) => h("h3", h("i", { "aria-hidden": "true" }, String(number)), words);

function hostLines() {
  const found = signal(/** @type {HostView[]} */ ([]));
  void attempt(get("/api/hosts")).then(([answer]) => found.set(answer?.hosts ?? []));
  const isOpen = signal(false);
  const shown = () => (isOpen() ? found() : found().slice(0, MOST_HOSTS));
  const line = (/** @type {HostView} */ { title, state, command }) =>
    h(
      "li",
      h(
        "p",
        stateIcon(state === "absent" ? "queued" : "done", null),
        h("b.tool-name", title),
        h("span.faint", HOST_WORDS[state] ?? "found"),
      ),
      h("div.copy-line", h("code", command), copyButton(command, { class: "small" })),
    );
  const more = () => found().length - shown().length;
  return h(
    "div",
    step(1, "Connect a host"),
    h("p.dim", "Each line writes the host's own settings, and can be undone. Run it on the gateway's machine."),
    h("ul.hosts", each(shown, "name", line)),
    h(
      "button.quiet",
      { type: "button", shown: more, onclick: () => isOpen.set(true) },
      () => `${plural(more(), "more host")}`,
    ),
  );
}

function addressLine() {
  return h(
    "div",
    step(2, "Or give it the address"),
    h("p.dim", "Any MCP client that speaks HTTP."),
    h("div.copy-line", h("code", mcpAddress()), copyButton(mcpAddress(), { class: "small" })),
  );
}

function toolLines() {
  const tools = signal(/** @type {ToolView[] | null} */ (null));
  void attempt(get("/api/tools")).then(([answer]) => tools.set(answer?.tools ?? []));
  const first = computed(() => (tools() ?? []).slice(0, MOST_TOOLS));
  const servers = () => new Set((tools() ?? []).map(({ server }) => server)).size;
  const words = () => {
    if (tools() === null) return "";
    if (!tools()?.length) return "No tool is served yet: afoot serve tools.py";
    return `${plural(tools()?.length ?? 0, "tool")} served, from ${plural(servers(), "server")}.`;
  };
  const line = (/** @type {ToolView} */ { name, title, description }) =>
    h(
      "li",
      h("b.tool-name", safeText(name, 100)),
      h("span.dim.cut.grow", safeText((title || description || "").split("\n")[0], 200)),
      h(
        "a.button.small",
        { href: toolPath(name), "aria-label": `Run ${safeText(name, 100)}` },
        icon("play", "s"),
        "Run…",
      ),
    );
  return h("div", step(3, "Or run a tool yourself"), h("p.dim", words), h("ul.first-tools", each(first, "name", line)));
}

/** Two rows as they look, and the two clocks in words. */
function rowLegend() {
  const running = sampleReading("");
  const asked = sampleReading("asked");
  const call = /** @type {Call} */ (/** @type {unknown} */ ({ outcome: null, latest: { progress: 149, total: 240 } }));
  return h(
    "div",
    h("h3", "How to read a row"),
    h(
      "div.samples",
      { "aria-hidden": "true" },
      h(
        "div.sample",
        stateIcon("running", null),
        sampleName("export_pages", "local"),
        progressBar(
          () => call,
          "",
          () => "running",
        ),
        h("span.num", "62 %"),
        h("span.faint.num", "~0:16"),
        h("span.dim.cut", "page 149 of 240"),
        h(
          "span.clock",
          silenceRing(() => running),
          "0:12",
        ),
        h(
          "span.clock",
          ceilingLine(() => running),
          "1:46",
        ),
      ),
      h(
        "div.sample.asks",
        stateIcon("waiting", null),
        sampleName("deploy", "shop-ops"),
        h("span.t-you.mid", "asks you"),
        h("span"),
        h("span"),
        h("span.dim.cut", "checkout to production"),
        h("span.clock.t-you", frozenRing(), "9:12"),
        h(
          "span.clock",
          ceilingLine(() => asked),
          "0:48",
        ),
      ),
    ),
    h(
      "div.legend",
      h(
        "p",
        silenceRing(() => running),
        h(
          "span",
          h("b.strong", "Silence is a ring."),
          " It empties, and each report fills it again. Empty, here at 0:30, the call is ended.",
        ),
      ),
      h(
        "p",
        ceilingLine(() => running),
        h(
          "span",
          h("b.strong", "The ceiling is a line."),
          " It only fills. At the wall, here at 5:00, the call is ended, whatever it reports.",
        ),
      ),
      h(
        "p",
        frozenRing(),
        h("span", h("b.strong", "Both stand still while you are asked."), " The amber figure is your time to answer."),
      ),
    ),
  );
}

/** @param {string} tool @param {string} server */
const sampleName = (tool, server) => h("span.cut", h("b.strong", tool), " ", h("span.faint", server));

/** @param {string} frozen @returns {ClockReading} */
const sampleReading = (frozen) => ({
  ...SAMPLE_SILENCE,
  ...{ used_s: 106, ceiling_s: 300, used: frozen ? 0.16 : 0.35, is_ceiling_last: false, ceiling_left_s: 194 },
  ...{ frozen, answer_left_s: null },
});
