// lanesOf, axisTicks and runningSteps: the drawing of a time as lanes, before it is drawn. Pure.

/** @typedef {[since: number, until: number]} Interval */
/** @typedef {[start: number, loss: number, next: number]} LostAttempt */
/** @typedef {{id: string, opened: number, started: number | null, finished: number, outcome: string, asked: Interval[], below: Interval[], lost: LostAttempt[]}} Span */
/** @typedef {{key: string, name: string, server: string, calls: number, p95_s: number | null, spans: Span[], isShared: boolean}} Lane */
/** @typedef {{tool: string, server: string, calls: number, shown: number, failed: number, p50_s: number | null, p95_s: number | null}} ToolSummary */
/** @typedef {{since: number, until: number, calls: number, roots: number, failed: number, asked: number, slower: number, tools: ToolSummary[], callers: {caller: string, calls: number}[], at_once: number[], spans: any[][], left_out: number}} HistorySummary */

const MOST_LANES = 7; // besides the one that the fastest tools share
const MIN_TICK_PX = 110; // between two times on the axis
const STEPS_S = [
  1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400, 172_800,
];

/** A span of the gateway's answer, which leaves out empty lists at the end. @param {any[]} told @returns {Span} */
export function spanOf([id, , opened, started, finished, outcome, asked = [], below = [], lost = []]) {
  return { id, opened, started, finished, outcome, asked, below, lost };
}

/**
 * A call that still lives, as a span that ends now.
 * @param {Call} call
 * @param {number} now
 * @returns {Span}
 */
export function liveSpan(call, now) {
  /** @type {Interval[]} */ const asked = [];
  /** @type {Interval[]} */ const below = [];
  for (const one of call.open.values()) (one.kind === "below" || one.below ? below : asked).push([one.at, now]);
  return {
    id: call.id,
    opened: call.opened,
    started: call.started ?? null,
    finished: now,
    outcome: "",
    asked,
    below,
    lost: [],
  };
}

/**
 * The lanes of a time: one for each tool, the slowest first. If there are many, the fastest share the last one.
 * @param {HistorySummary} summary
 * @param {readonly Call[]} live calls that have not ended
 * @param {number} now the time at which live calls end in the drawing
 * @returns {Lane[]}
 */
export function lanesOf({ tools, spans }, live, now) {
  const lanes = tools.map(({ tool, server, shown, p95_s }) => newLane(tool, server, shown, p95_s));
  for (const told of spans) lanes[told[1]].spans.push(spanOf(told));
  for (const call of live) {
    const lane = laneOf(lanes, call);
    lane.spans.push(liveSpan(call, now));
    lane.calls += 1;
  }
  const used = lanes.filter((lane) => lane.spans.length);
  const longest = new Map(used.map((lane) => [lane, longestOf(lane)]));
  const pace = (/** @type {Lane} */ lane) => lane.p95_s ?? longest.get(lane) ?? 0;
  used.sort((a, b) => pace(b) - pace(a) || a.name.localeCompare(b.name));
  if (used.length <= MOST_LANES + 1) return used;
  return [...used.slice(0, MOST_LANES), sharedLane(used.slice(MOST_LANES))];
}

/** @param {string} name @param {string} server @param {number} calls @param {number | null} p95_s @returns {Lane} */
const newLane = (name, server, calls, p95_s) => ({
  key: `${server}/${name}`,
  name,
  server,
  calls,
  p95_s,
  spans: [],
  isShared: false,
});

/** The lane of a live call's tool; it may have no call yet that has ended. @param {Lane[]} lanes @param {Call} call */
function laneOf(lanes, { tool, server }) {
  const found = lanes.find((one) => one.name === tool && one.server === server) ?? newLane(tool, server, 0, null);
  if (!lanes.includes(found)) lanes.push(found);
  return found;
}

/** @param {Lane} lane */
const longestOf = ({ spans }) => spans.reduce((most, { opened, finished }) => Math.max(most, finished - opened), 0);

/** @param {Lane[]} lanes @returns {Lane} */
function sharedLane(lanes) {
  const spans = lanes.flatMap((lane) => lane.spans).sort((a, b) => a.opened - b.opened);
  const calls = lanes.reduce((sum, lane) => sum + lane.calls, 0);
  return { ...newLane(`${lanes.length} other tools`, "", calls, p95Of(spans)), key: "", spans, isShared: true };
}

/** How long the successful calls of several tools took, but for the slowest of twenty. @param {Span[]} spans */
function p95Of(spans) {
  const good = spans.filter(({ outcome }) => outcome === "ok");
  const took = good.map(({ started, opened, finished }) => finished - (started ?? opened)).sort((a, b) => a - b);
  return took[Math.ceil(took.length * 0.95) - 1] ?? null;
}

/**
 * The times of the axis, at round distances of the local clock.
 * @param {{since: number, until: number}} time
 * @param {number} width in pixels
 * @param {(at: number) => number} offsetS of local time, in seconds
 */
export function axisTicks({ since, until }, width, offsetS = (at) => -60 * new Date(at * 1000).getTimezoneOffset()) {
  const wanted = ((until - since) / Math.max(width, 1)) * MIN_TICK_PX;
  const step = STEPS_S.find((one) => one >= wanted) ?? Math.ceil(wanted / 86_400) * 86_400;
  const shift = offsetS(since);
  const first = Math.ceil((since + shift) / step) * step - shift;
  /** @type {number[]} */ const found = [];
  for (let at = first; at <= until; at += step) found.push(at);
  return { step, ticks: found };
}

/**
 * The calls that ran at once in each part of the time, with those that still run.
 * @param {HistorySummary} summary
 * @param {readonly Call[]} live
 */
export function runningSteps({ since, until, at_once: ended }, live) {
  const part = (until - since) / ended.length;
  return ended.map((count, at) => {
    const end = since + (at + 1) * part;
    return count + live.filter(({ started }) => started != null && started < end).length;
  });
}

/**
 * The part of a call that is drawn as running: without the times in which it queued, a person was asked, or an attempt
 * was lost.
 * @param {Span} span
 * @returns {Interval[]}
 */
export function runningParts({ started, finished, asked, below, lost }) {
  if (started === null) return [];
  const attempts = lost.map(([start, , next]) => /** @type {Interval} */ ([start, next]));
  const gaps = [...asked, ...below, ...attempts].sort((a, b) => a[0] - b[0]);
  /** @type {Interval[]} */ const found = [];
  let at = started;
  for (const [from, to] of gaps) {
    if (from > at) found.push([at, Math.min(from, finished)]);
    at = Math.max(at, to);
  }
  if (finished > at) found.push([at, finished]);
  return found;
}

/**
 * The time in which a call waited for its start, and nobody was asked.
 * @param {Span} span
 * @returns {Interval | null}
 */
export function queuedPart({ opened, started, finished, asked }) {
  const from = asked.length && asked[0][0] <= (started ?? finished) ? asked[0][1] : opened;
  const to = started ?? finished;
  return to > from ? [from, to] : null;
}

/**
 * The call that is nearest to a place in a lane, within a few pixels.
 * @param {Lane} lane
 * @param {number} at the time at that place
 * @param {number} nearS the time that is near enough
 * @returns {Span | null}
 */
export function spanAt({ spans }, at, nearS) {
  let [best, distance] = [/** @type {Span | null} */ (null), nearS];
  for (const span of spans) {
    const away = Math.max(span.opened - at, at - span.finished, 0);
    if (away < distance || (away === 0 && best)) [best, distance] = [span, away];
  }
  return best;
}
