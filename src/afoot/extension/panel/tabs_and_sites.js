// The tabs and the allowed sites: where tools can run, why they cannot, and the buttons to change that.

import { icon } from "../shared/components/marks/icon.js";
import { stateIcon } from "../shared/components/marks/state_icon.js";
import { each, h } from "../shared/lib/dom.js";
import { plural, safeText } from "../shared/lib/format.js";
import { computed, signal } from "../shared/lib/signal.js";
import { explainUnavailable, formatSite, parseSitePattern } from "./site_words.js";

/** @typedef {import("../background/messages.js").Tab} Tab */
/** @typedef {import("../background/messages.js").PanelTab} PanelTab */
/** @typedef {import("./state.js").PanelState} PanelState */
/** @typedef {import("./state.js").SendToWorker} SendToWorker */
/** @typedef {Tab & {key: string, state: string, tools: number}} TabRow */

const MOST = 300; // characters of a title

/**
 * The tabs of allowed sites.
 * @param {() => PanelState} state
 * @param {SendToWorker} send
 */
export function tabSection(state, send) {
  const rows = computed(() => {
    const known = new Map(state().keys.map((one) => [one.tab, one]));
    const seen = state().tabs.filter((tab) => /^https?:/.test(tab.url ?? ""));
    return seen.map((tab) => mergeTab(tab, known.get(tab.id)));
  });
  const others = () => state().tabs.filter((tab) => tab.why === "ungranted").length;
  const otherText = () => (others() === 1 ? "One other tab is" : `${others()} other tabs are`);
  const isOpen = signal(false);
  return h(
    "section.tabs",
    { "aria-labelledby": "tabs-title" },
    h(
      "h2.group",
      { id: "tabs-title" },
      "Tabs",
      h("span.count", () => String(rows().length)),
      h("button.quiet.small", { type: "button", onclick: () => isOpen.set(!isOpen()) }, "Allow a site…"),
    ),
    () => (isOpen() ? siteForm(() => isOpen.set(false)) : null),
    each(
      rows,
      (tab) => tab.id,
      (_first, now) => tabRow(now, send),
    ),
    h("p.empty-line", { shown: () => rows().length === 0 }, "No tab of an allowed site is open."),
    h(
      "p.empty-line.others",
      { shown: () => others() > 0 },
      () => `${otherText()} of sites that are not allowed.`,
    ),
  );
}

/**
 * The allowed sites, and the one in front if it is not allowed.
 * @param {() => PanelState} state
 * @param {() => number | undefined} windowId the panel's own window
 * @param {SendToWorker} send
 */
export function siteSection(state, windowId, send) {
  const active = computed(() =>
    state().tabs.find((tab) => tab.active && (!windowId() || tab.window === String(windowId()))),
  );
  const isAsked = signal("");
  const isNew = () => active()?.why === "ungranted";
  return h(
    "section.sites",
    { "aria-labelledby": "sites-title" },
    h(
      "h2.group",
      { id: "sites-title" },
      "Allowed sites",
      h("span.count", () => String(state().sites.length)),
    ),
    h(
      "p.site-row.here",
      { shown: isNew },
      h("span", () =>
        isAsked() === active()?.id
          ? "Chrome asks beside the address: choose Allow there."
          : "The site in this tab is not allowed.",
      ),
      h(
        "button.small",
        {
          type: "button",
          onclick() {
            send("ask", { tab: active()?.id });
            isAsked.set(active()?.id ?? "");
          },
        },
        "Allow it",
      ),
    ),
    each(
      () => state().sites,
      (site) => site,
      (site) => siteRow(site, send),
    ),
    h(
      "p.empty-line",
      { shown: () => state().sites.length === 0 },
      "None yet: no page is seen, and none of its tools.",
    ),
  );
}

/**
 * The form that allows a site by name. Chrome asks for confirmation, because this is a person's click.
 * @param {() => void} close
 */
function siteForm(close) {
  const error = signal("");
  const name = h("input", {
    id: "site",
    placeholder: "shop.example",
    autocomplete: "off",
    spellcheck: "false",
    required: true,
    "aria-label": "Site",
  });
  const allow = (/** @type {Event} */ event) => {
    event.preventDefault();
    const pattern = parseSitePattern(name.value);
    error.set(pattern ? "" : "That is no site: type a name such as shop.example");
    if (!pattern) return;
    chrome.permissions.request({ origins: [pattern] }).then(
      (isGranted) => isGranted && close(),
      (refused) => error.set(String(refused.message)),
    );
  };
  return h(
    "form.site-form",
    { onsubmit: allow },
    name,
    h("button.main", "Allow"),
    h("p.t-bad", { role: "alert", shown: () => error() !== "" }, error),
  );
}

/**
 * @param {Tab} tab
 * @param {PanelTab | undefined} known
 * @returns {TabRow}
 */
function mergeTab(tab, known) {
  const why = tab.why || known?.why || "";
  return {
    ...tab,
    why,
    key: known?.key ?? "",
    tools: known?.tools ?? 0,
    state: why ? "unavailable" : (known?.state ?? "ready"),
  };
}

/** @param {() => TabRow} tab @param {SendToWorker} send */
function tabRow(tab, send) {
  const isReady = () => tab().state === "ready" && !tab().why;
  const host = () => (URL.canParse(tab().url ?? "") ? new URL(tab().url ?? "").host : "");
  const reason = () =>
    isReady() ? "" : `unavailable: ${safeText(explainUnavailable(tab().why || tab().state), MOST)}`;
  const asleep = () => (tab().discarded ? "put to sleep" : tab().frozen ? "frozen" : "");
  return h(
    "article.tab-row",
    { "data-state": () => (isReady() ? "ready" : "unavailable") },
    h("span.tab-mark", () => (isReady() ? h("span.live-dot") : stateIcon("held_up", null))),
    h("h3.cut", { title: () => safeText(tab().title || tab().url, MOST) }, () =>
      safeText(tab().title || tab().url, MOST),
    ),
    h("span.tag.key", { shown: () => tab().key !== "" }, () => tab().key),
    h("span.tag", { shown: () => asleep() !== "" }, asleep),
    h(
      "button.small",
      {
        type: "button",
        shown: () => tab().why === "reload",
        onclick: () => send("reload", { tab: tab().id }),
      },
      "Reload",
    ),
    h("span.tools", () => (tab().tools ? plural(tab().tools, "tool") : "no tools")),
    h("p.about.cut", () => [host(), reason()].filter(Boolean).join(" · ")),
  );
}

/** @param {string} site @param {SendToWorker} send */
function siteRow(site, send) {
  const name = formatSite(site);
  return h(
    "p.site-row",
    h("span.cut", name),
    h(
      "button.small.quiet",
      { type: "button", "aria-label": `Remove ${name}`, onclick: () => send("revoke", { site }) },
      icon("close", "s"),
    ),
  );
}
