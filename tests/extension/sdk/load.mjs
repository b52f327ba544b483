// The SDK as Python joins it, but without a context: as a unit test of a plugin has it.
import { readFileSync } from "node:fs";
import { runInThisContext } from "node:vm";

export const ROOT = new URL("../../../", import.meta.url);
const EXTENSION = new URL("src/afoot/extension/", ROOT);
const { sdk, offered } = JSON.parse(readFileSync(new URL("sdk/files.json", EXTENSION), "utf8"));

/** A fresh SDK: what it offers to plugins, and `more` names of its inside. */
export function loadSDK(more = [], files = sdk, given = offered) {
  const texts = files.map((name) => readFileSync(new URL(name, EXTENSION), "utf8").replace(/^export /gm, ""));
  return runInThisContext(`(() => {"use strict";\n${texts.join("\n")}\nreturn {${[...given, ...more]}};})()`);
}

/** A vector file that Python's tests read, too. */
export function readVectors(name) {
  return JSON.parse(readFileSync(new URL(`tests/vectors/${name}.json`, ROOT), "utf8"));
}
