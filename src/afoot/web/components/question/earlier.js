// earlierAnswers: what people answered before about the same tool, newest first.

import { get } from "../../lib/api.js";
import { attempt } from "../../lib/resource.js";
import { signal } from "../../lib/signal.js";

/** Null until they have arrived. @typedef {() => GivenAnswer[] | null} Earlier */

const MOST = "50";

/** @param {Pick<QuestionView, "tool" | "server">} question @returns {Earlier} */
export function earlierAnswers({ tool, server }) {
  const found = signal(/** @type {GivenAnswer[] | null} */ (null));
  const query = new URLSearchParams({ tool, server, limit: MOST });
  void attempt(get(`/api/answers?${query}`)).then(([answer]) => found.set(answer?.answers ?? []));
  return found;
}

/** The words of earlier rejections, each once. @param {readonly GivenAnswer[]} answers @param {number} most */
export function earlierWords(answers, most) {
  const words = answers.map(({ answer }) => answer.content?.instead);
  const short = words.filter((one) => typeof one === "string" && one !== "" && one.length < 200);
  return [...new Set(/** @type {string[]} */ (short))].slice(0, most);
}
