// approvalFacts: whether a tool asks before it runs, and the entries of the allowlist that let it run without asking.

import { del, post } from "../../lib/api.js";
import { each, h } from "../../lib/dom.js";
import { formatAgo, formatTime, safeText } from "../../lib/format.js";
import { errorMessage, resource } from "../../lib/resource.js";
import { now } from "../../lib/time.js";
import { actionButton, disclosureButtons } from "../controls.js";

/** @typedef {{id: string, server: string, tools: Record<string, string>, changed: string[], scope: string, since: number, by: string, until: number | null, caller: string | null, arguments?: string}} AllowEntry */

const DURATIONS = { 3600: "for an hour", 86400: "for a day", ever: "for ever" };

/** @param {{name: string, own: string, server: string, approval: string}} tool */
export function approvalFacts({ name, own, server, approval }) {
  const { value, problem, refetch } = resource(() => "/api/allow");
  const entries = () =>
    /** @type {AllowEntry[]} */ (value()?.allowed ?? []).filter((one) => one.server === server && own in one.tools);
  const entry = (/** @type {AllowEntry} */ one) => {
    const revoke = () => del(`/api/allow/${encodeURIComponent(one.id)}`).finally(refetch);
    return h(
      "li",
      h("span", entryWords(one, own)),
      actionButton("Revoke", revoke, { class: "small", "aria-label": `Revoke ${entryWords(one, own)}` }),
    );
  };
  const allow = (/** @type {() => void} */ close) => allowForm(name, () => void refetch().then(close));
  const asks = approval === "ask";
  return h(
    "section",
    h("h3", "Approval"),
    h("p.dim", asks ? "Asks before it runs." : "Runs without asking."),
    errorMessage(problem),
    h("ul", { "aria-label": "Allowed without asking" }, each(entries, "id", entry)),
    asks && disclosureButtons(["Allow without asking…", allow]),
  );
}

/** @param {string} tool @param {() => void} done */
function allowForm(tool, done) {
  const option = (/** @type {string[]} */ [value, text]) => h("option", { value }, text);
  const length = h("select", { "aria-label": "For how long" }, ...Object.entries(DURATIONS).map(option));
  const save = () => post("/api/allow", { tool, for: Number(length.value) || length.value }).then(done);
  return h("div.row", length, actionButton("Allow", save, { class: "danger" }));
}

/** What an entry allows, since when and until when. @param {AllowEntry} entry @param {string} tool its name at its server */
export function entryWords({ scope, since, by, until, caller, changed, arguments: given }, tool) {
  const what = scope === "server" ? "with all tools of its server" : given ? `with exactly ${given}` : "always";
  const words = [
    `Allowed ${what}`,
    caller && `for ${caller}`,
    until ? `until ${formatTime(until)}` : "",
    `by ${by} ${formatAgo(now.peek() - since)}`,
    changed.includes(tool) && "its definition has changed since, so it asks again",
  ];
  return safeText(words.filter(Boolean).join(", "), 400);
}
