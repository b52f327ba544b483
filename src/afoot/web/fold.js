// A call as its facts tell it: the same fold as the gateway's, on the same test vectors; pure.

const APPROVAL = "afoot_approval"; // the key of the question whether a call may start

/** The call that a fact `opened` begins. @param {string} id @param {Fact} fact @returns {Call} */
export function begin(id, { type, tool, server, caller, at, parent = null, approval = "auto" }) {
  if (type !== "opened") throw new Error(`call ${id} does not begin with opened but ${type}`);
  const nothing = { outcome: null, finished: null, progress: null, total: null, message: null, latest: null };
  const counted = { children: { total: 0, live: 0, failed: 0 }, attempt: 0, readings: 0, seq: 1 };
  const said = { id, tool, server, caller, parent, approval, opened: at };
  return { ...nothing, ...counted, ...said, state: "queued", open: new Map() };
}

/** The call of a snapshot; facts go on behind its `seq`. @param {CallView} view @returns {Call} */
export function fromView(view) {
  const { opened, progress, total, message, approved = "none", questions = [] } = view;
  const at = view.reported ?? view.started ?? opened;
  return {
    ...begin(view.id, { type: "opened", at: opened }),
    seq: 0,
    ...view,
    parent: view.parent ?? null,
    children: view.children ?? { total: 0, live: 0, failed: 0 },
    latest: progress === null && message === null ? null : { at, progress, total, message },
    approval: approved === "user" || approved === "none" ? "ask" : approved,
    open: new Map(questions.map((one) => [one.id, { ...one, at: one.asked }])),
  };
}

/** Take in the next fact, in place. @param {Call} call @param {Fact} fact */
export function evolve(call, fact) {
  call.seq += 1;
  CHANGES[fact.type]?.(call, fact); // a kind of fact that a newer gateway has changes nothing here
}

/** Take in a reading: the newest value wins, and it is no fact. @param {Call} call @param {Reading} reading */
export function note(call, { at, progress = null, total = null, message = null }) {
  call.latest = { at, progress, total, message };
  call.readings += 1;
  call.stalled = false;
}

/** How it came to run: auto, allowlist, user; or none. @param {Call} call */
export const approved = ({ approval, started }) => (approval !== "ask" ? approval : started == null ? "none" : "user");

/** @type {Record<string, (call: Call, fact: Fact) => void>} */
const CHANGES = {
  opened(call) {
    throw new Error(`call ${call.id} was opened twice`);
  },
  admitted: (call, { what }) => void (call.starting = what),
  hindered: (call, { by, hint = "" }) => void (call.hindered = by ? { by, hint } : null),
  started(call, { at, attempt = 1 }) {
    Object.assign(call, { state: "running", attempt, started: call.started ?? at, hindered: null });
  },
  reported(call, { late, at, progress = null, total = null, message = null }) {
    if (late) return;
    call.stalled = false;
    if (progress !== null || message !== null) call.latest = { at, progress, total, message };
  },
  asked(call, { at, question }) {
    call.open.set(question.id, { message: "", ...question, at });
    if (question.kind === "approval" && question.key === APPROVAL) call.approval = "ask";
  },
  answered: (call, { question }) => void call.open.delete(question),
  cancel_requested: (call, { by, reason }) => void Object.assign(call, { state: "cancelling", cancel: { by, reason } }),
  finished(call, { at, outcome, failure = null }) {
    const over = { stalled: false, detached: false, hindered: null, eta: null, rate: null };
    Object.assign(call, { state: "finished", outcome, failure, finished: at, ...over });
    call.open.clear();
  },
};
