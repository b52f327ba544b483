// The page of one call: its timeline, result and story, and the column of its facts. A live call changes in place.

import { post } from "../lib/api.js";
import { callActions } from "../components/call/actions.js";
import { callModel } from "../components/call/call_model.js";
import { callClocks } from "../components/call/clocks.js";
import { callComparison } from "../components/call/compare.js";
import { callArguments, callFacts, callIds, callLimits, remoteCalls } from "../components/call/facts.js";
import { callFailure } from "../components/call/failure.js";
import { callResult } from "../components/call/result.js";
import { callStory } from "../components/call/story.js";
import { registerCallKeys } from "../components/call/call_keys.js";
import { callProgress } from "../components/call/call_pane.js";
import { contentBlocks } from "../components/content.js";
import { copyButton, submitForm } from "../components/controls.js";
import { loadingRows } from "../components/empty.js";
import { icon } from "../components/marks/icon.js";
import { wholeQuestion } from "../components/question/question.js";
import { runForm } from "../components/form/run_form.js";
import { stateIcon } from "../components/marks/state_icon.js";
import { waterfall } from "../components/call/waterfall.js";
import { formatMinute, stateInWords } from "../lib/call/facts_in_words.js";
import { each, h } from "../lib/dom.js";
import { joinNonEmpty, plural, safeText, statusMessage } from "../lib/format.js";
import { errorMessage, resource } from "../lib/resource.js";
import { registerKeys, keyHint } from "../lib/keys.js";
import { questionKey, questionOfCall } from "../lib/call/open_questions.js";
import { callPath, navigate, route, toolPath, withQuery } from "../lib/router.js";
import { shellCommand } from "../lib/text/shell_command.js";
import { computed, onCleanup, signal } from "../lib/signal.js";
import { mostAtOnce } from "../lib/call/spans.js";

/** @typedef {import("../components/call/call_model.js").CallModel} CallModel */
/** @typedef {() => CallView} View the newest known view */

const ROW_PX = 30;
const FIRST_ROWS = 30; // of a timeline; a tree of hundreds hides the result otherwise
const UNCERTAIN_WARNING =
  "It is uncertain what it did: its effects may have happened. Press once more to run it all the same.";
const shownTool = signal("");

/** The name of the tool, once it is known. */
export const title = () => shownTool() || "Call";

/** @param {Route} route @returns {HTMLElement} */
export function view({ params: { id = "" } }) {
  const model = callModel(id);
  onCleanup(() => shownTool.set(""));
  const found = () => [model.view()].filter((one) => one !== null);
  return h(
    "section.call-page",
    loadingRows(() => model.view() || model.problem()),
    errorMessage(model.problem),
    each(found, "id", (_, newest) => page(model, newest)),
  );
}

/** @param {CallModel} model @param {View} view */
function page(model, view) {
  const { id, rows, silence, reading, call } = model;
  const first = view();
  const { value: runs } = resource(() => `/api${callPath(id)}/runs`);
  const { value: tool } = resource(() => (isLookup(first.tool) ? "" : `/api${toolPath(first.tool)}`));
  const usual_s = () => tool()?.stats?.p50_s ?? null;
  const ceiling_s = () => view().limits?.ceiling_s ?? null;
  const panel = signal(route.peek().query.again ? "again" : "");
  const remote = () => call()?.remote ?? view().remote ?? [];
  shownTool.set(safeText(first.tool, 200));
  registerPageKeys(model, runs, panel);
  return h(
    "div.call-page-inside",
    runLinks(model, first, runs),
    pageHead(model, view, runs, panel),
    panelBelow(view, panel),
    h(
      "div.call-columns",
      h(
        "div.call-main",
        openQuestion(model),
        h(
          "section.card.call-live",
          { shown: () => model.isLive() && model.state() !== "waiting" },
          callProgress(model, safeText(first.tool, 100)),
        ),
        part(view, "failure", callFailure),
        timeline(model),
        comparison(view, rows),
        part(view, "result", callResult),
        part(view, "partials", (all) =>
          h("section.card", h("header.card-head", h("h2", "Partial results")), ...all.map(contentBlocks)),
        ),
        remoteCalls(remote),
        callStory(model.story, model.storyProblem, first),
      ),
      h(
        "aside.call-column",
        { "aria-label": "Facts" },
        h("section", h("h2", "The two clocks"), callClocks(reading, silence, ceiling_s)),
        argumentsSection(view),
        h("section", callFacts(view, rows, usual_s)),
        part(view, "limits", (limits) => h("section", h("h2", "Limits"), callLimits(limits))),
        h("section", callIds(view)),
      ),
    ),
  );
}

