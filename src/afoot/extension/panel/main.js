// The side panel: shows what the worker tells, and sends the person's decisions to the worker.

import { brandMark } from "../shared/components/marks/brand_mark.js";
import { icon } from "../shared/components/marks/icon.js";
import {
  cancelButton,
  pendingCancels,
  pendingWords,
  withPendingCancel,
} from "../shared/components/narrow/narrow_cancel.js";
import { narrowRow } from "../shared/components/narrow/narrow_row.js";
import { each, h } from "../shared/lib/dom.js";
import { safeText } from "../shared/lib/format.js";
import { computed, effect, signal } from "../shared/lib/signal.js";
import { tick } from "../shared/lib/time.js";
import { connect } from "./port.js";
import { noteCardPositions, questionCards, startDeciding } from "./questions.js";
import { panelState } from "./state.js";
import { siteSection, tabSection } from "./tabs_and_sites.js";

/** @typedef {import("../shared/lib/call/call_tree.js").TreeRow} TreeRow */

/** @type {Record<string, string>} */
const LINK_WORDS = { off: "not connected", connecting: "connecting…", unpaired: "not set up" };
const MAX_INDENT = 3;

const panel = panelState();
const { state, isOnline, offline } = panel;
const panelWindow = signal(/** @type {number | undefined} */ (undefined));
const send = connect(({ method, params }) => {
  if (method === "state") panel.take(params);
  else if (method === "said") panel.decisions.take(params);
});
const cancels = pendingCancels((call) => send("stop", { call, reason: "stopped in the side panel" }));

chrome.windows.getCurrent().then((found) => panelWindow.set(found.id));
addEventListener("pagehide", cancels.flush);
document.body.append(
  topBar(),
  h("p.offline-line", { id: "why", role: "status", shown: () => whyOffline() !== "" }, whyOffline),
  h(
    "main",
    group("questions", "Waiting for you", () => state().questions.length, questionCards(panel, send)),
    group("calls", "Running", () => panel.live().length, callRows(panel.live), "Nothing runs."),
    group("ended", "Just ended", () => panel.ended().length, callRows(panel.ended)),
    tabSection(state, send),
    siteSection(state, panelWindow, send),
    userScriptNote(),
  ),
);
startDeciding();
effect(() => {
  state();
  noteCardPositions();
});

function topBar() {
  const host = () => (URL.canParse(state().link.url) ? new URL(state().link.url).host : "");
  const consoleUrl = () => (host() ? `http://${host()}/` : null);
  const isIdle = () => !isOnline() && state().link.state !== "connecting";
  return h(
    "header.panel-top",
    brandMark(),
    h("h1", "afoot"),
    h(
      "p.link",
      { id: "link", role: "status", "data-state": () => state().link.state },
      h("span.live-dot", { shown: isOnline }),
      h("span.mono", () => (isOnline() ? host() : (LINK_WORDS[state().link.state] ?? state().link.state))),
    ),
    h(
      "button.small",
      { id: "connect", type: "button", shown: isIdle, onclick: () => send("pair") },
      "Connect",
    ),
    h(
      "a.button.quiet.square",
      {
        href: consoleUrl,
        target: "_blank",
        rel: "noreferrer",
        "aria-label": "Open the console",
        shown: isOnline,
      },
      icon("open", "s"),
    ),
  );
}

/** Why and since when nothing is heard. */
function whyOffline() {
  const why = isOnline() ? "" : safeText(state().link.why, 1000);
  return [offline(), why].filter(Boolean).join(" ");
}

/**
 * A section with its number. Without `empty` it is hidden while it has nothing.
 * @param {string} id
 * @param {string} title
 * @param {() => number} count
 * @param {Child} rows
 * @param {string} [empty]
 */
function group(id, title, count, rows, empty = "") {
  return h(
    "section",
    { id, "aria-labelledby": `${id}-title`, shown: () => count() > 0 || empty !== "" },
    h(
      "h2.group",
      { id: `${id}-title` },
      title,
      h("span.count", () => String(count())),
    ),
    rows,
    h("p.empty-line", { shown: () => empty !== "" && count() === 0 }, empty),
  );
}

/** @param {() => TreeRow[]} rows */
function callRows(rows) {
  return each(
    rows,
    ({ call }) => call.id,
    (first, now) => {
      const call = computed(() => withPendingCancel(now().call, cancels));
      const action = () => cancelButton(call, cancels, () => !isOnline());
      return narrowRow(call, {
        at: tick,
        depth: Math.min(first.depth, MAX_INDENT),
        action,
        words: pendingWords,
      });
    },
  );
}

/** The switch that plugins need. */
function userScriptNote() {
  const open = () => void chrome.tabs.create({ url: `chrome://extensions/?id=${state().id}` });
  const words = () => (state().plugins ? "Plugins are off until you switch on" : "Plugins need the switch");
  return h(
    "section.note",
    { id: "switch", "aria-label": "User scripts", shown: () => !state().userScripts },
    icon("info", "s"),
    h(
      "p",
      words,
      " ",
      h("b", "Allow User Scripts"),
      ". Tools of the pages themselves work without it. ",
      h("button.link-like", { id: "details", type: "button", onclick: open }, "Open settings"),
    ),
  );
}
