// evolve: folds the facts of a call into its state, as the gateway does, on the same test vectors. Pure.

const APPROVAL_KEY = "afoot_approval"; // the key of the question whether a call may start
const MAX_RESULT_BYTES = 2000; // of a result that is read for its first line
const MAX_LINE_CHARS = 120;
const IS_DATA = /^(?:[{["]|(?:-?[0-9.]+(?:e[+-]?[0-9]+)?|true|false|null)$)/i; // a value of JSON
const NOT_RUNNING = { stalled: false, hindered: null, eta: null, rate: null };
const DEFAULT_LIMITS = { idle_s: 30, ceiling_s: 300, answer_s: 600, patient: false }; // a fact leaves out the defaults

/** The call after its fact `opened`. @param {string} id @param {Fact} fact @returns {Call} */
export function beginCall(id, { type, tool, server, caller, at, parent = null, approval = "auto", limits = {} }) {
  if (type !== "opened") throw new Error(`call ${id} does not begin with opened but ${type}`);
  const empty = { outcome: null, finished: null, progress: null, total: null, message: null, latest: null };
  const counted = { children: { total: 0, live: 0, failed: 0 }, attempt: 0, readings: 0, seq: 1 };
  const fields = { id, tool, server, caller, parent, approval, opened: at };
  return { ...empty, ...counted, ...fields, state: "queued", open: new Map(), clocks: newClocks(limits) };
}

/**
 * The clocks of a call that has not started. A patient call has no idle limit before its first report.
 * @param {Partial<typeof DEFAULT_LIMITS>} limits
 * @returns {Clocks}
 */
function newClocks(limits) {
  const { idle_s, ceiling_s, answer_s, patient } = { ...DEFAULT_LIMITS, ...limits };
  const silence = { idle_s: patient ? null : idle_s, ...(patient && { patient_idle_s: idle_s }) };
  return { ...silence, ceiling_s, answer_s, heard: null, spent_s: 0, since: null };
}

/** The call of a snapshot; facts after its `seq` follow. @param {CallView} view @returns {Call} */
export function callFromView(view) {
  const { opened, progress, total, message, approved = "none", questions = [] } = view;
  const at = view.reported ?? view.started ?? opened;
  return {
    ...beginCall(view.id, { type: "opened", at: opened }),
    seq: 0,
    ...view,
    parent: view.parent ?? null,
    children: view.children ?? { total: 0, live: 0, failed: 0 },
    latest:
      progress === null && message === null
        ? null
        : { at, progress, total, message, ...(view.source && { source: view.source }) },
    approval: ["user", "caller", "none"].includes(approved) ? "ask" : approved,
    yes: approved === "caller" ? "caller" : "user",
    open: openFromView(view, questions),
    clocks: view.clocks ? { ...view.clocks } : clocksOfRow(view),
  };
}

/**
 * The open questions of a view, and those of calls below, which a view does not list: they stop the clocks, too.
 * @param {CallView} view
 * @param {QuestionView[]} questions
 * @returns {Map<string, Asked>}
 */
function openFromView({ clocks, opened }, questions) {
  const below = clocks?.below ?? [];
  const own = questions.filter(({ id }) => !below.includes(id));
  return new Map([
    ...own.map((one) => /** @type {[string, Asked]} */ ([one.id, { ...one, at: one.asked }])),
    ...below.map(
      (id) => /** @type {[string, Asked]} */ ([id, { id, key: "", kind: "below", message: "", at: opened }]),
    ),
  ]);
}

/** The clocks of a line of the history, which does not tell them. @param {CallView} view @returns {Clocks} */
function clocksOfRow({ started = null, finished }) {
  const spent_s = started === null || finished === null ? 0 : Math.max(0, finished - started);
  return { ...newClocks({}), idle_s: null, ceiling_s: null, heard: started, spent_s };
}

/** Apply the next fact, in place. @param {Call} call @param {Fact} fact */
export function evolve(call, fact) {
  call.seq += 1;
  APPLY[fact.type]?.(call, fact); // unknown facts of a newer gateway are ignored
}

/**
 * Apply the newest reading and the forecast of a call. They are not facts.
 * @param {Call} call
 * @param {CallNews} news
 */
export function applyNews(call, news) {
  const { reading, readings, heard, eta = null, rate = null, stalled = false, detached = false, cancel_due } = news;
  if (reading) {
    const { at, progress = null, total = null, message = null, source } = reading;
    call.latest = { at, progress, total, message, ...(source && { source }) };
  }
  if (readings > 0) endPatience(call.clocks);
  if (heard != null) call.clocks.heard = heard;
  Object.assign(call, { readings, eta, rate, stalled, detached, cancel_due: cancel_due ?? null });
}

/** How a call was approved: auto, allowlist, user, caller, or none. @param {Call} call */
export const approvalOf = ({ approval, started, yes = "user" }) =>
  approval !== "ask" ? approval : started == null ? "none" : yes;

/**
 * The calls at a gateway behind this one, with those that have changed.
 * @param {RemoteCall[]} known
 * @param {RemoteCall[]} changed
 */
function mergeRemote(known, changed) {
  const all = new Map(known.map((one) => [one.id, one]));
  for (const one of changed) all.set(one.id, one);
  return [...all.values()];
}

/** Silence counts from the first report on. @param {Clocks} clocks */
function endPatience(clocks) {
  if (clocks.patient_idle_s === undefined) return;
  clocks.idle_s = clocks.patient_idle_s;
  delete clocks.patient_idle_s;
}

/** Take a call off the clock. @param {Clocks} clocks @param {number} at */
function stopClocks(clocks, at) {
  if (clocks.since !== null) clocks.spent_s += at - clocks.since;
  clocks.since = null;
}

/** A sign of life is never older than one that is known. @param {Clocks} clocks @param {number} at */
function hear(clocks, at) {
  clocks.heard = Math.max(clocks.heard ?? 0, at);
}

/** The first line of a short result that is written for people, as `core/last_words.py` has it; empty if it is data. @param {Json} result */
function resultLine(result) {
  const blocks = Array.isArray(result?.content) && !result.is_error ? result.content : [];
  if (new TextEncoder().encode(JSON.stringify(blocks)).length > MAX_RESULT_BYTES) return "";
  const text = blocks.find((/** @type {Json} */ one) => one?.type === "text")?.text;
  const line = typeof text === "string" ? (text.trim().split("\n")[0] ?? "").trim() : "";
  return IS_DATA.test(line) || [...line].length > MAX_LINE_CHARS ? "" : line;
}

/** @type {Record<string, (call: Call, fact: Fact) => void>} */
const APPLY = {
  opened(call) {
    throw new Error(`call ${call.id} was opened twice`);
  },
  // Only a queued call is admitted; a history of an older version does not say that it was interrupted.
  admitted: (call, { what }) => void Object.assign(call, { state: "queued", starting: what }),
  hindered: (call, { by, hint = "" }) => void (call.hindered = by ? { by, hint } : null),
  started(call, { at, attempt = 1, spent_s }) {
    Object.assign(call, { state: "running", attempt, started: call.started ?? at, hindered: null });
    stopClocks(call.clocks, at);
    Object.assign(call.clocks, { heard: at, since: call.open.size ? null : at });
    call.clocks.spent_s = spent_s ?? call.clocks.spent_s;
  },
  interrupted(call, { at, spent_s = 0 }) {
    const state = call.state === "running" ? "queued" : call.state;
    Object.assign(call, { ...NOT_RUNNING, state, starting: undefined });
    Object.assign(call.clocks, { heard: at, spent_s, since: null });
    for (const question of call.open.values()) question.at = Math.min(question.at, at); // a clock may have been set back
  },
  handed_over: (call, { what = "task" }) => void (call.task ||= what === "task"),
  redefined: (call, { approval = "auto" }) => void (call.approval = approval),
  reported(call, { late, at, progress = null, total = null, message = null, children }) {
    if (late) return;
    call.stalled = false;
    hear(call.clocks, at);
    endPatience(call.clocks);
    if (children) call.remote = mergeRemote(call.remote ?? [], children);
    if (progress !== null || message !== null) call.latest = { at, progress, total, message };
  },
  asked(call, { at, question }) {
    stopClocks(call.clocks, at);
    call.open.set(question.id, { message: "", ...question, at });
    if (question.kind === "approval" && question.key === APPROVAL_KEY) call.approval = "ask";
  },
  answered(call, { at, question, answer }) {
    const isApproval = call.open.get(question)?.key === APPROVAL_KEY;
    if (isApproval && answer?.action === "accept") call.yes = answer.by === "operator" ? "user" : "caller";
    call.open.delete(question);
    if (call.open.size) return;
    hear(call.clocks, at);
    call.clocks.since = call.state === "running" ? at : null;
  },
  cancel_requested: (call, { by, reason }) => void Object.assign(call, { state: "cancelling", cancel: { by, reason } }),
  finished(call, { at, outcome, failure = null, result }) {
    if (outcome === "ok") call.result_line = resultLine(result);
    Object.assign(call, { ...NOT_RUNNING, state: "finished", outcome, failure, finished: at, detached: false });
    stopClocks(call.clocks, at);
    call.open.clear();
    call.cancel_due = null;
  },
};
