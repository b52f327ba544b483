// Schemas as fields, drafts and values: every construct of MCP elicitation, and what running a tool needs besides.
import assert from "node:assert/strict";
import { test } from "node:test";

import { parse } from "../../../../src/afoot/web/lib/text/exact_json.js";
import { draftOf, fieldOf, isFullyShown, valueOf } from "../../../../src/afoot/web/lib/form_schema.js";

const object = (properties, required = []) => ({ type: "object", properties, required });

/** The value and the misfits of a form whose fields were typed into. */
function typed(schema, drafts = {}) {
  const field = fieldOf(schema);
  const wrong = [];
  const value = valueOf(field, { ...draftOf(field), ...drafts }, wrong);
  return { value, wrong };
}

/** What is said of one field. */
const said = (schema, draft) =>
  typed(object({ a: schema }, ["a"]), { a: draft }).wrong.map((one) => one.message);

const EVERY = object({
  name: { type: "string", title: "Your name", description: "in full" },
  age: { type: "integer" },
  size: { type: "number" },
  sure: { type: "boolean" },
  colour: { type: "string", enum: ["r", "g"], enumNames: ["Red", "Green"] },
  shape: {
    type: "string",
    oneOf: [
      { const: "o", title: "Round" },
      { const: "x", title: "Cross" },
    ],
  },
  many: { type: "array", items: { type: "string", enum: ["a", "b"] } },
  titled: { type: "array", items: { anyOf: [{ const: "a", title: "An A" }, { const: "b" }] } },
});

test("Q2: each type of elicitation becomes its kind of field", () => {
  const field = fieldOf(EVERY);
  const kinds = Object.fromEntries(field.fields.map((one) => [one.name, one.kind]));
  assert.deepEqual(kinds, {
    name: "text", age: "number", size: "number", sure: "boolean",
    colour: "choice", shape: "choice", many: "choices", titled: "choices",
  }); // prettier-ignore
  assert.deepEqual(
    [field.fields[0].title, field.fields[0].hint, field.fields[0].required],
    ["Your name", "in full", false],
  );
  assert.deepEqual(field.fields[4].options, [
    { value: "r", title: "Red" },
    { value: "g", title: "Green" },
  ]);
  assert.deepEqual(
    field.fields[5].options.map((one) => one.title),
    ["Round", "Cross"],
  );
  assert.deepEqual(
    field.fields[7].options.map((one) => one.title),
    ["An A", "b"],
  );
});

test("Q2: what is typed becomes a value of its type; what is left empty and optional is left out", () => {
  const schema = object(
    {
      name: { type: "string" }, age: { type: "integer" }, size: { type: "number" }, sure: { type: "boolean" },
      maybe: { type: "boolean" }, pick: { enum: [1, null, "x"] }, many: { type: "array", items: { enum: ["a", "b", "c"] } },
      note: { type: "string" },
    },
    ["name", "age", "sure"],
  ); // prettier-ignore
  const { value, wrong } = typed(schema, {
    name: " Ann ",
    age: "37",
    size: "1.5e3",
    pick: "1",
    many: ["2", "0"],
  });
  assert.deepEqual(wrong, []);
  assert.deepEqual(value, { name: " Ann ", age: 37, size: 1500, sure: false, pick: null, many: ["a", "c"] });
});

test("Q2: defaults stand in the fields", () => {
  const schema = object({
    a: { type: "string", default: "x" },
    b: { type: "integer", default: 0 },
    c: { type: "boolean", default: true },
    d: { enum: ["p", "q"], default: "q" },
    e: { type: "array", items: { enum: ["p", "q"] }, default: ["q"] },
  });
  assert.deepEqual(draftOf(fieldOf(schema)), { a: "x", b: "0", c: "true", d: "1", e: ["1"] });
  assert.deepEqual(typed(schema).value, { a: "x", b: 0, c: true, d: "q", e: ["q"] });
});

test("Q2: limits and formats are said at their field, before anything is sent", () => {
  const rows = [
    [{ type: "string" }, "", "nothing entered yet"],
    [{ type: "string", minLength: 3 }, "ab", "needs at least 3 characters"],
    [{ type: "string", maxLength: 2 }, "🙂🙂🙂", "takes at most 2 characters"],
    [{ type: "string", format: "email" }, "nobody", "must be an email address"],
    [
      { type: "string", format: "uri" },
      "example.com",
      "must be an address with its scheme, such as https://…",
    ],
    [{ type: "string", format: "date" }, "1.2.2026", "must be a date"],
    [{ type: "string", format: "date-time" }, "noon", "must be a date and a time"],
    [{ type: "integer" }, "1.5", "must be a whole number"],
    [{ type: "number" }, "0x10", "must be a number"],
    [{ type: "number", minimum: 1 }, "0", "must be at least 1"],
    [{ type: "number", maximum: 1 }, "2", "must be at most 1"],
    [{ type: "number", exclusiveMinimum: 1 }, "1", "must be over 1"],
    [{ type: "number", exclusiveMaximum: 1 }, "1", "must be under 1"],
    [{ type: "array", items: { enum: ["a"] }, minItems: 1 }, [], "needs at least 1"],
    [{ type: "array", items: { enum: ["a", "b"] }, maxItems: 1 }, ["0", "1"], "takes at most 1"],
  ];
  for (const [schema, draft, message] of rows)
    assert.deepEqual(said(schema, draft), [message], JSON.stringify(schema));
  const fine = [
    [{ type: "string", maxLength: 2 }, "🙂🙂"],
    [{ type: "string", format: "email" }, "a@b.c"],
  ];
  for (const [schema, draft] of fine) assert.deepEqual(said(schema, draft), [], JSON.stringify(schema));
});

