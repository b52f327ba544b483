// treeRows: the calls of a story as rows of a waterfall, each with its marks, its reports and its end. Pure.

import { callFromView } from "../fold.js";
import { formatSpan, joinNonEmpty } from "../format.js";
import { stateOf } from "../state.js";

/** @typedef {import("../state.js").CallState} CallState */
/** @typedef {"queued" | "asked" | "below" | "running" | "cancelling" | "lost"} PhaseKind */
/** A stretch of a call in which one thing held. @typedef {{kind: PhaseKind, from: number, until: number, attempt: number, words: string}} Phase */
/** A mark of the waterfall: a phase, or a part of one. @typedef {{kind: PhaseKind | "parent" | "silent", from: number, until: number, words: string}} Mark */
/** @typedef {{at: number, message: string}} Said */
/**
 * One call of a tree. `rails`: for each level above, whether its line goes on below this row.
 * @typedef {{id: string, tool: string, depth: number, rails: boolean[], state: CallState, outcome: Outcome | null,
 *   from: number, until: number, isLive: boolean, attempts: number, phases: Phase[], marks: Mark[], ticks: number[],
 *   said: Said[], limits: CallLimits, below: Row[]}} Row
 */
/** @typedef {{idle_s: number | null, ceiling_s: number, answer_s: number, patient?: boolean}} CallLimits */
/** @typedef {{facts: Fact[], reports: Reading[]}} Told facts, and everything that was reported, in order */

const IDLE_MARKS = ["queued", "asked", "below"];
const SILENT_S = 10; // a silence that is longer is a mark of its own
/** The limits that a fact leaves out because they are the usual ones. @type {CallLimits} */
const USUAL_LIMITS = { idle_s: 30, ceiling_s: 300, answer_s: 600 };

/**
 * The calls of a tree in the order in which they are drawn: children below their parent, by their start.
 * @param {Story} story
 * @param {number} now the end of what still runs
 * @returns {Row[]}
 */
export function treeRows({ calls, facts, readings }, now) {
  const told = groupByCall(facts, readings);
  const tools = new Map(calls.map(({ id, tool }) => [id, tool]));
  const children = Map.groupBy(calls, ({ parent }) => parent ?? "");
  /** @type {Row[]} */ const rows = [];
  const add = (/** @type {CallView} */ call, /** @type {boolean[]} */ rails) => {
    const place = rows.push(callRow(call, told.get(call.id) ?? { facts: [], reports: [] }, tools, now, rails)) - 1;
    const own = (children.get(call.id) ?? []).toSorted(
      (a, b) => a.opened - b.opened || (a.finished ?? Infinity) - (b.finished ?? Infinity),
    );
    const below = own.map((child, at) => add(child, [...rails, at < own.length - 1]));
    rows[place].below = below;
    rows[place].marks = marksOf(rows[place]);
    return rows[place];
  };
  if (calls.length) add(calls[0], []);
  return rows;
}

/**
 * The phases of a call, in order and without overlap.
 * @param {{opened: number, finished: number | null}} call
 * @param {Told} told
 * @param {(question: Fact) => string} askedWords of a question
 * @param {number} now
 */
function phasesOf(call, { facts, reports }, askedWords, now) {
  const walk = new PhaseWalk(call.opened, reports, askedWords);
  for (const fact of facts) walk.take(fact);
  walk.close(call.finished ?? Math.max(now, walk.from));
  return walk.phases;
}

/** The seconds that a call spent on its clock, and those in which a person was asked. @param {Phase[]} phases */
export function clockTimes(phases) {
  const total = (/** @type {PhaseKind[]} */ ...kinds) =>
    phases.reduce((sum, { kind, from, until }) => sum + (kinds.includes(kind) ? until - from : 0), 0);
  return { spent_s: total("running", "lost", "cancelling"), asked_s: total("asked", "below") };
}

/**
 * The number of calls of a tree that ran at once at most, without its first. The clock has steps, so a short call may end
 * in the instant in which it began; such a call runs alone in it.
 * @param {Row[]} rows
 */
export function mostAtOnce(rows) {
  const steps = rows.slice(1).flatMap(({ from, until }) => {
    if (from === until) return [{ at: from, rank: 1, change: 0 }];
    return [{ at: from, rank: 2, change: 1 }, { at: until, rank: 0, change: -1 }]; // prettier-ignore
  });
  steps.sort((a, b) => a.at - b.at || a.rank - b.rank);
  let running = 0;
  return steps.reduce((most, { change }) => Math.max(most, (running += change) + (change ? 0 : 1)), 0);
}

