// overview: the state of everything in a line: who waits, what runs, and the last hour. Each figure leads to its calls.

import { h } from "../../lib/dom.js";
import { formatCount, formatNumber, formatSmallPercent, formatSpan, safeText } from "../../lib/format.js";
import { store } from "../../lib/store.js";
import { tick } from "../../lib/time.js";
import { sparkBars, sparkline } from "./sparkline.js";

const MINUTE_S = 60;

/** @param {() => Record<string, number>} counts of the live calls @param {() => ActivityView | null} activity */
export function overview(counts, activity) {
  const steps = (/** @type {"opened" | "running" | "failed"} */ key) => () =>
    (activity()?.steps ?? []).map((one) => one[key]);
  const p95 = () => (activity()?.steps ?? []).map((one) => one.p95_s);
  return h(
    "section.overview",
    { "aria-label": "Now, and the last hour" },
    figure(
      {
        words: "Waiting for you",
        short: "Waiting",
        href: "/live?state=waiting",
        tone: () => counts().waiting > 0 && "you",
      },
      () => formatCount(counts().waiting),
      longestWait,
    ),
    figure(
      { words: () => runningWords(activity()), short: "Running", href: "/live?state=running" },
      () => formatCount(counts().running + counts().stalled + counts().held_up),
      () => (counts().queued ? `${formatCount(counts().queued)} queued` : ""),
      sparkline(steps("running")),
    ),
    figure(
      { words: "Calls a minute", href: "/history" },
      () => rate(activity()),
      () => inLastHour(activity()),
      sparkline(steps("opened")),
    ),
    figure(
      { words: "Failed, last hour", short: "Failed, 1 h", href: "/history?show=failed" },
      () => failedShare(activity()),
      () => failedCount(activity()),
      sparkBars(steps("failed")),
    ),
    figure(
      { words: "p95 duration", short: "p95", href: "/history?sort=-duration" },
      () => seconds(activity()?.p95_s),
      () => slowestWords(activity()),
      sparkline(p95),
    ),
  );
}

/**
 * @param {{words: string | (() => string), short?: string, href: string, tone?: () => unknown}} about
 * @param {() => string} value
 * @param {() => string} more
 * @param {Child} [drawing]
 */
function figure({ words, short = String(words), href, tone }, value, more, drawing) {
  const label = h("span.label", h("span.long", words), h("span.short", short));
  const text = h("span.value", h("b", { "data-tone": tone ?? null }, value), h("small", more));
  return h("a", { href }, h("span.figure-text", label, text), drawing);
}

/** @param {ActivityView | null} activity */
const runningWords = (activity) => (activity?.slots ? `Running, of ${formatCount(activity.slots)} slots` : "Running");

function longestWait() {
  const [oldest] = store.questions();
  return oldest ? `longest ${formatSpan(tick() - oldest.at)}` : "";
}

/** @param {ActivityView | null} activity */
function rate(activity) {
  if (!activity) return "";
  const minutes = Math.max(1, (activity.now - activity.since) / MINUTE_S);
  const aMinute = activity.calls / minutes;
  return aMinute < 10 ? aMinute.toFixed(1).replace(".0", "") : formatNumber(Math.round(aMinute));
}

/** @param {ActivityView | null} activity */
function inLastHour(activity) {
  if (!activity) return "";
  const minutes = Math.round((activity.now - activity.since) / MINUTE_S);
  return `${formatCount(activity.calls)} in the last ${minutes === 60 ? "hour" : `${minutes} minutes`}`;
}

/** @param {ActivityView | null} activity */
const failedShare = (activity) =>
  activity ? formatSmallPercent(activity.calls ? activity.failed / activity.calls : 0) : "";

/** @param {ActivityView | null} activity */
const failedCount = (activity) => (activity ? `${formatCount(activity.failed)} of ${formatCount(activity.calls)}` : "");

/** @param {ActivityView | null} activity */
function slowestWords(activity) {
  const slowest = activity?.slowest;
  // The name comes last, because the end is cut where there is no room.
  return slowest ? `slowest ${formatSpan(slowest.took_s)}, ${safeText(slowest.tool, 60)}` : "";
}

/** @param {number | null | undefined} value */
const seconds = (value) => (value == null ? "" : formatSpan(value));
