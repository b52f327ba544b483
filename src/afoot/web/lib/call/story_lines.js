// storyLines: the facts and reports of a tree of calls as lines of a story, in order of time. foldLines: what repeats
// becomes one line. Pure.

import { formatCount, formatProgress, formatSpan, joinNonEmpty } from "../format.js";
import { OUTCOME_WORDS } from "../state.js";
import { answerWord, answererInWords } from "./facts_in_words.js";

/** @typedef {"state" | "message" | "question" | "log"} LineKind */
/** @typedef {"dot" | "waiting" | "answer" | "retrying" | "queued" | "held_up" | "cancelling" | "done" | "failed" | "cancelled" | "info"} LineMark */
/**
 * A line: a subject in strong letters, words, a text of the tool as it came (`code`), a note. `count`: the reports that
 * it stands for; `folded`: the lines that it hides.
 * @typedef {{key: string, at: number, call: string, kind: LineKind, mark: LineMark, subject: string, words: string,
 *   code: string, note: string, count: number, rank?: number, attempt?: number, folded: Line[]}} Line
 */
/** @typedef {{root: string, tools: Map<string, string>, opened: Map<string, number>, asked: Map<string, Asking>, checkpoint: Map<string, Json>, attempts: Map<string, number>}} Reader */
/** @typedef {{kind: string, message: string, at: number, isMirror: boolean}} Asking */

const TOGETHER_S = 1; // calls that are opened within it are one line
const QUEUED_S = 1; // a shorter wait is not told
/** The clocks that end a call. @type {Record<string, string>} */
const LIMIT_WORDS = { idle: "the limit of silence", ceiling: "the limit on the clock", answer: "the time to answer" };
const FEW = 3; // so many reports of a call are not folded

/**
 * All lines of a story.
 * @param {Story} story
 * @returns {Line[]}
 */
export function storyLines({ calls, facts, readings }) {
  const reader = {
    root: calls[0]?.id ?? "",
    tools: new Map(calls.map(({ id, tool }) => [id, tool])),
    opened: new Map(calls.map(({ id, opened }) => [id, opened])),
    asked: new Map(),
    checkpoint: new Map(),
    attempts: new Map(),
  };
  /** @type {Line[]} */ const lines = [];
  for (const { call, seq, fact } of facts) {
    const parts = FACT_LINES[fact.type]?.(fact, call, reader) ?? [];
    for (const [at, part] of parts.entries()) lines.push(line(`f${call}.${seq}.${at}`, call, fact.at, reader, part));
  }
  for (const { call, number, reading, left_out = 0 } of readings) {
    if (reading.source === "below") continue; // the call below said it
    const words = joinNonEmpty(reading.message || formatProgress({ latest: reading }));
    const note = left_out ? `after ${formatCount(left_out)} more` : "";
    const part = { kind: /** @type {const} */ ("message"), words, note, count: 1 + left_out };
    if (words) lines.push(line(`r${call}.${number}`, call, reading.at, reader, part));
  }
  return joinOpened(countAttempts(lines.sort((a, b) => a.at - b.at || rankOf(a) - rankOf(b))));
}

/** Note at each report which attempt it is of. @param {Line[]} lines in order */
function countAttempts(lines) {
  /** @type {Map<string, number>} */ const attempts = new Map();
  for (const one of lines) {
    if (one.mark === "retrying") attempts.set(one.call, (attempts.get(one.call) ?? 1) + 1);
    one.attempt = attempts.get(one.call) ?? 1;
  }
  return lines;
}

/** Within one instant an end comes behind the last report, and the end of the first call last. @param {Line} line */
const rankOf = ({ rank = 0 }) => rank;

/** The number of lines of each kind; a report that is not in the history counts, too. @param {Line[]} lines */
export function countLines(lines) {
  const counts = { all: 0, message: 0, question: 0, log: 0, state: 0 };
  for (const { kind, count } of lines) {
    counts[kind] += count;
    counts.all += count;
  }
  return counts;
}

/**
 * The lines with repetitions folded: the reports of a call between its first and its newest, and log lines that are
 * alike. The newest report is shown while the call lives.
 * @param {Line[]} lines
 * @param {(call: string) => boolean} isLive
 */