test("Q2: a time without a zone is that of whoever typed it; one with a zone stays as it is", () => {
  const schema = object({ at: { type: "string", format: "date-time" } });
  assert.equal(
    typed(schema, { at: "2026-11-15T10:30" }).value.at,
    new Date(2026, 10, 15, 10, 30).toISOString(),
  );
  assert.equal(typed(schema, { at: "2026-11-15T10:30:00+05:00" }).value.at, "2026-11-15T10:30:00+05:00");
});

test("V1: nested objects, arrays, nullable and references, as Python's signatures have them", () => {
  const schema = {
    ...object({
      point: { $ref: "#/$defs/Point" },
      points: { type: "array", items: { $ref: "#/$defs/Point" } },
      limit: { anyOf: [{ type: "integer" }, { type: "null" }], default: null, title: "Limit" },
      word: { type: ["string", "null"] },
      only: { allOf: [{ $ref: "#/$defs/Point" }], description: "one" },
    }, ["point"]),
    $defs: { Point: object({ x: { type: "integer" }, label: { type: "string" } }, ["x"]) },
  }; // prettier-ignore
  const field = fieldOf(schema);
  assert.deepEqual(field.fields.map((one) => [one.kind, one.nullable]), [
    ["object", false], ["array", false], ["number", true], ["text", true], ["object", false],
  ]); // prettier-ignore
  assert.deepEqual([field.fields[2].title, field.fields[4].hint], ["Limit", "one"]);
  const { value, wrong } = typed(schema, {
    point: { x: "1", label: "" },
    points: [
      { x: "2", label: "b" },
      { x: "", label: "" },
    ],
  });
  assert.deepEqual(value, { point: { x: 1 }, points: [{ x: 2, label: "b" }, {}], limit: null });
  assert.deepEqual(wrong, [{ field: "points.1.x", message: "nothing entered yet" }]);
});

test("V1: names that every object knows are nothing special", () => {
  const odd = object({
    constructor: { type: "string", format: "constructor" },
    __proto__x: { type: "toString" },
  });
  assert.deepEqual(
    fieldOf(odd).fields.map((one) => one.kind),
    ["text", "json"],
  );
  assert.deepEqual(typed(odd, { constructor: "x" }), { value: { constructor: "x" }, wrong: [] });
});

test("V1: what is no field is a JSON editor, also what refers to itself", () => {
  const free = fieldOf(
    object({
      any: {},
      dict: { type: "object", additionalProperties: { type: "string" } },
      mix: { anyOf: [{ type: "string" }, { type: "object" }] },
    }),
  );
  assert.deepEqual(
    free.fields.map((one) => one.kind),
    ["json", "json", "json"],
  );
  assert.deepEqual(typed(object({ any: {} }), { any: '{"a": [1]}' }).value, { any: { a: [1] } });
  assert.match(typed(object({ any: {} }), { any: "{a" }).wrong[0].message, /^is not JSON: /);
  const tree = {
    ...object({ t: { $ref: "#/$defs/T" } }),
    $defs: { T: object({ t: { $ref: "#/$defs/T" } }, ["t"]) },
  };
  assert.equal(fieldOf(tree).fields[0].kind, "object");
  for (const odd of [true, undefined, {}, { $ref: "#/$defs/Nowhere" }, { $ref: "https://elsewhere" }])
    assert.equal(fieldOf(odd).kind, "json");
});

test("V1: arguments that a form would not show whole are edited as JSON", () => {
  const field = fieldOf(object({ a: { type: "integer" }, b: { type: "array", items: { type: "string" } } }));
  assert.equal(isFullyShown(field, { b: ["x"], a: 1 }), true);
  assert.equal(isFullyShown(field, { a: 1, hidden: true }), false);
  assert.equal(isFullyShown(field, { a: "1" }), false);
  assert.equal(isFullyShown(field, undefined), true);
  const usual = fieldOf(
    object({ a: { type: "integer", default: 1 }, b: { type: "array", items: { enum: [1] }, default: [1] } }),
  );
  assert.deepEqual(
    [draftOf(usual, {}), isFullyShown(usual, {})],
    [{ a: "", b: [] }, true],
    "what was left out is not filled in",
  );
});

test("A6: no digit of a number is lost on the way in and out", () => {
  const text =
    '{"id":12345678901234567890,"small":0.1,"huge":1e999,"long":0.12345678901234567890123,"time":1763219867.1234567}';
  const value = parse(text);
  assert.ok(
    JSON.isRawJSON(value.id) &&
      JSON.isRawJSON(value.huge) &&
      JSON.isRawJSON(value.long) &&
      !JSON.isRawJSON(value.small) &&
      !JSON.isRawJSON(value.time),
  );
  assert.equal(JSON.stringify(value), text);
  const schema = object({ n: { type: "integer" } });
  assert.equal(
    JSON.stringify(typed(schema, { n: "12345678901234567890" }).value),
    '{"n":12345678901234567890}',
  );
  assert.equal(isFullyShown(fieldOf(schema), parse('{"n":12345678901234567890}')), true);
});
