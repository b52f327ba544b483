// theme: light, dark, or that of the system. It is kept in this browser, and set on <html> before the page is drawn
// (early_theme.js).

import { effect, signal } from "../../lib/signal.js";

/** @typedef {"system" | "light" | "dark"} Theme */

const KEY = "afoot.theme";
/** @type {Theme[]} */ const THEMES = ["system", "light", "dark"];

export const theme = signal(storedTheme());

/** Follow the choice here and in other tabs. @param {HTMLElement} root */
export function startTheme(root) {
  addEventListener("storage", ({ key }) => (key ?? KEY) === KEY && theme.set(storedTheme()));
  effect(() => {
    if (theme() === "system") delete root.dataset.theme;
    else root.dataset.theme = theme();
  });
}

/** The theme after this one. @param {Theme} now @returns {Theme} */
export const nextTheme = (now) => THEMES[(THEMES.indexOf(now) + 1) % THEMES.length];

/** @param {Theme} chosen */
export function chooseTheme(chosen) {
  theme.set(chosen);
  try {
    localStorage.setItem(KEY, chosen);
  } catch {
    // Without storage, the choice lives as long as the page.
  }
}

/** @returns {Theme} */
function storedTheme() {
  try {
    return THEMES.find((one) => one === localStorage.getItem(KEY)) ?? "system";
  } catch {
    return "system";
  }
}
