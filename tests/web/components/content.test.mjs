// Content made safe, texts compared word by word, and commands that bash reads as they were meant.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { test } from "node:test";

import { parse } from "../../../src/afoot/web/lib/text/exact_json.js";
import { decodeBase64, parseSafeUrl, columnsOf } from "../../../src/afoot/web/components/content.js";
import { shellCommand } from "../../../src/afoot/web/lib/text/shell_command.js";
import { diffWords } from "../../../src/afoot/web/lib/text/text_diff.js";

test("V1: only an array of flat objects with equal keys is a table", () => {
  assert.deepEqual(
    columnsOf([
      { a: 1, b: "x" },
      { b: null, a: 2 },
    ]),
    ["a", "b"],
  );
  for (const other of [
    [],
    [{ a: 1 }],
    [{ a: 1 }, { b: 1 }],
    [{ a: 1 }, { a: [] }],
    [{ a: 1 }, { a: 1, b: 2 }],
    [{}, {}],
    [1, 2],
    "x",
    null,
  ])
    assert.equal(columnsOf(other), null, JSON.stringify(other));
  assert.ok(columnsOf(parse('[{"a":12345678901234567890},{"a":1}]')), "a long number is flat");
});

test("V1: links are http and https, their host in full, and carry no name of a user", () => {
  assert.deepEqual(parseSafeUrl("https://Example.com:8443/a?b#c"), {
    href: "https://example.com:8443/a?b#c",
    host: "example.com:8443",
  });
  for (const bad of [
    "javascript:alert(1)",
    " javascript:alert(1)",
    "data:text/html,x",
    "file:///etc/passwd",
    "blob:https://a/b",
    "//a.b",
    "a.b",
    "https://good.com@evil.com/",
    null,
    {},
  ])
    assert.equal(parseSafeUrl(bad), null, String(bad));
});

test("V1: base64 becomes bytes, anything else nothing", () => {
  assert.deepEqual([...(decodeBase64("AAH/") ?? [])], [0, 1, 255]);
  assert.equal(decodeBase64("<svg>"), null);
});

test("A4: what changed is marked word by word", () => {
  assert.deepEqual(diffWords("delete the old file", "delete all the old files"), [
    { kind: "same", text: "delete " }, { kind: "new", text: "all " }, { kind: "same", text: "the old " },
    { kind: "gone", text: "file" }, { kind: "new", text: "files" },
  ]); // prettier-ignore
  assert.deepEqual(diffWords("same", "same"), [{ kind: "same", text: "same" }]);
  assert.deepEqual(diffWords("", "new"), [{ kind: "new", text: "new" }]);
});

test("A4: whatever is compared, nothing of either text is lost", () => {
  const words = ["a", "b", " ", "\n", "é", "🙂", "'", "{"];
  let seed = 7;
  const text = (size) =>
    Array.from({ length: size }, () => words[(seed = (seed * 48271) % 2147483647) % words.length]).join("");
  for (const size of [0, 1, 5, 40, 3000]) {
    const [before, after] = [text(size), text(size)];
    const pieces = diffWords(before, after);
    const of = (kind) => pieces.filter((one) => one.kind !== kind).map((one) => one.text).join(""); // prettier-ignore
    assert.deepEqual([of("new"), of("gone")], [before, after]);
  }
});

/** The words that bash makes of a command. */
function pasted(line, env = {}) {
  assert.match(line, /^[ -~]+$/, "one line of plain ASCII");
  const script = `afoot() { printf '%s\\0' "$@"; }\n${line}\n`;
  const how = { input: script, env: { ...env, PATH: process.env.PATH }, stdio: ["pipe", "pipe", "pipe"] };
  const words = execFileSync("bash", ["-s"], how).toString().split("\0").slice(0, -1);
  assert.equal(words[0], "call");
  return words;
}

test("V1: a command pasted into bash gives the same arguments, whatever is in them", () => {
  const hostile = {
    "a'b": `'; touch /tmp/owned; echo '`, quote: `"$HOME" \`id\` $(id) \\ \\' !! ~ *`, lines: "one\ntwo\r\n\ttab\0null",
    escape: "\u001b]0;title\u0007\u009b31m", bidi: "\u202egnp.exe\u2066", emoji: "🙂é\u2028\ud800", empty: "", deep: [{ "--args": "-x" }, null, true, 1.5],
  }; // prettier-ignore
  const long = parse('{"n":12345678901234567890}');
  for (const [tool, args] of [
    ["add", {}],
    ["it's a tool; rm -rf /", hostile],
    ["a/b:c@d", long],
    ["--help", hostile],
    ["$(id)", { a: 1 }],
  ]) {
    const { line, variables } = shellCommand(tool, args);
    assert.deepEqual(variables, []);
    const words = pasted(line);
    assert.ok(words.includes(tool));
    assert.equal(words.length, tool.startsWith("-") ? 5 : 4);
    const given = words[words.indexOf("--args") + 1];
    assert.equal(JSON.stringify(parse(given)), JSON.stringify(args));
  }
});

test("V1: what was redacted is a variable of the command, and nothing runs while it is not set", () => {
  const hidden = { "dev.afoot/redacted": true };
  const args = {
    user: "ann",
    api_key: hidden,
    pwd: hidden,
    "api-key": hidden,
    "it's é": [{ token: hidden }],
    "a=b": hidden,
  };
  const { line, variables } = shellCommand("log_in", args);
  assert.deepEqual(variables, ["API_KEY", "MY_PWD", "API_KEY_3", "IT_S_"]);
  const secrets = { API_KEY: `'; touch owned; $(id) "`, MY_PWD: "a b\n*", API_KEY_3: "-x", IT_S_: "[1]" };
  const words = pasted(line, secrets);
  assert.deepEqual(parse(words[words.indexOf("--args") + 1]), { user: "ann" });
  const told = [`api_key=${secrets.API_KEY}`, `pwd=${secrets.MY_PWD}`, "api-key=-x", "it's é=[1]"];
  assert.deepEqual(words.slice(-4), told);
  assert.throws(() => pasted(line, { ...secrets, MY_PWD: "" }), /MY_PWD/);
});
