// sender: sends answers to one question, and tells its owner if the question is closed.

import { answerQuestion } from "../../lib/call/open_questions.js";

/** Throws an error that a person can do something about. @typedef {(body: object) => Promise<void>} Send */
/** A send function, and what becomes of the question. @typedef {{onClosed?: (error: any) => void, onDone?: () => void}} Outcomes */

/**
 * @param {QuestionView} question
 * @param {Outcomes} [outcomes] `onClosed`: somebody else was first, or the question has changed
 * @returns {Send}
 */
export function sender(question, { onClosed, onDone } = {}) {
  return async (body) => {
    const error = await answerQuestion(question, body);
    if (!error) return onDone?.();
    if (error.status !== 409 || !onClosed) throw error;
    onClosed(error);
  };
}

/** The body of an approval's answer. @param {object} content */
export const decision = (content) => ({ action: "accept", content });
