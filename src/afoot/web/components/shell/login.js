// loginView: shown to a browser that is not logged in; it holds no data.

import { loginProblem } from "../../lib/api.js";
import { h } from "../../lib/dom.js";
import { copyButton } from "../controls.js";

const COMMAND = "afoot console --open";

export const loginView = () =>
  h(
    "section.login",
    h("p.problem", { role: "alert", shown: loginProblem }, loginProblem),
    h("p", "This console opens with a link that works once. In a terminal on the gateway's machine, run"),
    h("div.copy-line", h("code", COMMAND), copyButton(COMMAND, { class: "small" })),
    h("p.dim", "It opens that link. ", h("code", "afoot console"), " prints it instead, for another browser."),
  );
