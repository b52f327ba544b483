// A call as its facts tell it: the same fold as the gateway's, on the same test vectors; pure.

/**
 * @typedef {{id: string, key: string, kind: string, message: string, below?: string, at: number}} Asked
 * @typedef {{by: string, hint: string}} Hindrance
 * @typedef {{low_s: number, high_s: number}} Range
 * @typedef {{at: number, progress: number | null, total: number | null, message: string | null}} Reading
 * @typedef {{type: string, at: number, [field: string]: any}} Fact
 */

/**
 * @typedef {object} Call
 * @property {string} id
 * @property {string} tool
 * @property {string} server
 * @property {string} caller
 * @property {string | null} parent
 * @property {number} children how many calls are known below it, at any depth of one
 * @property {"queued" | "running" | "cancelling" | "finished"} state
 * @property {string | null} outcome
 * @property {number} opened
 * @property {number | null} started
 * @property {number | null} finished
 * @property {number} attempt
 * @property {number} seq
 * @property {number} readings
 * @property {Reading | null} latest
 * @property {Map<string, Asked>} open questions, in the order they were asked
 * @property {string} approval auto, allowlist, ask
 * @property {string} starting what must be up before it can run
 * @property {Hindrance | null} hindered
 * @property {{by: string, reason: string} | null} cancel
 * @property {string | null} failure what it said when it did not end well
 * @property {boolean} stalled
 * @property {Range | null} eta
 * @property {number | null} rate
 */

const APPROVAL = "afoot_approval"; // the key of the question whether a call may start

/** The call that a fact `opened` begins. @param {string} id @param {Fact} fact @returns {Call} */
export function begin(id, fact) {
  if (fact.type !== "opened") throw new Error(`call ${id} does not begin with opened but ${fact.type}`);
  const { tool, server, caller, at } = fact;
  return {
    ...FRESH,
    id,
    tool,
    server,
    caller,
    opened: at,
    parent: fact.parent ?? null,
    approval: fact.approval ?? "auto",
    open: new Map(),
  };
}

/** The call of a snapshot; facts go on behind its `seq`. @param {any} view a CallView @returns {Call} */
export function fromView(view) {
  const { id, tool, server, caller, state, outcome, opened, finished, progress, total, message } = view;
  const [approved, at] = [view.approved ?? "none", view.reported ?? view.started ?? opened];
  const isRead = progress !== null || message !== null;
  return {
    ...FRESH,
    id,
    tool,
    server,
    caller,
    state,
    outcome,
    opened,
    finished,
    ...{ parent: view.parent ?? null, children: view.children ?? 0, started: view.started ?? null },
    ...{
      attempt: view.attempt ?? 0,
      seq: view.seq ?? 0,
      readings: view.readings ?? 0,
      stalled: view.stalled ?? false,
    },
    ...{ hindered: view.hindered ?? null, eta: view.eta ?? null, rate: view.rate ?? null },
    latest: isRead ? { at, progress, total, message } : null,
    approval: approved === "user" || approved === "none" ? "ask" : approved,
    open: new Map(
      (view.questions ?? []).map((/** @type {any} */ one) => [one.id, { ...one, at: one.asked }]),
    ),
  };
}

/** Take in the next fact, in place. @param {Call} call @param {Fact} fact */
export function evolve(call, fact) {
  call.seq += 1;
  CHANGES[fact.type]?.(call, fact); // a kind of fact that a newer gateway has changes nothing here
}

/** Take in a reading: the newest value wins, and it is no fact. @param {Call} call @param {any} reading */
export function note(call, reading) {
  call.latest = reading_(reading);
  call.readings += 1;
  call.stalled = false;
}

/** How it came to run: auto, allowlist, user; or none. @param {Call} call */
export const approved = (call) =>
  call.approval !== "ask" ? call.approval : call.started === null ? "none" : "user";

/** @type {Call} */
const FRESH = {
  ...{ id: "", tool: "", server: "", caller: "", parent: null, children: 0, state: "queued", outcome: null },
  ...{
    opened: 0,
    started: null,
    finished: null,
    attempt: 0,
    seq: 1,
    readings: 0,
    latest: null,
    open: new Map(),
  },
  ...{ approval: "auto", starting: "", hindered: null, cancel: null, failure: null, stalled: false },
  ...{ eta: null, rate: null },
};

/** @type {Record<string, (call: Call, fact: Fact) => void>} */
const CHANGES = {
  opened(call) {
    throw new Error(`call ${call.id} was opened twice`);
  },
  admitted: (call, fact) => void (call.starting = fact.what),
  hindered: (call, fact) => void (call.hindered = fact.by ? { by: fact.by, hint: fact.hint ?? "" } : null),
  started(call, fact) {
    Object.assign(call, {
      state: "running",
      attempt: fact.attempt ?? 1,
      started: call.started ?? fact.at,
      hindered: null,
    });
  },
  reported(call, fact) {
    if (fact.late) return;
    call.stalled = false;
    if (isThere(fact.progress) || isThere(fact.message)) call.latest = reading_(fact);
  },
  asked(call, fact) {
    const { question } = fact;
    call.open.set(question.id, { ...question, message: question.message ?? "", at: fact.at });
    if (question.kind === "approval" && question.key === APPROVAL) call.approval = "ask";
  },
  answered: (call, fact) => void call.open.delete(fact.question),
  cancel_requested: (call, { by, reason }) =>
    void Object.assign(call, { state: "cancelling", cancel: { by, reason } }),
  finished(call, fact) {
    Object.assign(call, {
      state: "finished",
      outcome: fact.outcome,
      finished: fact.at,
      stalled: false,
      eta: null,
      rate: null,
    });
    call.failure = fact.failure?.message ?? null;
    call.open.clear();
  },
};

/** @param {any} from @returns {Reading} */
const reading_ = ({ at, progress, total, message }) => ({
  at,
  progress: progress ?? null,
  total: total ?? null,
  message: message ?? null,
});

/** @param {unknown} value */
const isThere = (value) => value !== null && value !== undefined;