export function foldLines(lines, isLive) {
  const groups = Map.groupBy(lines, (one) => groupOf(one));
  return lines.flatMap((one) => {
    const group = groups.get(groupOf(one)) ?? [];
    if (one.kind === "log")
      return one === group[0] ? [{ ...one, note: alike(group.length - 1), folded: group.slice(1) }] : [];
    if (one.kind !== "message" || countOf(group) <= FEW) return [one];
    const newest = isLive(one.call) ? group.at(-1) : null;
    const hidden = group.slice(1, newest ? -1 : undefined);
    if (!hidden.includes(one)) return [{ ...one, note: one.key.startsWith("r") ? "" : one.note }];
    return one === hidden[0] ? [foldedReports(hidden, newest ? newest.count - 1 : 0)] : [];
  });
}

/** Lines of which those that are folded are shown when their key is among `open`. @param {Line[]} lines @param {Set<string>} open */
export const unfoldLines = (lines, open) =>
  lines.flatMap((one) => (one.folded.length && open.has(one.key) ? [one, ...one.folded] : [one]));

/** @param {Line[]} lines */
const countOf = (lines) => lines.reduce((sum, { count }) => sum + count, 0);

/** @param {Line[]} hidden @param {number} more that the history does not have @returns {Line} */
function foldedReports(hidden, more) {
  const count = countOf(hidden) + more;
  const whose = hidden[0].subject ? ` of ${hidden[0].subject}` : "";
  const words = `${formatCount(count)} reports${whose} folded`;
  return {
    ...hidden[0],
    key: `fold ${hidden[0].key}`,
    subject: "",
    words,
    note: "",
    code: "",
    count: 0,
    folded: hidden,
  };
}

/** @param {number} more */
const alike = (more) => (more > 0 ? `and ${formatCount(more)} alike` : "");

/** Lines of one group are folded together. @param {Line} line */
function groupOf({ key, kind, call, code, note, attempt }) {
  if (kind === "message") return `message ${call} ${attempt} ${key.startsWith("f") ? note : ""}`;
  return kind === "log" ? `log ${call} ${code.replace(/\d+/g, "0").replace(/(["'“‘]).*?["'”’]/g, "$1")}` : key;
}

/**
 * @typedef {Partial<Pick<Line, "kind" | "mark" | "words" | "code" | "note" | "count" | "rank">> & {subject?: string}} Part
 * @type {Record<string, (fact: Fact, call: string, reader: Reader) => Part[]>}
 */
const FACT_LINES = {
  opened: ({ caller, rerun_of }, call, { root }) =>
    call === root
      ? [{ subject: "Opened", words: joinNonEmpty(`by ${caller}`, rerun_of && "as a run of an earlier call again") }]
      : [{ words: "started", note: "opened" }],
  amended: ({ by }) => [{ words: `a ${by} changed its arguments` }],
  admitted: ({ what }) => [{ mark: "queued", words: what }],
  started({ at, attempt = 1, why, unsent }, call, { opened, checkpoint, attempts }) {
    const before = attempts.get(call) ?? 0;
    attempts.set(call, attempt);
    if (before) {
      const from = checkpoint.has(call) ? `from checkpoint ${shortJson(checkpoint.get(call))}` : "";
      const lost = `attempt ${before} lost${unsent ? " before it began" : ""}${why ? ":" : ""}`;
      return [
        { mark: "failed", words: lost, code: why ?? "" },
        { mark: "retrying", words: joinNonEmpty(`attempt ${attempt}`, from) },
      ];
    }
    const waited = at - (opened.get(call) ?? at);
    return waited > QUEUED_S && attempt === 1 ? [{ words: `began after ${formatSpan(waited)}` }] : [];
  },
  interrupted: ({ spent_s = 0 }) => [
    { mark: "failed", words: `the gateway died; it had run for ${formatSpan(spent_s)}` },
  ],
  redefined: () => [{ mark: "info", words: "its tool has another definition now" }],
  handed_over: ({ what = "task" }) => [{ words: `its request ended before it, with a ${what}` }],
  reported({ late, message, partial, checkpoint, ...numbers }, call, reader) {
    if (checkpoint !== undefined) reader.checkpoint.set(call, checkpoint);
    const note = joinNonEmpty(
      late && "late",
      partial && "a partial result",
      checkpoint !== undefined && "a checkpoint",
    );
    const words = message || formatProgress({ latest: numbers });
    return words || note ? [{ kind: "message", words, note, count: 1 }] : [];
  },
  logged({ level = "info", logger = "", text }) {
    const isPlain = ["info", "debug", "notice"].includes(level);
    const isStream = ["", "stdout", "stderr"].includes(logger);
    const code = [!isPlain && level.toUpperCase(), !isStream && `${logger}:`, text].filter(Boolean).join(" ");
    return [{ kind: "log", mark: "info", code, count: 1 }];
  },
  hindered: ({ by = "", hint = "" }) =>
    by ? [{ mark: "held_up", words: `held up: ${joinNonEmpty(by, hint)}` }] : [{ words: "held up no more" }],
  asked({ at, question }, call, { asked, root, tools }) {
    const isMirror = question.kind === "below" || Boolean(question.below);
    asked.set(question.id, { kind: question.kind, message: question.message ?? "", at, isMirror });
    if (isMirror) return [];
    const note = call === root ? "" : `by ${tools.get(call) ?? call}`;
    const isApproval = question.kind === "approval"; // its message has all the arguments, which stand beside the story
    const words = isApproval ? `Run ${tools.get(call) ?? "it"}?` : question.message || question.kind;
    return [{ kind: "question", mark: "waiting", subject: "Asked:", words, note, count: 1 }];
  },
  answered({ at, question, answer = {} }, _call, { asked }) {
    const asking = asked.get(question);
    if (!asking || asking.isMirror) return [];
    const subject = answerWord(asking.kind, { action: "accept", ...answer });
    const words = `${answererInWords({ by: "caller", ...answer })} after ${formatSpan(at - asking.at)}`;
    const instead = asking.kind === "approval" ? (answer.content?.instead ?? "") : "";
    return [
      { kind: "question", mark: "answer", subject: `${subject},`, words, note: instead && `“${instead}”`, count: 0 },
    ];
  },
  cancel_requested({ by, reason = "" }) {
    const limit = LIMIT_WORDS[by]; // its reason is that of the failure
    if (limit) return [{ mark: "cancelling", words: `${limit} was reached` }];
    return [{ mark: "cancelling", words: `cancel asked by ${by}${reason ? ":" : ""}`, code: reason }];
  },
  finished({ outcome, result, failure }, call, { root }) {
    const mark = outcome === "ok" ? "done" : outcome === "cancelled" ? "cancelled" : "failed";
    const word = OUTCOME_WORDS[/** @type {Outcome} */ (outcome)] ?? outcome;
    if (call === root) return [{ mark, rank: 2, subject: word[0].toUpperCase() + word.slice(1) }];
    const said = outcome === "ok" ? resultInShort(result) : "";
    return [{ mark, rank: 1, words: said || word, code: outcome === "ok" ? "" : reasonOf(failure, word) }];
  },
  released: ({ how }) =>
    how === "grace" ? [{ mark: "info", words: "its time to stop is over; it may still run" }] : [],
};