/** The keys of the page. @param {CallModel} model @param {() => RunsView | null} runs @param {Signal<string>} panel */
function registerPageKeys({ entry, call }, runs, panel) {
  registerCallKeys(entry);
  const goTo = (/** @type {"earlier" | "later"} */ which) => ({
    when: () => runs()?.[which],
    act: () => navigate(callPath(runs()?.[which]?.id ?? "")),
  });
  registerKeys(
    { keys: "[", words: "Earlier run", ...goTo("earlier") },
    { keys: "]", words: "Later run", ...goTo("later") },
    { keys: "r", words: "Run again", when: () => call()?.state === "finished", act: () => panel.set("again") },
  );
}

/**
 * Where this page is, and the ways to the runs before and after.
 * @param {CallModel} model
 * @param {CallView} call
 * @param {() => RunsView | null} runs
 */
function runLinks({ isLive }, { tool }, runs) {
  const link = (/** @type {"earlier" | "later"} */ which, /** @type {string} */ word, /** @type {string} */ key) => {
    const other = () => runs()?.[which] ?? null;
    const href = () => callPath(other()?.id ?? "");
    const mark = icon(which === "earlier" ? "left" : "right", "s");
    const parts = which === "earlier" ? [mark, word, h("kbd", key)] : [word, h("kbd", key), mark];
    return h("a.button.quiet", { shown: other, href, "aria-keyshortcuts": key, "data-run": which }, ...parts);
  };
  return h(
    "nav.call-crumb",
    { "aria-label": "Runs" },
    h("a", { href: () => (isLive() ? "/live" : "/history") }, () => (isLive() ? "Live" : "History")),
    icon("right", "s"),
    h("a", { href: `/history?${new URLSearchParams({ tool })}` }, safeText(tool, 200)),
    h("span.push", link("earlier", "Earlier run", "["), link("later", "Later run", "]")),
  );
}

/**
 * The state, the last words, and the buttons.
 * @param {CallModel} model
 * @param {View} view
 * @param {() => RunsView | null} runs
 * @param {Signal<string>} panel the part that is open below
 */
function pageHead(model, view, runs, panel) {
  const { state, call } = model;
  const word = () => stateInWords(state() ?? "queued", call()?.outcome ?? null);
  const message = () =>
    call()?.state === "finished" && call()?.outcome === "ok"
      ? safeText(statusMessage(/** @type {Call} */ (call())) ?? view().message, 300)
      : "";
  const toggle = (/** @type {string} */ name) => panel.set(panel.peek() === name ? "" : name);
  const opener = (/** @type {string} */ name, /** @type {Props} */ about, /** @type {Child[]} */ ...parts) =>
    h(
      "button",
      {
        type: "button",
        "data-opens": name,
        "aria-expanded": () => String(panel() === name),
        onclick: () => toggle(name),
        ...about,
      },
      ...parts,
    );
  const other = () => runs()?.earlier ?? runs()?.later ?? null;
  const isCompared = () => Boolean(route().query.with);
  const compare = () => navigate(withQuery({ with: isCompared() ? null : other()?.id }), { replace: true });
  const isOver = () => call()?.state === "finished";
  return h(
    "div.call-head",
    h(
      "span.call-state",
      stateIcon(() => state() ?? "queued", null),
      h("b", { "data-state": state }, () => word()[0].toUpperCase() + word().slice(1)),
    ),
    h("span.dim.call-message", message),
    h(
      "span.push.call-buttons",
      h(
        "button",
        {
          type: "button",
          shown: () => other() || isCompared(),
          "aria-pressed": () => String(isCompared()),
          onclick: compare,
        },
        icon("compare", "s"),
        () => (isCompared() ? "Compare no more" : `Compare with ${formatMinute(other()?.opened ?? 0)}`),
      ),
      opener("command", {}, icon("copy", "s"), "As command…"),
      opener("cancel", { shown: () => ["queued", "running"].includes(call()?.state ?? "") }, "Cancel with words…"),
      callActions(model),
      opener(
        "again",
        { class: "main", shown: isOver, "aria-keyshortcuts": "r" },
        icon("again", "s"),
        "Run again…",
        keyHint("r"),
      ),
    ),
  );
}

/** The part that a button of the head opens. @param {View} view @param {Signal<string>} panel */
function panelBelow(view, panel) {
  const close = () => panel.set("");
  /** @type {Record<string, () => Element>} */
  const parts = {
    again: () => rerunForm(view()),
    command: () => commandPanel(view()),
    cancel: () => cancelForm(view().id, close),
  };
  const open = () => [panel()].filter((name) => Object.hasOwn(parts, name));
  return h(
    "div.call-panel",
    { shown: panel },
    each(open, String, (name) => parts[name]()),
  );
}