/** The mark at an instant; the last one that covers it. @param {Row} row @param {number} at */
export const markAt = ({ marks }, at) => marks.findLast(({ from, until }) => from <= at && at <= until);

/** What was said last before an instant, and first after it. @param {Row} row @param {number} at */
export function saidAround({ said }, at) {
  const next = said.findIndex((one) => one.at > at);
  const count = next < 0 ? said.length : next;
  return { before: said[count - 1], after: said[count] };
}

/** Walks over the facts of a call. A phase ends where the next begins. */
class PhaseWalk {
  /** @type {Phase[]} */ phases = [];
  /** @type {PhaseKind} */ kind = "queued";
  /** @type {PhaseKind} the kind while nobody is asked */ base = "queued";
  from;
  attempt = 0;
  words = "";
  /** @type {Map<string, {kind: "asked" | "below", words: string}>} */ open = new Map();

  /** @param {number} opened @param {Reading[]} reports @param {(question: Fact) => string} askedWords */
  constructor(opened, reports, askedWords) {
    this.from = opened;
    this.reports = reports;
    this.askedWords = askedWords;
    this.lastAt = opened;
  }

  /** @param {Fact} fact */
  take(fact) {
    PHASE_CHANGES[fact.type]?.(this, fact);
    this.lastAt = Math.max(this.lastAt, fact.at);
  }

  /** End the phase. @param {number} at */
  close(at) {
    const { kind, from, attempt, words } = this;
    if (at > from) this.phases.push({ kind, from, until: at, attempt, words });
    this.from = Math.max(from, at);
  }

  /** Begin the phase that follows from what is known now. @param {number} at @param {string} [words] */
  turn(at, words = "") {
    const asked = [...this.open.values()];
    const question = asked.find(({ kind }) => kind === "asked") ?? asked[0];
    this.close(at);
    this.kind = this.base !== "cancelling" && question ? question.kind : this.base;
    this.words = this.kind === this.base ? words : (question?.words ?? "");
  }

  /** The attempt so far came to nothing. @param {string} why */
  lose(why) {
    const words = joinNonEmpty(`attempt ${this.attempt} lost`, why);
    for (const phase of this.phases)
      if (phase.attempt === this.attempt && phase.kind === "running") Object.assign(phase, { kind: "lost", words });
  }
}

/** @type {Record<string, (walk: PhaseWalk, fact: Fact) => void>} */
const PHASE_CHANGES = {
  admitted: (walk, { at, what }) => walk.turn(at, what),
  started(walk, { at, attempt = 1, why = "" }) {
    walk.base = "running";
    walk.close(at);
    if (walk.attempt) walk.lose(why);
    walk.attempt = attempt;
    walk.turn(at, attempt > 1 ? `attempt ${attempt}` : "");
  },
  interrupted(walk, { at }) {
    const lastReport = walk.reports.findLast((one) => one.at <= at)?.at ?? 0;
    walk.close(Math.min(at, Math.max(walk.lastAt, lastReport))); // the time without a gateway belongs to no phase
    if (walk.base === "running") {
      walk.lose("the gateway died");
      walk.base = "queued";
    }
    walk.from = at;
    walk.turn(at);
  },
  asked(walk, { at, question }) {
    const kind = question.kind === "below" || question.below ? "below" : "asked";
    walk.open.set(question.id, { kind, words: walk.askedWords(question) });
    walk.turn(at);
  },
  answered(walk, { at, question }) {
    walk.open.delete(question);
    walk.turn(at, walk.attempt > 1 ? `attempt ${walk.attempt}` : "");
  },
  cancel_requested(walk, { at, by }) {
    walk.base = "cancelling";
    walk.turn(at, `cancelling, asked by ${by}`);
  },
};

/**
 * @param {CallView} call
 * @param {Told} told
 * @param {Map<string, string>} tools the names of the calls
 * @param {number} now
 * @param {boolean[]} rails
 * @returns {Row}
 */
