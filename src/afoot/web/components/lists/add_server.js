// addServerForm: a server for this run of the gateway, by a command or an address.

import { post } from "../../lib/api.js";
import { h } from "../../lib/dom.js";
import { navigate, withQuery } from "../../lib/router.js";
import { submitForm } from "../controls.js";

/** @param {() => unknown} done */
export function addServerForm(done) {
  const name = h("input", { name: "name", required: true, autocomplete: "off" });
  const target = h("input", {
    name: "target",
    required: true,
    autocomplete: "off",
    placeholder: "https://… or a command",
  });
  const add = async () => {
    await post("/api/servers", { name: name.value.trim(), ...serverOf(target.value) });
    navigate(withQuery({ add: null }), { replace: true });
    await done();
  };
  return submitForm(
    "form.inline-form",
    add,
    h("label", "Name", name),
    h("label", "Address or command", target),
    h("button.main", "Add"),
    h("p.faint", "It stays until the gateway ends, and is written into no file."),
  );
}

/**
 * An address, or a command with its arguments; quotes keep spaces together.
 * @param {string} text
 */
export function serverOf(text) {
  const target = text.trim();
  if (/^https?:\/\//i.test(target)) return { url: target };
  const parts = [...target.matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g)].map(([, a, b, c]) => a ?? b ?? c);
  const [command = "", ...args] = parts;
  return { command, args };
}
