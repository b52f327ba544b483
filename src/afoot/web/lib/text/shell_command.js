// shellCommand: a call as a command line for bash.

import { redactedPaths } from "./exact_json.js";

/**
 * The command that makes this call again, in ASCII. Redacted values become shell variables, which must be set:
 * `key=value` overrides `--args`, and is converted by the tool's schema.
 * @param {string} tool
 * @param {Record<string, Json>} args
 */
export function shellCommand(tool, args) {
  const lookup = lookupCommand(tool, args);
  if (lookup) return { line: lookup, variables: [] };
  const hidden = Object.keys(args).filter((name) => redactedPaths(args[name]).length && !name.includes("="));
  const plain = Object.entries(args).filter(([, value]) => !redactedPaths(value).length);
  const variables = hidden
    .map(variableName)
    .map((name, at, all) => (all.indexOf(name) < at ? `${name}_${at + 1}` : name));
  const given = `--args ${shellQuote(escapeNonAscii(JSON.stringify(Object.fromEntries(plain))))}`;
  const words = hidden.map((name, at) => `${shellQuote(`${name}=`)}"\${${variables[at]}:?}"`);
  const isOdd = [tool, ...words].some((word) => word.startsWith("-")); // after `--` it is not read as an option
  const parts = isOdd ? [given, "--", shellQuote(tool)] : [shellQuote(tool), given];
  return { line: ["afoot call", ...parts, ...words].join(" "), variables };
}

/** The command for a call that is no tool's: a read of a resource, or a prompt. @param {string} tool @param {Record<string, Json>} args */
function lookupCommand(tool, args) {
  if (tool.startsWith("resource ")) return `afoot read ${shellQuote(String(args.uri ?? ""))}`;
  if (!tool.startsWith("prompt ")) return "";
  const words = Object.entries(args).map(([key, value]) => shellQuote(`${key}=${value}`));
  return ["afoot prompt", shellQuote(tool.slice("prompt ".length)), ...words].join(" ");
}

/** Escape every character that is not printable ASCII. @param {string} json */
const escapeNonAscii = (json) =>
  json.replace(/[^ -~]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`);

/** @param {string} text */
function shellQuote(text) {
  if (/^[\w./:@=-]+$/.test(text)) return text;
  if (/^[ -~]*$/.test(text)) return `'${text.replaceAll("'", `'\\''`)}'`;
  const bytes = [...new TextEncoder().encode(text)].map((one) => `\\x${one.toString(16).padStart(2, "0")}`);
  return `$'${bytes.join("")}'`;
}

/** A variable name that no shell uses itself, as it does PWD or PATH. @param {string} key */
function variableName(key) {
  const name = key.replace(/\W+/g, "_").toUpperCase();
  return /^[A-Z]+_\w/.test(name) ? name : `MY_${name}`;
}
