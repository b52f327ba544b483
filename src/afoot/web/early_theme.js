// Sets the chosen theme before the page is drawn for the first time. A module would run too late.
try {
  const chosen = localStorage.getItem("afoot.theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
} catch {
  // Without storage, the theme is that of the system.
}
