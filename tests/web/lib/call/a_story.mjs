// Builds stories of calls for tests: the facts and readings that the gateway would tell.

let numbers = 0;

/** A call of a story, opened at `at`; its facts follow by `told`. */
export function call(
  id,
  { tool = id, parent = null, opened = 0, finished = null, outcome = finished === null ? null : "ok" } = {},
) {
  const state = finished === null ? "running" : "finished";
  return {
    id,
    tool,
    parent,
    opened,
    finished,
    outcome,
    state,
    progress: null,
    total: null,
    message: null,
    server: "local",
    caller: "cursor",
  };
}

/** A story of these calls; `facts` are [call, fact] and `readings` are [call, at, message]. */
export function story(calls, facts, readings = []) {
  const seqs = {};
  const all = facts.map(([id, fact]) => ({ call: id, seq: (seqs[id] = (seqs[id] ?? 0) + 1), fact }));
  return {
    calls,
    facts: all.toSorted((a, b) => a.fact.at - b.fact.at),
    readings: readings
      .map(([id, at, message, left_out = 0]) => ({
        call: id,
        number: (numbers += 1),
        reading: { at, message },
        left_out,
      }))
      .toSorted((a, b) => a.reading.at - b.reading.at),
    left_out: 0,
    facts_left_out: 0,
  };
}

/** The facts of a plain call: opened, started, finished. */
export const plain = (id, opened, started, finished, limits) => [
  [id, { type: "opened", at: opened, caller: "cursor", ...(limits && { limits }) }],
  [id, { type: "started", at: started }],
  ...(finished === null ? [] : [[id, { type: "finished", at: finished, outcome: "ok" }]]),
];

/** The facts of a question and of its answer. */
export const asked = (id, from, until, more = {}) => {
  const question = { id: `${id}.${(numbers += 1)}`, key: "k", kind: "form", message: "Which?", ...more };
  const answer = { action: "accept", content: { who: ["ops", "editors"] }, by: "operator", surface: "panel" };
  return [
    [id, { type: "asked", at: from, question }],
    ...(until === null ? [] : [[id, { type: "answered", at: until, question: question.id, answer }]]),
  ];
};
