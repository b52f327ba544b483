// The view of the cluster: its gateways and workers with their leases and live calls, and what waits for them.

import { del, post } from "../lib/api.js";
import { actionButton } from "../components/controls.js";
import { emptyMessage, loadingRows } from "../components/empty.js";
import { groupedRows } from "../components/lists/groups.js";
import { placeRow } from "../components/lists/place_row.js";
import { h } from "../lib/dom.js";
import { formatCount, formatSpan, plural } from "../lib/format.js";
import { errorMessage, resource } from "../lib/resource.js";
import { computed } from "../lib/signal.js";

export const title = "Cluster";
export const isWide = true;

const REFRESH_S = 2;
const LAG = 100; // facts behind, from which on it is told: a few are always on their way
const LOOPBACK = /^https?:\/\/(127\.|localhost|\[::1\])/;
/** @type {[role: string, title: string][]} */
const GROUPS = [
  ["gateway", "Gateways"],
  ["worker", "Workers"],
];

/** @returns {HTMLElement} */
export function view() {
  const { value, problem, refetch } = resource(() => "/api/cluster", { everyS: REFRESH_S });
  const members = () => /** @type {MemberView[]} */ (value()?.members ?? []);
  const groups = computed(() =>
    GROUPS.map(([role, title]) => ({
      key: role,
      title,
      note: role === "worker" ? queueNote(value()?.figures) : "",
      items: members().filter((one) => one.role === role),
    })).filter(({ items }) => items.length),
  );
  const isCutOff = () => value()?.figures && !value().figures.is_heard;
  return h(
    "section",
    errorMessage(problem),
    h("p.problem", { role: "alert", shown: isCutOff }, () =>
      isCutOff() ? "Redis does not answer this gateway: what is below may be old." : "",
    ),
    groupedRows(
      groups,
      ({ id }) => id,
      (first, newest) => memberRow(first, newest, () => value()?.id, refetch),
      { label: "Members of the cluster" },
    ),
    loadingRows(() => value() || problem(), 4),
    emptyMessage(value, members, () => ["This gateway is alone. To let several be one, set ", h("code", "[cluster]")]),
  );
}

/** What waits for workers. @param {FiguresView | null | undefined} figures */
const queueNote = (figures) => (figures ? `${plural(figures.waiting, "function")} in the queue` : "");

/** @param {MemberView} member @param {() => MemberView} newest @param {() => string} here @param {() => unknown} refetch */
function memberRow({ id, role }, newest, here, refetch) {
  const path = `/api/cluster/${encodeURIComponent(id)}/drain`;
  const button = (
    /** @type {string} */ label,
    /** @type {() => Promise<unknown>} */ work,
    /** @type {() => unknown} */ shown,
  ) =>
    h(
      "span",
      { shown },
      actionButton(label, () => work().finally(refetch), { class: "small", "aria-label": `${label} ${role} ${id}` }),
    );
  const lives = () => newest().left_s > 0;
  return placeRow(
    () => memberPlace(newest(), here()),
    [
      button(
        "Drain",
        () => post(path),
        () => lives() && !newest().draining,
      ),
      button(
        "Undo the drain",
        () => del(path),
        () => lives() && newest().draining,
      ),
    ],
  );
}

/** @param {MemberView} member @param {string} here */
function memberPlace({ id, role, left_s: left, host, pid, version, url, calls, slots, draining, lag }, here) {
  const isNear = LOOPBACK.test(url); // else all gateways may have the address of their load balancer
  const state = left <= 0 ? "silent" : draining ? "draining" : "ready";
  const about = [
    id === here && "you are here",
    isNear && host,
    pid && `process ${pid}`,
    version && `afoot ${version}`,
    left > 0 && `lease ${formatSpan(left)}`,
    lag >= LAG && `${formatCount(lag)} facts behind`,
  ];
  return {
    key: id,
    name: isNear ? new URL(url).host : host,
    aside: id.slice(0, 8),
    about: about.filter(Boolean).join(" · "),
    state,
    why: state === "silent" ? silence(role, left) : draining ? "takes no new calls" : "",
    count: role === "worker" ? `${calls} of ${plural(slots, "call")}` : plural(calls, "call"),
  };
}

/** @param {string} role @param {number} left */
const silence = (role, left) =>
  `not heard since its lease ran out, ${formatSpan(-left)} ago; its ${role === "worker" ? "functions" : "calls"} are taken over`;
