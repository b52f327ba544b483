// themeButton: a press goes from the system's theme to light, dark, and back.

import { h } from "../../lib/dom.js";
import { chooseTheme, nextTheme, theme } from "./theme.js";
import { icon } from "../marks/icon.js";

export function themeButton() {
  const words = () => `Theme: ${theme() === "system" ? "as the system" : theme()}`;
  const onclick = () => chooseTheme(nextTheme(theme.peek()));
  const about = { type: "button", "aria-label": words, title: words, onclick };
  return h("button.quiet.square.theme", about, () => icon(theme()));
}
