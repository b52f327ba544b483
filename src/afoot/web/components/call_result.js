// answerSummary: an answer in words.

import { joinNonEmpty, safeText } from "../lib/format.js";

/** An answer in words: the decision, by whom, and where. @param {AnswerView} answer */
export function answerSummary({ action, content, by, surface, who }) {
  const surfaceText = surface && surface !== by && `in the ${surface.replace("api", "API")}`;
  return safeText(`${content?.decision ?? action}, by ${joinNonEmpty(by, surfaceText, who)}`, 300);
}
