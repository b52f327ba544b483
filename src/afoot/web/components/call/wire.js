// wireMessages: the JSON-RPC messages of a call as both sides sent them, where they are recorded.

import { each, h } from "../../lib/dom.js";
import { formatCount, formatSpan, safeText } from "../../lib/format.js";
import { errorMessage, resource } from "../../lib/resource.js";
import { callPath } from "../../lib/router.js";
import { store } from "../../lib/store.js";
import { collapsible, jsonTree } from "../content.js";

const NOT_RECORDED =
  "Not recorded. Messages are kept if record_wire is true in afoot.toml, or with AFOOT_RECORD_WIRE=1.";

/** @param {{id: string, opened: number}} call */
export function wireMessages({ id, opened }) {
  const { value, problem } = resource(() => {
    store.get(id)?.call();
    return `/api${callPath(id)}/wire`;
  });
  const list = () => Object.entries(/** @type {Message[]} */ (value()?.messages ?? []));
  const note = () => {
    if (!value()) return "";
    if (value().left_out > 0) return `${formatCount(value().left_out)} older messages were left out.`;
    return list().length ? "" : value().recording ? "None was recorded." : NOT_RECORDED;
  };
  return h(
    "div.wire",
    errorMessage(problem),
    h("p.story-note", { shown: note }, note),
    h(
      "ol",
      each(list, "0", ([, one]) => wireMessage(one, one.at - opened)),
    ),
  );
}

/** @param {Message} message @param {number} after */
function wireMessage({ side, way, message: sent }, after) {
  const what = sent.method ?? (sent.error ? `error of ${sent.id}` : `answer to ${sent.id}`);
  const path = way === "in" ? `${side} → gateway` : `gateway → ${side}`;
  const words = [h("time", formatSpan(after)), ` ${path} `, h("b", safeText(what, 100))];
  return h(
    "li",
    collapsible(words, () => jsonTree(sent)),
  );
}
