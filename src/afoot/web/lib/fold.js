// evolve: folds the facts of a call into its state, as the gateway does, on the same test vectors. Pure.

const APPROVAL_KEY = "afoot_approval"; // the key of the question whether a call may start
const NOT_RUNNING = { stalled: false, hindered: null, eta: null, rate: null };

/** The call after its fact `opened`. @param {string} id @param {Fact} fact @returns {Call} */
export function beginCall(id, { type, tool, server, caller, at, parent = null, approval = "auto" }) {
  if (type !== "opened") throw new Error(`call ${id} does not begin with opened but ${type}`);
  const empty = { outcome: null, finished: null, progress: null, total: null, message: null, latest: null };
  const counted = { children: { total: 0, live: 0, failed: 0 }, attempt: 0, readings: 0, seq: 1 };
  const fields = { id, tool, server, caller, parent, approval, opened: at };
  return { ...empty, ...counted, ...fields, state: "queued", open: new Map() };
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
    open: new Map(questions.map((one) => [one.id, { ...one, at: one.asked }])),
  };
}

/** Apply the next fact, in place. @param {Call} call @param {Fact} fact */
export function evolve(call, fact) {
  call.seq += 1;
  APPLY[fact.type]?.(call, fact); // unknown facts of a newer gateway are ignored
}

/**
 * Apply a reading: the newest wins. It is not a fact.
 * @param {Call} call
 * @param {Reading} reading
 */
export function addReading(call, { at, progress = null, total = null, message = null, source }) {
  call.latest = { at, progress, total, message, ...(source && { source }) };
  call.readings += 1;
  call.stalled = false;
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

/** @type {Record<string, (call: Call, fact: Fact) => void>} */
const APPLY = {
  opened(call) {
    throw new Error(`call ${call.id} was opened twice`);
  },
  // Only a queued call is admitted; a history of an older version does not say that it was interrupted.
  admitted: (call, { what }) => void Object.assign(call, { state: "queued", starting: what }),
  hindered: (call, { by, hint = "" }) => void (call.hindered = by ? { by, hint } : null),
  started(call, { at, attempt = 1 }) {
    Object.assign(call, { state: "running", attempt, started: call.started ?? at, hindered: null });
  },
  interrupted(call) {
    const state = call.state === "running" ? "queued" : call.state;
    Object.assign(call, { ...NOT_RUNNING, state, starting: undefined });
  },
  handed_over: (call, { what = "task" }) => void (call.task ||= what === "task"),
  redefined: (call, { approval = "auto" }) => void (call.approval = approval),
  reported(call, { late, at, progress = null, total = null, message = null, children }) {
    if (late) return;
    call.stalled = false;
    if (children) call.remote = mergeRemote(call.remote ?? [], children);
    if (progress !== null || message !== null) call.latest = { at, progress, total, message };
  },
  asked(call, { at, question }) {
    call.open.set(question.id, { message: "", ...question, at });
    if (question.kind === "approval" && question.key === APPROVAL_KEY) call.approval = "ask";
  },
  answered(call, { question, answer }) {
    const isApproval = call.open.get(question)?.key === APPROVAL_KEY;
    if (isApproval && answer?.action === "accept") call.yes = answer.by === "operator" ? "user" : "caller";
    call.open.delete(question);
  },
  cancel_requested: (call, { by, reason }) => void Object.assign(call, { state: "cancelling", cancel: { by, reason } }),
  finished(call, { at, outcome, failure = null }) {
    Object.assign(call, { ...NOT_RUNNING, state: "finished", outcome, failure, finished: at, detached: false });
    call.open.clear();
  },
};
