// floatingPanel: content that opens beside a button, above everything else, until it is closed or its owner ends.

import { h } from "../lib/dom.js";
import { onCleanup, scope } from "../lib/signal.js";

const GAP = 4; // between the button and the panel
const MARGIN = 8; // between the panel and the edge of the window

/**
 * A function that opens the panel at an element; `make` is called each time. Escape or a press outside closes it, and
 * the focus goes back.
 * @param {string} label
 * @param {(close: () => void) => Element} make its first element with `autofocus` gets the focus
 * @returns {(anchor: HTMLElement) => void}
 */
export function floatingPanel(label, make) {
  let close = () => {};
  onCleanup(() => close());
  return (anchor) => {
    close();
    close = openPanel(anchor, label, make);
  };
}

/** @param {HTMLElement} anchor @param {string} label @param {(close: () => void) => Element} make */
function openPanel(anchor, label, make) {
  const [panel, end] = scope(() => {
    const panel = h("div.floating", { popover: "auto", role: "dialog", "aria-label": label });
    panel.append(make(() => panel.hidePopover()));
    return panel;
  });
  let isOver = false;
  const finish = () => {
    if (isOver) return;
    isOver = true;
    if (panel.matches(":popover-open")) panel.hidePopover();
    panel.remove();
    end();
  };
  panel.addEventListener("toggle", (event) => event.newState === "closed" && finish());
  // It is a child of the page: no list that is drawn anew removes it, and no row takes its clicks for its own.
  document.body.append(panel);
  panel.showPopover();
  placeBeside(panel, anchor);
  return finish;
}

/** Below the anchor if there is room, else above it; always inside the window. @param {HTMLElement} panel @param {HTMLElement} anchor */
function placeBeside(panel, anchor) {
  const from = anchor.getBoundingClientRect();
  const own = panel.getBoundingClientRect();
  const left = Math.min(from.left, innerWidth - own.width - MARGIN);
  const below = from.bottom + GAP;
  const top = below + own.height + MARGIN <= innerHeight ? below : Math.max(MARGIN, from.top - own.height - GAP);
  panel.style.setProperty("left", `${Math.max(MARGIN, left)}px`);
  panel.style.setProperty("top", `${Math.min(top, Math.max(MARGIN, innerHeight - own.height - MARGIN))}px`);
}
