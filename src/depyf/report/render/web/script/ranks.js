// Ranks: where the runs of several processes differ; of two runs that were compared, what changed, which is looked at first.

const RANKS = { id: "ranks", title: DATA.comparison ? "What changed" : "Ranks", show: DATA.comparison ? showChanges : showRanks };
if (DATA.comparison) VIEWS.unshift(RANKS);
else if (RUNS.length > 1) VIEWS.push(RANKS);

function runName(run) {
  return DATA.names[run.index];
}

function showRanks(wanted, node) {
  if (node.childNodes.length) return;
  node.classList.add("page", "wide");
  fill(
    node,
    el("h1", {}, "Where the ranks differ"),
    el("p", { class: "quiet" }, RUNS.map((run) => `${runName(run)}: ${count(run.compilations.length, "compilation")}`).join("  ·  ")),
    DATA.differences.length ? DATA.differences.map(difference) : el("p", {}, "They compiled the same, in the same order.")
  );
}

const KINDS_OF_CHANGE = [
  ["function", "Functions of one run only"], ["break", "Graph breaks"], ["recompile", "Recompilations"], ["fallback", "Fallbacks to eager"],
  ["failure", "Results of compilations"], ["graph", "Graphs"], ["kernel", "Kernels"],
];

function showChanges(wanted, node) {
  if (node.childNodes.length) return;
  node.classList.add("page", "wide");
  const { numbers, functions, notes } = DATA.comparison;
  const kinds = KINDS_OF_CHANGE.map(([kind, title]) => [title, DATA.differences.filter((each) => each.kind === kind)]).filter(([, list]) => list.length);
  const headline = DATA.differences.length ? numbersInWords(numbers) || "other code, with the same counts" : "The same was compiled";
  fill(
    node,
    el("h1", { class: "headline" }, headline.charAt(0).toUpperCase() + headline.slice(1)),
    el("p", { class: "quiet" }, `What changed from ${DATA.names[0]} to ${DATA.names[1]}`),
    changeTable(numbers),
    numbers.some(([, , , unit]) => unit) ? el("p", { class: "quiet" }, aboutTimes(numbers)) : null,
    functions.length ? [el("h2", {}, "Functions"), changedAndSame(functions)] : null,
    kinds.map(([title, list]) => [el("h2", {}, `${title} `, el("span", { class: "quiet" }, digits(list.length))), list.map(difference)]),
    notes.length ? [el("h2", {}, "Notes"), el("ul", { class: "notes" }, notes.map((note) => el("li", {}, note)))] : null
  );
}

// What got worse and better of the whole, not of its parts.
function numbersInWords(numbers) {
  const whole = numbers.filter(([name, , , , bad]) => bad && !name.startsWith("  "));
  const names = (list) => list.map(([name]) => name);
  const worse = names(whole.filter(([, before, after]) => after > before));
  const better = whole.filter(([, before, after]) => after < before);
  const fewer = names(better.filter(([, , , unit]) => !unit));
  const less = names(better.filter(([, , , unit]) => unit));
  return [["more", worse], ["fewer", fewer], ["less", less]].filter(([, list]) => list.length).map(([word, list]) => `${word} ${listed(list)}`).join("; ");
}

const listed = (names) => (names.length > 1 ? `${names.slice(0, -1).join(", ")} and ${names[names.length - 1]}` : names.join());

function aboutTimes(numbers) {
  if (!numbers.some(([, , , , , , , verdict]) => verdict)) return "Times are of one run each, and two runs of the same program differ, too: give more runs of both (depyf diff --before DIR ... --after DIR ...) before you rely on a difference.";
  return "Times are medians of the runs, with the fastest and the slowest in brackets. Better and worse are said where such a difference comes by chance at most once in 20 comparisons.";
}

// How a number changed; worse and better are said in words, too.
function deltaOf(before, after, unit, bad, verdict) {
  if (verdict && !bad) return el("span", { class: "quiet" }, verdict);
  const delta = after - before;
  const still = unit && !verdict ? Math.abs(delta) < 0.005 : delta === 0; // several runs tell smaller ones apart
  if (still) return el("span", { class: "quiet" }, "same");
  const share = unit && before > 0 ? `, ${delta > 0 ? "+" : "−"}${Math.abs((100 * delta) / before).toFixed(0)} %` : "";
  const text = `${delta > 0 ? "+" : "−"}${unit ? seconds(Math.abs(delta)) : digits(Math.abs(delta))}${share}`;
  return el("span", { class: bad ? (delta > 0 ? "worse" : "better") : null }, text, bad ? (delta > 0 ? " worse" : " better") : "");
}

