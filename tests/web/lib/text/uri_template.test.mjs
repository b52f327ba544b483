// URI templates of resources (RFC 6570), as far as servers offer them.
import assert from "node:assert/strict";
import test from "node:test";
import { fillTemplate, variablesOf } from "../../../../src/afoot/web/lib/text/uri_template.js";

test("V1, F3: the variables of a template are asked for once each", () => {
  assert.deepEqual(variablesOf("db://{table}/{row}{?lang,table}"), ["table", "row", "lang"]);
  assert.deepEqual(variablesOf("file:///{+path}{path:3}{list*}"), ["path", "list"]);
  assert.deepEqual(variablesOf("config://app"), []);
});

test("V1, F3: values are escaped as their expression wants, and missing ones are left out", () => {
  const values = { var: "a/b c", x: "1", y: "é&" };
  const cases = {
    "r://{var}": "r://a%2Fb%20c",
    "r://{+var}": "r://a/b%20c",
    "r://h{/x,var}": "r://h/1/a%2Fb%20c",
    "r://h{?x,none,y}": "r://h?x=1&y=%C3%A9%26",
    "r://h?a=1{&x}": "r://h?a=1&x=1",
    "r://h{#var}": "r://h#a/b%20c",
    "r://h{;x}{.x}": "r://h;x=1.1",
    "r://h{?none}": "r://h",
  };
  for (const [template, uri] of Object.entries(cases)) assert.equal(fillTemplate(template, values), uri);
});