/** The first question of a call that waits for a person, to answer here. @param {CallModel} model */
function openQuestion({ id }) {
  const found = () => [questionOfCall(id)].filter((one) => one !== undefined);
  return each(found, questionKey, (question) =>
    h("section.card.call-question", wholeQuestion(question, { isSelected: () => true })),
  );
}

/**
 * A part for a field that is not empty, made again only when its value changes.
 * @template {keyof CallView} K
 * @param {View} view
 * @param {K} name
 * @param {(one: any) => HTMLElement} make
 */
function part(view, name, make) {
  const found = () => [view()[name]].filter((one) => one && (!Array.isArray(one) || one.length));
  return each(found, JSON.stringify, make);
}

/** @param {CallModel} model */
function timeline({ id, rows, story }) {
  const words = computed(() => {
    const below = rows().length - 1;
    const more = story()?.left_out ?? 0;
    return below > 0
      ? joinNonEmpty(
          plural(below + more, "sub-call"),
          `${mostAtOnce(rows())} at once at most`,
          more && `${more} not shown`,
        )
      : "";
  });
  const limit = signal(FIRST_ROWS);
  const first = computed(() => rows().slice(0, limit()));
  const hidden = () => rows().length - first().length;
  const more = { type: "button", shown: () => hidden() > 0, onclick: () => limit.set(Infinity) };
  return h(
    "section.card.call-timeline",
    { shown: () => rows().length },
    h("header.card-head", h("h2", "Timeline"), h("span.faint", words)),
    waterfall(first, { rowHeight: ROW_PX, current: id, isZoomable: true, hasLegend: true }),
    h("button.quiet.more-rows", more, icon("down", "s"), () => `Show ${plural(hidden(), "more sub-call")}`),
  );
}

/** The run that the address names to compare with. @param {View} view @param {CallModel["rows"]} rows */
function comparison(view, rows) {
  const other = () => [route().query.with].filter(Boolean);
  const close = () => navigate(withQuery({ with: null }), { replace: true });
  return each(other, String, (id) => callComparison(view, rows, id, close));
}

/** @param {View} view */
function argumentsSection(view) {
  const copy = copyButton(() => JSON.stringify(view().arguments ?? {}, null, 2), { class: "quiet small" });
  return h(
    "section.call-arguments",
    h("h2", "Arguments", h("span.push", copy)),
    part(view, "arguments", callArguments),
  );
}

/** @param {string} id @param {() => void} close */
function cancelForm(id, close) {
  const words = h("input", { type: "text", name: "reason" });
  const stop = async () => {
    await post(`/api${callPath(id)}/cancel`, words.value ? { reason: words.value } : {});
    close();
  };
  const label = h("label", "Why (the tool and its caller are told) ", words);
  return submitForm("form.card.call-form", stop, label, h("button.danger", "Cancel the call"));
}

/** Whether a call is a read of a resource or a prompt: its arguments are texts, and it has no tool. @param {string} tool */
const isLookup = (tool) => /^(resource|prompt) /.test(tool);

/** A form with the arguments of a call, to run its tool again. @param {CallView} call */
function rerunForm({ id, tool, outcome, arguments: value }) {
  const { value: found, problem } = resource(() => (isLookup(tool) ? "" : `/api${toolPath(tool)}`));
  const texts = Object.fromEntries(Object.keys(value ?? {}).map((key) => [key, { type: "string" }]));
  const schema = () =>
    isLookup(tool) ? [{ type: "object", properties: texts }] : found() ? [found().inputSchema] : [];
  const hint = "A new call, linked to this one, and approved anew.";
  const how = { to: `/api${callPath(id)}/rerun`, title: "Run it again", label: "Run it again", hint };
  const make = (/** @type {Schema} */ one) =>
    runForm(one, { key: `rerun:${id}`, value }, { ...how, warning: outcome === "uncertain" && UNCERTAIN_WARNING });
  return h("div", errorMessage(problem), each(schema, JSON.stringify, make));
}

/** @param {CallView} call */
function commandPanel({ tool, arguments: given }) {
  const { line, variables } = shellCommand(tool, given ?? {});
  const names = variables.join(", ");
  const hint = names && h("p", "What is secret is not shown. Set it first, in ", h("code", names), ".");
  return h(
    "div.card.call-command",
    hint,
    h("pre.command", { tabindex: "0" }, line),
    copyButton(line, { class: "small" }),
  );
}
