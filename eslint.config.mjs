// What ESLint asks of the JavaScript here; names and types are tsc's business, layout is prettier's.
import js from "@eslint/js";

const textAsMarkup = (property) => ({ property, message: "text is put into a page as text" });

const SURFACE = {
  document: "dom.js, and what is given to it",
  window: "a name by itself",
  globalThis: "a name by itself",
};
const TIMERS = [
  "setTimeout",
  "setInterval",
  "requestAnimationFrame",
  "requestIdleCallback",
  "queueMicrotask",
];
const WIRES = ["fetch", "XMLHttpRequest", "WebSocket", "EventSource"];
// What the console does in one place only.
const elsewhere = [
  ...Object.entries(SURFACE).map(([name, where]) => ({ name, message: `use ${where}` })),
  ...TIMERS.map((name) => ({ name, message: "time.js has the timers, store.js the frames" })),
  ...WIRES.map((name) => ({ name, message: "api.js has the only fetch" })),
];

export default [
  js.configs.recommended,
  {
    linterOptions: { reportUnusedDisableDirectives: "error" },
    rules: {
      "no-undef": "off",
      "no-unused-vars": ["error", { argsIgnorePattern: "^_" }],
      "no-eval": "error",
      "no-implied-eval": "error",
      "no-new-func": "error",
      "no-restricted-properties": [
        "error",
        ...["innerHTML", "outerHTML", "insertAdjacentHTML", "setHTMLUnsafe"].map(textAsMarkup),
        { object: "document", property: "write", message: "text is put into a page as text" },
      ],
      "no-var": "error",
      "prefer-const": "error",
      eqeqeq: ["error", "always", { null: "ignore" }],
      "max-lines": ["error", { max: 300 }],
      "max-lines-per-function": ["error", { max: 30, skipBlankLines: true, skipComments: true }],
      "max-params": ["error", 5],
    },
  },
  // The console's views are made of its primitives, and of nothing else.
  {
    files: ["src/afoot/web/views/*.js"],
    rules: {
      "max-lines": ["error", { max: 200 }],
      "no-restricted-globals": ["error", ...elsewhere],
      "no-restricted-imports": [
        "error",
        {
          patterns: [
            {
              regex: "^(?!\\.\\./[a-z]+\\.js$)",
              message: "no view imports a view, nor anything from outside",
            },
          ],
        },
      ],
      "no-restricted-syntax": ["error", { selector: "ImportExpression", message: "no view loads a view" }],
    },
  },
  // Nor do the primitives do what is another's business.
  {
    files: ["src/afoot/web/*.js"],
    ignores: ["src/afoot/web/{api,store,time}.js"],
    rules: { "no-restricted-globals": ["error", ...elsewhere.filter(({ name }) => name !== "document")] },
  },
  // Scripts that a browser runs as they are: content scripts, and a plugin's files.
  {
    files: [
      "src/afoot/extension/{content,sdk}/**/*.js",
      "src/afoot/extension/{page,relay}.js",
      "examples/**/*.js",
    ],
    languageOptions: { sourceType: "script" },
  },
  // Their names are used by other scripts of the same world.
  {
    files: ["src/afoot/extension/sdk/**/*.js", "examples/**/*.js"],
    rules: { "no-unused-vars": ["error", { vars: "local", argsIgnorePattern: "^_" }] },
  },
];