function callRow(call, told, tools, now, rails) {
  const { id, tool, opened, finished, outcome } = call;
  const askedWords = (/** @type {Fact} */ { kind, below, message }) => {
    const child = below && tools.get(below.slice(0, below.lastIndexOf(".")));
    if (child) return `clocks stand still: ${child} asks`;
    return kind === "below" ? "clocks stand still: a call below asks" : joinNonEmpty("a person is asked", message);
  };
  const phases = phasesOf(call, told, askedWords, now);
  const limits = told.facts.find(({ type }) => type === "opened")?.limits;
  const until = finished ?? Math.max(now, opened);
  const started = told.facts.findLast(({ type }) => type === "started");
  const attempts = Math.max(call.attempt ?? 0, started ? (started.attempt ?? 1) : 0);
  return {
    ...{ id, tool, outcome, rails, attempts, phases, until },
    depth: rails.length,
    state: stateOf(callFromView(call)),
    from: opened,
    isLive: finished === null,
    marks: [],
    ticks: told.reports.map(({ at }) => at),
    said: told.reports.flatMap(({ at, message }) => (message ? [{ at, message }] : [])),
    limits: { ...USUAL_LIMITS, ...limits },
    below: [],
  };
}

/** @param {Row} row @returns {Mark[]} */
function marksOf(row) {
  const below = mergeOverlaps(row.below.map(({ from, until }) => ({ from, until })));
  /** @type {Mark[]} */ const marks = row.phases.flatMap((phase) =>
    phase.kind === "running" ? runningMarks(row, phase, below) : [phase],
  );
  // A call that ended in the instant of its start ran all the same.
  if (!marks.length || (row.attempts > 0 && marks.every(({ kind }) => IDLE_MARKS.includes(kind))))
    marks.push({ kind: "running", from: marks.at(-1)?.until ?? row.from, until: row.until, words: "" });
  return mergeLost(marks);
}

/**
 * A running phase: pale while calls below work, else solid, with its long silences.
 * @param {Row} row
 * @param {Phase} phase
 * @param {{from: number, until: number}[]} below
 * @returns {Mark[]}
 */
function runningMarks(row, { from, until, words }, below) {
  /** @type {Mark[]} */ const marks = [];
  const cut = below.map((one) => ({ from: Math.max(from, one.from), until: Math.min(until, one.until) }));
  let at = from;
  for (const one of cut.filter((part) => part.until > part.from)) {
    if (one.from > at) marks.push(...withSilences(row, at, one.from, words));
    marks.push({ kind: "parent", ...one, words: joinNonEmpty(words, "calls below it run") });
    at = one.until;
  }
  if (until > at) marks.push(...withSilences(row, at, until, words));
  return marks;
}

/** @param {Row} row @param {number} from @param {number} until @param {string} words @returns {Mark[]} */
function withSilences({ ticks, limits }, from, until, words) {
  /** @type {Mark[]} */ const marks = [];
  const signs = [from, ...ticks.filter((at) => at > from && at < until), until];
  let at = from;
  for (let next = 1; next < signs.length; next++) {
    const [since, to] = [signs[next - 1], signs[next]];
    if (to - since <= SILENT_S) continue;
    if (since > at) marks.push({ kind: "running", from: at, until: since, words });
    const limit = limits.idle_s === null ? "" : ` of ${formatSpan(limits.idle_s)}`;
    marks.push({ kind: "silent", from: since, until: to, words: `silent for ${formatSpan(to - since)}${limit}` });
    at = to;
  }
  if (until > at) marks.push({ kind: "running", from: at, until, words });
  return marks;
}

/** A lost attempt is one mark, also where it was asked meanwhile. @param {Mark[]} marks */
function mergeLost(marks) {
  /** @type {Mark[]} */ const merged = [];
  for (const mark of marks) {
    const last = merged.at(-1);
    if (last?.kind === "lost" && mark.kind === "lost" && last.words === mark.words) last.until = mark.until;
    else merged.push({ ...mark });
  }
  return merged;
}

/** @param {{from: number, until: number}[]} spans */
function mergeOverlaps(spans) {
  /** @type {{from: number, until: number}[]} */ const merged = [];
  for (const span of spans.toSorted((a, b) => a.from - b.from)) {
    const last = merged.at(-1);
    if (last && span.from <= last.until) last.until = Math.max(last.until, span.until);
    else merged.push({ ...span });
  }
  return merged;
}

/** @param {StoryFact[]} facts @param {StoryReading[]} readings @returns {Map<string, Told>} */
function groupByCall(facts, readings) {
  /** @type {Map<string, Told>} */ const told = new Map();
  const of = (/** @type {string} */ call) => {
    const found = told.get(call) ?? { facts: [], reports: [] };
    told.set(call, found);
    return found;
  };
  for (const { call, fact } of facts) {
    of(call).facts.push(fact);
    if (fact.type === "reported" && !fact.late) of(call).reports.push(fact);
  }
  for (const { call, reading } of readings) of(call).reports.push(reading);
  for (const { reports } of told.values()) reports.sort((a, b) => a.at - b.at);
  return told;
}
