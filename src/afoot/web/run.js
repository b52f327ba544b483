// A form that starts a call: of a tool, or of an earlier call once more.

import { post } from "./api.js";
import { sending } from "./control.js";
import { h } from "./dom.js";
import { form } from "./form.js";
import { tried } from "./load.js";
import { callAt, go } from "./router.js";
import { signal } from "./signal.js";

/** `to` is where it is sent with `body` and the arguments; a `warning` makes it ask twice. @typedef {{to: string, body?: object, title: string, label: string, hint?: string, warning?: string | false}} How */

/** @param {Schema} schema @param {{key: string, value?: Json}} of @param {How} how */
export function runner(schema, of, { to, body, title, label, hint, warning }) {
  const [fields, isWarned] = [form(schema, of), signal(false)];
  const start = async () => {
    const found = fields.read();
    if (!found) return;
    if (warning && !isWarned.peek()) return isWarned.set(true);
    const [call, error] = await tried(post(to, { ...body, arguments: found.value }));
    if (error) throw (fields.show(error.fields), error);
    fields.forget();
    go(callAt(call.id));
  };
  const button = h("button.main", () => (isWarned() ? "Run it all the same" : label));
  const doubt = h("p.problem", { role: "alert", shown: isWarned }, warning);
  return sending("form.sheet", start, h("h2", title), h("p.soft", hint), fields.node, doubt, h("p.row", button));
}
