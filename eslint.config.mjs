// ESLint's rules for the JavaScript here. Names and types are checked by tsc, layout by prettier.
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
const NETWORK = ["fetch", "XMLHttpRequest", "WebSocket", "EventSource"];
// Each of these has one place in the console.
const elsewhere = [
  ...Object.entries(SURFACE).map(([name, where]) => ({ name, message: `use ${where}` })),
  ...TIMERS.map((name) => ({ name, message: "lib/time.js has the timers, lib/store.js the frames" })),
  ...NETWORK.map((name) => ({ name, message: "lib/api.js has the only fetch" })),
];

/** What the files of a folder of the console may not import. */
const importing = (files, regex) => ({
  files: [`src/afoot/web/${files}`],
  rules: {
    "no-restricted-imports": [
      "error",
      {
        patterns: [{ regex, message: "lib/ imports from lib/ alone, components/ from lib/ and components/" }],
      },
    ],
  },
});

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
      complexity: ["error", 16],
    },
  },
  // A statement is written as a statement, not as a part of an expression.
  {
    files: ["src/**/*.js"],
    rules: { "no-sequences": ["error", { allowInParentheses: false }] },
  },
  // A view of the console is made of lib/ and components/; no view imports another view.
  {
    files: ["src/afoot/web/views/*.js"],
    rules: {
      "no-restricted-globals": ["error", ...elsewhere],
      "no-restricted-imports": [
        "error",
        {
          patterns: [
            {
              regex: "^(?!\\.\\./(lib|components)/([a-z_]+/)?[a-z_]+\\.js$)",
              message: "a view imports from lib/ and components/ alone",
            },
          ],
        },
      ],
      "no-restricted-syntax": ["error", { selector: "ImportExpression", message: "no view loads a view" }],
    },
  },
  // The modules of lib/ know nothing of components and views; components import no view. A folder is one level deep.
  importing("lib/*.js", "^(?!\\./([a-z_]+/)?[a-z_]+\\.js$)"),
  importing("lib/*/*.js", "^(?!\\./[a-z_]+\\.js$|\\.\\./([a-z_]+/)?[a-z_]+\\.js$)"),
  importing("components/*.js", "^(?!\\./([a-z_]+/)?[a-z_]+\\.js$|\\.\\./lib/([a-z_]+/)?[a-z_]+\\.js$)"),
  importing(
    "components/*/*.js",
    "^(?!\\./[a-z_]+\\.js$|\\.\\./([a-z_]+/)?[a-z_]+\\.js$|\\.\\./\\.\\./lib/([a-z_]+/)?[a-z_]+\\.js$)",
  ),
  // Timers, network and the window are used by the modules that own them alone.
  {
    files: ["src/afoot/web/{lib,components}/**/*.js", "src/afoot/web/main.js"],
    ignores: ["src/afoot/web/lib/{api,store,time}.js"],
    rules: { "no-restricted-globals": ["error", ...elsewhere.filter(({ name }) => name !== "document")] },
  },
  // A browser runs these as classic scripts: content scripts, the SDK, and the files of a plugin.
  {
    files: ["src/afoot/extension/{content,sdk}/**/*.js", "examples/**/*.js"],
    languageOptions: { sourceType: "script" },
  },
  // Their top-level names are used by other scripts of the same world.
  {
    files: ["src/afoot/extension/sdk/**/*.js", "examples/**/*.js"],
    rules: { "no-unused-vars": ["error", { vars: "local", argsIgnorePattern: "^_" }] },
  },
];