// A median, with the fastest and the slowest run below it.
const withSpread = (shown, spread) => (spread ? [shown, el("div", { class: "quiet spread" }, `(${seconds(spread[0])} to ${seconds(spread[1])})`)] : shown);

function changeTable(numbers) {
  const shown = (value, unit) => (unit ? seconds(value) : digits(value));
  const rows = numbers.map(([name, before, after, unit, bad, spreadBefore, spreadAfter, verdict]) => [
    name.startsWith("  ") ? el("span", { class: "part" }, name.trim()) : el("b", {}, name),
    withSpread(shown(before, unit), spreadBefore), withSpread(shown(after, unit), spreadAfter), deltaOf(before, after, unit, bad, verdict),
  ]);
  return tableOf("Numbers of both runs", ["", numeric("Before"), numeric("After"), numeric("Change")], rows, { narrow: true });
}

// Functions of which only times differ are folded.
function changedAndSame(functions) {
  const counted = (one) => one && JSON.stringify({ ...one, compile_seconds: 0, backward_compile_seconds: 0 });
  const same = functions.filter(([, before, after]) => counted(before) === counted(after));
  const changed = functions.filter((each) => !same.includes(each));
  return [
    changed.length ? functionChanges(changed) : null,
    same.length ? el("details", {}, el("summary", {}, `${count(same.length, "function")} with the same numbers`), functionChanges(same)) : null,
  ];
}

// A row for each function: what is the same stands there once.
function functionChanges(functions) {
  const columns = [["Graphs", "graphs"], ["Breaks", "graph_breaks"], ["Recompilations", "recompilations"], ["Fallbacks", "fallbacks"], ["Kernels", "kernels"], ["Guards", "guards"]];
  const cell = (before, after, name) => {
    if (before[name] === after[name]) return digits(after[name] || "");
    const bad = name !== "kernels" && name !== "guards";
    return el("span", { class: bad ? (after[name] > before[name] ? "worse" : "better") : null }, `${digits(before[name])} → ${digits(after[name])}`);
  };
  const time = (one) => seconds(timeOf(one));
  const rows = functions.map(([name, before, after]) => [
    shortened(name, 80),
    ...(before && after
      ? [...columns.map(([, key]) => cell(before, after, key)), `${time(before)} → ${time(after)}`]
      : [...columns.map(([, key]) => digits((before || after)[key] || "")), before ? "no longer compiled" : "compiled now"]),
  ]);
  return filledTableOf("Functions in both runs", ["Function", ...columns.map(([title]) => numeric(title)), numeric("Time")], rows);
}

function difference(each) {
  const names = Object.keys(each.ranks || {});
  const where = each.place && RUNS[0].sources[each.place[0]] ? place(RUNS[0], each.place) : null;
  const called = (name) => (each.kind === "graph" ? stageName({ kind: "graph", stage: name, backward: null, piece: "" }) : name);
  const side = (name) => el("div", {}, el("h3", {}, called(name)), each.unified || /^@{2} /.test(each.ranks[name]) ? unifiedDiff(each.ranks[name]) : el("pre", { tabindex: "0" }, shortNames(each.ranks[name])));
  const head = names.slice(0, each.unified ? 1 : names.length);
  const more = names.slice(head.length);
  const box = more.length > 0 && el("details", { class: "guards", ontoggle: () => box.open && box.childNodes.length === 1 && add(box, [el("div", { class: "sides" }, more.map(side))]) },
    el("summary", {}, `${each.kind === "graph" ? count(more.length, "other stage") : `${more.length} more`}: ${shortened(more.map(called).join(", "), 160)}`));
  return el(
    "section",
    { class: "difference" },
    el("h3", {}, where ? each.title.replace(` (${RUNS[0].placeText(each.place)})`, "") : each.title, " ", where), // the link names the line
    each.text ? el("p", { class: "told" }, each.text) : null,
    el("div", { class: each.unified ? "sides one" : "sides" }, head.map(side)),
    box
  );
}

// The text of a graph with short names of parameters in sight.
const shortNames = (text) => withShortNames([text], new Map());

function unifiedDiff(text) {
  const kinds = { "+": "diff-add", "-": "diff-drop", "@": "diff-skip" };
  const lines = text.split("\n");
  const begin = /^--- /.test(lines[0]) && /^\+\+\+ /.test(lines[1] || "") ? 2 : 0; // the names of both sides
  return el("pre", { tabindex: "0" }, lines.slice(begin).map((line) => el("span", { class: `row ${kinds[line[0]] || ""}` }, line ? shortNames(line) : " ")));
}

function showRank(run) {
  const picker = document.getElementById("rank");
  if (!picker) return;
  picker.value = String(run.index);
  for (const view of VIEWS) view.link.href = `#${view.id}${rankQuery(run)}`;
}
