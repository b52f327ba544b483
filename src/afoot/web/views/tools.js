// The view of all tools, grouped by server: how their newest runs went, and which of them ask first.

import { emptyMessage, loadingRows, noMatch } from "../components/empty.js";
import { columnNames, groupedRows } from "../components/lists/groups.js";
import { searchField } from "../components/lists/search_field.js";
import { h } from "../lib/dom.js";
import { formatAgo, formatCount, formatSpan, safeText } from "../lib/format.js";
import { errorMessage, resource } from "../lib/resource.js";
import { route, toolPath, withQuery } from "../lib/router.js";
import { computed } from "../lib/signal.js";
import { now } from "../lib/time.js";

export const title = "Tools";
export const isWide = true;

const REFRESH_S = 10;
const HEAD = ["Tool", "Description", "", " Runs", " Failed", " p50", " p95", " Last run"];

/** @returns {HTMLElement} */
export function view() {
  const { value, problem } = resource(() => "/api/tools?recent=true", { everyS: REFRESH_S });
  const all = () => /** @type {ToolView[]} */ (value()?.tools ?? []);
  const wanted = () => (route().query.q ?? "").toLowerCase();
  const asksOnly = () => route().query.show === "asks";
  const fits = (/** @type {ToolView} */ { name, server, title, description, approval }) =>
    (!asksOnly() || approval === "ask") &&
    [name, server, title, description].some((text) => text?.toLowerCase().includes(wanted()));
  const groups = computed(() =>
    [...Map.groupBy(all().filter(fits), ({ server }) => server)].map(([server, items]) => ({
      key: server,
      title: safeText(server, 100),
      items,
    })),
  );
  const asking = () => all().filter(({ approval }) => approval === "ask").length;
  const bar = h(
    "div.toolbar",
    { role: "search" },
    searchField("Search tools"),
    h(
      "span.chips",
      h(
        "a.chip",
        { href: () => withQuery({ show: null }), "aria-current": () => !asksOnly() && "true" },
        "All ",
        h("b", () => formatCount(all().length)),
      ),
      h(
        "a.chip",
        { href: () => withQuery({ show: "asks" }), "aria-current": () => asksOnly() && "true" },
        "Asks first ",
        h("b", () => formatCount(asking())),
      ),
    ),
    h("a.button.quiet.push", { href: "/resources" }, "Resources"),
    h("a.button.quiet", { href: "/prompts" }, "Prompts"),
  );
  return h(
    "section",
    bar,
    errorMessage(problem),
    groupedRows(groups, ({ name }) => name, toolRow, {
      label: "Tools",
      head: columnNames("div.list-head.tool-columns", ...HEAD),
    }),
    loadingRows(() => value() || problem()),
    emptyMessage(value, groups, () => (all().length ? noMatch(wanted() || "the filter", "/tools") : noTools())),
  );
}

const noTools = () => ["No tool is on offer. Serve some: ", h("code", "afoot serve tools.py")];

/** @param {ToolView} tool @param {() => ToolView} newest */
function toolRow({ name, own, server }, newest) {
  const recent = () => newest().recent ?? { runs: 0, failures: 0, p50_s: null, p95_s: null, last: null };
  const what = () => safeText((newest().description || newest().title || "").split("\n")[0], 300);
  const span = (/** @type {number | null} */ seconds) => (seconds === null ? "" : formatSpan(seconds));
  const calls = { href: `/history?${new URLSearchParams({ tool: name, server, range: "7d", show: "failed" })}` };
  const failures = () => {
    const { failures: count } = recent();
    return count ? h("a.t-bad.above", calls, formatCount(count)) : "";
  };
  return h(
    "li.list-row.tool-columns",
    h(
      "span.name",
      h("a.row-link", { href: toolPath(name) }, safeText(name, 200)),
      own !== name && h("span.row-server", safeText(own, 100)),
    ),
    h("span.about.cut", what),
    h("span.asks", () => (newest().approval === "ask" ? h("span.tag", "asks first") : null)),
    h("span.num", () => (recent().runs ? formatCount(recent().runs) : "")),
    h("span.num", failures),
    h("span.num", () => span(recent().p50_s)),
    h("span.num", () => span(recent().p95_s)),
    h("span.num.faint", () => {
      const { last } = recent();
      return last === null ? "" : formatAgo(now() - last);
    }),
  );
}
