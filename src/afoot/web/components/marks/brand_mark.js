// brandMark: the mark of afoot, the same in the console, in the side panel and as icon of a page.

import { svg } from "../../lib/dom.js";

export const brandMark = () =>
  svg(
    "svg",
    { class: "brand-mark", viewBox: "0 0 20 20", "aria-hidden": "true" },
    svg("path", { d: "M10 1.9a6.4 6.4 0 1 1-6.1 4.5", "stroke-width": 2.5 }),
    svg("path", { d: "M3.4 18.2h13.2", "stroke-width": 2.3 }),
  );