/**
 * @param {string} key
 * @param {string} call
 * @param {number} at
 * @param {Reader} reader
 * @param {Part} part
 * @returns {Line}
 */
function line(key, call, at, { root, tools }, part) {
  const subject = call === root ? "" : (tools.get(call) ?? call);
  return {
    ...{ key, call, at, subject, kind: "state", mark: "dot", words: "", code: "", note: "", count: 1, folded: [] },
    ...part,
  };
}

/** Calls that were opened at about the same time become one line. @param {Line[]} lines */
function joinOpened(lines) {
  /** @type {Line[]} */ const joined = [];
  /** @type {Line | null} */ let open = null;
  for (const one of lines) {
    const isOpened = one.note === "opened" && one.words === "started";
    if (!isOpened) joined.push(one);
    else if (open && one.at - open.at <= TOGETHER_S) {
      open.folded.push(one);
      open.count += 1;
    } else joined.push((open = { ...one, note: "", folded: [one] }));
  }
  for (const one of joined) {
    if (one.words !== "started" || one.kind !== "state" || !one.folded.length) continue;
    one.subject = namesInShort(one.folded.map(({ subject }) => subject));
    one.folded = [];
  }
  return joined;
}

/** Names with their number: "export_pages, leaf × 3". @param {string[]} names */
const namesInShort = (names) =>
  [...Map.groupBy(names, (name) => name)]
    .map(([name, { length }]) => (length > 1 ? `${name} × ${length}` : name))
    .join(", ");

/** The first words of a result. @param {Json} result */
function resultInShort(result) {
  const first = Array.isArray(result?.content)
    ? result.content.find((/** @type {Json} */ one) => one?.type === "text")
    : null;
  return typeof first?.text === "string" ? first.text.split("\n")[0].slice(0, 120) : "";
}

/** Why a call did not end well, without the word that stands before it. @param {Json} failure @param {string} word */
const reasonOf = (failure, word) => (failure?.message ?? "").replace(`${word}: `, "");

/** @param {Json} value */
function shortJson(value) {
  const text = JSON.stringify(value) ?? "";
  return text.length > 60 ? `${text.slice(0, 59)}…` : text;
}
