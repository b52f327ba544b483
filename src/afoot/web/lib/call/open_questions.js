// openQuestions: the open questions in full, as a person must see them before an answer. One list serves all views.

import { post } from "../api.js";
import { isContainer, isRedacted } from "../text/exact_json.js";
import { plural, safeText } from "../format.js";
import { attempt, resource } from "../resource.js";
import { computed, scope, signal } from "../signal.js";
import { store } from "../store.js";

const MAX_VALUE_CHARS = 80; // of one argument in a summary

/** @type {ReturnType<typeof resource> | null} */ let list = null;
const answered = signal(/** @type {ReadonlySet<string>} */ (new Set())); // here; a list on its way may still have them

/** The list at the gateway, fetched whenever a question comes or goes, from the first use on. */
const source = () => (list ??= scope(() => resource(() => (store.questions().length ? "/api/questions" : "")))[0]);

/** The open questions, oldest first, as far as they have arrived. @type {() => QuestionView[]} */
export const openQuestions = computed(() => {
  const asked = new Set(store.questions().map(({ id }) => id));
  const found = /** @type {QuestionView[]} */ (source().value()?.questions ?? []);
  return found.filter((one) => asked.has(one.id) && !answered().has(questionKey(one)));
});

/** Whether the list has every open question. */
export const areQuestionsKnown = computed(() => {
  const known = new Set((source().value()?.questions ?? []).map((/** @type {QuestionView} */ { id }) => id));
  return store.about().ready && store.questions().every(({ id }) => known.has(id));
});

/** The first open question of a call. @param {string} call its id */
export const questionOfCall = (call) => openQuestions().find((one) => one.call === call);

/** Whether the answer to a question, as it was displayed, came from this page. @param {string} key */
export const isAnsweredHere = (key) => answered().has(key);

/** A question as it is displayed: the same question about something else has another key. @param {QuestionView} question */
export const questionKey = ({ id, digest }) => `${id} ${digest}`;

/**
 * Answer a question as it is displayed.
 * @param {QuestionView} question
 * @param {object} body action and content
 * @returns {Promise<any>} the error, or null
 */
export async function answerQuestion(question, body) {
  const path = `/api/questions/${encodeURIComponent(question.id)}/answer`;
  const [, error] = await attempt(post(path, { ...body, digest: question.digest }));
  if (!error) answered.set(new Set(answered.peek()).add(questionKey(question)));
  else if (error.status === 409) void source().refetch();
  return error;
}

/** Whether a person can answer a question with more than a no. @param {Pick<QuestionView, "kind">} question */
export const isAnswerable = ({ kind }) => kind === "approval" || kind === "form" || kind === "url";

/** A question in a line: the arguments of an approval, or the words of the tool. @param {QuestionView} question */
export function questionSummary({ kind, arguments: given, message, schema }) {
  if (kind === "approval" && isContainer(given)) return argumentSummary(given);
  const fields = kind === "form" && Object.keys(schema?.properties ?? {}).length;
  return [safeText(message, 300), fields && plural(fields, "field")].filter(Boolean).join(" · ");
}

/** Arguments in a line: service "checkout", replicas 3. @param {Record<string, Json>} given */
export const argumentSummary = (given) =>
  Object.entries(given)
    .slice(0, 12)
    .map(([name, value]) => `${safeText(name, 60)} ${shortValue(value)}`)
    .join(", ") || "no arguments";

/** @param {Json} value */
function shortValue(value) {
  if (isRedacted(value)) return "(secret)";
  if (Array.isArray(value)) return `[${value.length}]`;
  if (isContainer(value)) return `{${Object.keys(value).length}}`;
  return safeText(typeof value === "string" ? value : JSON.stringify(value), MAX_VALUE_CHARS);
}
