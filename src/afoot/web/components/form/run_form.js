// runForm: a form that starts a call of a tool, or runs an earlier call again.

import { post } from "../../lib/api.js";
import { submitButton, submitForm } from "../controls.js";
import { h } from "../../lib/dom.js";
import { schemaForm } from "./form.js";
import { attempt } from "../../lib/resource.js";
import { callPath, navigate } from "../../lib/router.js";
import { signal } from "../../lib/signal.js";

/** The form is sent to `to` with `body` and the arguments; a `warning` must be confirmed. @typedef {{to: string, body?: object, title: string, label: string, hint?: string, warning?: string | false}} RunOptions */

/** @param {Schema} schema @param {{key: string, value?: Json}} of @param {RunOptions} how */
export function runForm(schema, of, { to, body, title, label, hint, warning }) {
  const fields = schemaForm(schema, of);
  const isWarned = signal(false);
  const start = async () => {
    const found = fields.read();
    if (!found) return;
    if (warning && !isWarned.peek()) return isWarned.set(true);
    const [call, error] = await attempt(post(to, { ...body, arguments: found.value }));
    if (error) {
      fields.show(error.fields);
      throw error;
    }
    fields.forget();
    navigate(callPath(call.id));
  };
  const button = submitButton(() => (isWarned() ? "Run it all the same" : label));
  const warningText = h("p.problem", { role: "alert", shown: isWarned }, warning);
  return submitForm(
    "form.sheet",
    start,
    h("h2", title),
    h("p.soft", hint),
    fields.node,
    warningText,
    h("div.buttons", fields.jsonButton, h("span.grow"), button),
  );
}
