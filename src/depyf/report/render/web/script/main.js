// The frame of the page: the views' names, the theme, the keys, and the first view.

const KEYS = [
  ["1 … 9, 0", "go to a view"],
  ["↑ ↓ or j k, Page Up, Page Down, Home, End", "move in the pane of code that has the focus"],
  ["Enter", "choose the line: its parts light up everywhere"],
  ["n, p", "next, previous line with a break, a recompile or a fallback (Source)"],
  ["[ and ]", "previous, next stage (Source, Stages)"],
  ["d", "compare with the stage before, and back (Stages)"],
  ["Escape", "let go of the chosen line"],
  ["Ctrl-K, or /", "search everything; in Stages / filters the artifacts"],
  ["t", "light or dark"],
  ["?", "this list"],
];

function start() {
  const nav = document.getElementById("views");
  VIEWS.forEach((view, at) => {
    const key = at < 10 ? ` (${(at + 1) % 10})` : ""; // as in pressed()
    view.link = el("a", { href: `#${view.id}`, title: view.title + key }, view.title);
    nav.append(el("li", {}, view.link));
  });
  if (RUNS.length > 1) {
    const options = RUNS.map((run) => el("option", { value: run.index }, runName(run)));
    const picker = el("select", { id: "rank", onchange: () => changeRank(picker.value) }, options);
    document.getElementById("tools").prepend(el("label", { for: "rank" }, "Run"), picker);
  }
  document.getElementById("skip").addEventListener("click", (event) => {
    event.preventDefault(); // addresses with a # are views
    document.getElementById("main").focus();
  });
  document.getElementById("theme").addEventListener("click", switchTheme);
  document.getElementById("help").addEventListener("click", showHelp);
  document.getElementById("find").addEventListener("click", openSearch);
  document.addEventListener("keydown", pressed);
  window.addEventListener("hashchange", () => current && location.hash === current.hash ? null : route());
  applyTheme(storedTheme());
  route();
  document.documentElement.dataset.ready = "true";
}

function changeRank(index) {
  const wanted = parseRoute(location.hash);
  location.hash = address(wanted.view, [], {}, RUNS[Number(index)]);
}

function pressed(event) {
  const typing = event.target.closest && event.target.closest("input, select, textarea, dialog");
  if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
    event.preventDefault();
    openSearch();
    return;
  }
  if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
  const view = VIEWS[event.key === "0" ? 9 : Number(event.key) - 1];
  const filter = document.getElementById("stage-filter");
  if (view) location.hash = view.link.getAttribute("href");
  else if (event.key === "?") showHelp();
  else if (event.key === "t") switchTheme();
  else if (event.key === "/" && current.id === "stages" && filter) filter.focus();
  else if (event.key === "/") openSearch();
  else if (!(current.keys && current.keys(event))) return;
  event.preventDefault();
}

function showHelp() {
  const dialog = document.getElementById("keys");
  const rows = KEYS.map(([keys, what]) => [el("dt", {}, keys), el("dd", {}, what)]);
  fill(dialog, el("h2", { id: "keys-title" }, "Keys"), el("dl", {}, rows), el("form", { method: "dialog" }, el("button", { type: "submit" }, "Close")));
  if (!dialog.open) dialog.showModal();
}

function storedTheme() {
  try {
    return localStorage.getItem("depyf-theme");
  } catch (error) {
    return null; // pages opened from disk may not store anything
  }
}

function applyTheme(theme) {
  if (theme) document.documentElement.dataset.theme = theme;
  const dark = isDark();
  const button = document.getElementById("theme");
  fill(button, dark ? "Light" : "Dark");
  button.title = `Switch to ${dark ? "light" : "dark"} (t)`;
}

function isDark() {
  const theme = document.documentElement.dataset.theme;
  return theme ? theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

function switchTheme() {
  const theme = isDark() ? "light" : "dark";
  try {
    localStorage.setItem("depyf-theme", theme);
  } catch (error) {
    // not stored: the next page starts with what the system prefers
  }
  applyTheme(theme);
}

start();
