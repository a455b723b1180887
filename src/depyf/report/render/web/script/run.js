// Run: measured time on lines, modules and kernels, beside eager mode. Only there when something was profiled.

VIEWS.push({ id: "run", title: "Run", show: showTimings });

const LINES_AROUND = 2; // lines that are shown above and below a line with a time
const MOST_FILES = 6; // that are open at first

function showTimings({ run, parts }, node) {
  node.classList.add("page", "wide");
  const at = Math.min(Number(parts[0]) || 0, run.timings.length - 1);
  const timing = run.timings[at];
  if (!timing) {
    fill(node, el("h1", {}, "Run"), el("p", { class: "quiet" }, "Nothing was profiled in this run: depyf.profile and depyf run --profile measure time."));
    return;
  }
  const options = run.timings.map((each, number) => el("option", { value: address("run", [String(number)], {}, run), selected: number === at }, shortened(each.function, 60)));
  fill(
    node,
    options.length > 1 ? el("div", { class: "bar" }, el("label", { for: "run-pick" }, "Measured"), el("select", { id: "run-pick", onchange: (event) => (location.hash = event.target.value) }, options)) : null,
    el("h1", {}, `Run of ${shortened(timing.function, 80)}`),
    timing.worth.map((sentence) => el("p", {}, sentence)),
    el("p", { class: "quiet" }, `${count(timing.steps, "call")} under the profiler: ${seconds(timing.seconds)} of kernels and operations a call (${timing.device}), ${percent(timing.attributed)} of it on known lines. Times are of one call.`),
    timing.notes.length ? el("ul", { class: "notes" }, timing.notes.map((note) => el("li", {}, note))) : null,
    partsOfCall(timing),
    el("h2", {}, "Lines"),
    timedFiles(run, timing),
    timing.modules.length ? [el("h2", {}, "Modules"), timedModules(timing)] : null,
    el("h2", {}, "Kernels, library calls and operations"),
    timing.limits ? el("p", { class: "quiet" }, `In parentheses: the share of what this machine reached when it copied 64 MiB (${(timing.limits[0] / 1e9).toPrecision(3)} GB/s) and multiplied float32 matrices (${(timing.limits[1] / 1e9).toPrecision(3)} G operations/s). Data in a cache is faster than that copy.`) : null,
    timedKernels(run, timing),
    timing.gaps.length ? [el("h2", {}, "Gaps"), el("p", { class: "quiet" }, `${timing.device === "cpu" ? "No kernel and no operation ran" : "No kernel ran on the GPU"} in these stretches of a call: what the calling thread did meanwhile. One call as a timeline is in the file for Perfetto.`), gapsTable(run, timing)] : null,
    timing.timeline.length ? el("div", { class: "bar" }, el("button", { type: "button", onclick: () => saveTrace() }, "Save for Perfetto")) : null,
    timing.not_fused.length ? [el("h2", {}, "Not fused"), el("p", { class: "quiet" }, "Parts of kernels that share data, and the reasons of Inductor's scheduler. One kernel of C++ may hold several parts, each with loops of its own."), pairsTable(run, timing)] : null,
    timing.outside.length ? [el("h2", {}, "In no compiled graph"), outsideTable(run, timing)] : null
  );
}

const percent = (share) => `${(100 * share).toPrecision(share < 0.1 ? 2 : 3)} %`;
const took = (each) => each.forward + each.backward;

// One call of the calling thread as a bar, with a legend.
function partsOfCall(timing) {
  const found = Object.entries(timing.parts).filter(([, value]) => value > 0);
  const whole = found.reduce((sum, [, value]) => sum + value, 0);
  if (!whole) return null;
  return el("section", { class: "went", "aria-label": "What a call goes into" },
    el("div", { class: "shares", "aria-hidden": "true" }, found.map(([, value], at) => el("i", { class: `graph-${at}`, style: { "flex-grow": String((100 * value) / whole) } }))),
    el("ul", { class: "legend" }, found.map(([words, value], at) => el("li", { class: `graph-${at}` }, el("b", {}, seconds(value)), ` ${words}`))));
}

// The files by their time, each with the lines that have one and a few around them.
function timedFiles(run, timing) {
  const files = [...grouped(timing.lines, (each) => each.place[0])].map(([index, lines]) => ({ index, lines, sum: lines.reduce((sum, each) => sum + took(each), 0) }));
  files.sort((one, other) => other.sum - one.sum);
  const longest = timing.lines.reduce((found, each) => Math.max(found, took(each), each.eager || 0), 0) || 1;
  return files.map((file, at) => {
    const box = el("details", { class: "timed", ontoggle: () => build() },
      el("summary", {}, el("b", { title: run.sources[file.index].path }, fileName(run.sources[file.index].path)), " ", el("span", { class: "quiet" }, `${seconds(file.sum)}, ${percent(timing.seconds ? file.sum / timing.seconds : 0)}`)));
    const build = () => {
      if (!box.open || box.built) return;
      box.built = true;
      box.append(timedSource(run, file, timing, longest));
    };
    box.open = at < MOST_FILES;
    build();
    return box;
  });
}

function timedSource(run, file, timing, longest) {
  const known = new Map(file.lines.map((each) => [each.place[1], each]));
  const text = (run.sources[file.index].text || "").split("\n");
  const shown = new Set();
  for (const line of known.keys()) for (let near = line - LINES_AROUND; near <= line + LINES_AROUND; near += 1) if (near >= 1 && (near <= text.length || known.has(near))) shown.add(near);
  const eager = timing.lines.some((each) => each.eager !== null);
  const rows = [];
  let before = null;
  for (const number of [...shown].sort((one, other) => one - other)) {
    if (before !== null && number > before + 1) rows.push(el("tr", { class: "gap" }, el("td", { colspan: eager ? "4" : "3" }, "…")));
    rows.push(timedRow(run, [file.index, number], known.get(number), text[number - 1] || "", { eager, longest }));
    before = number;
  }
  const heads = ["Compiled", ...(eager ? ["Eager"] : []), "Line", "Source"];
  const head = (text) => el("th", { scope: "col", class: text === "Source" ? null : "number" }, text);
  const label = `Time of lines of ${fileName(run.sources[file.index].path)}`;
  return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label },
    el("table", { class: "timed-lines" }, el("caption", {}, label), el("thead", {}, el("tr", {}, heads.map(head))), el("tbody", {}, rows)));
}

function timedRow(run, spot, each, code, { eager, longest }) {
  const parts = each ? [each.forward && `forward ${seconds(each.forward)}`, each.backward && `backward ${seconds(each.backward)}`, each.shared && `${seconds(each.shared)} of it from kernels that other lines share`].filter(Boolean).join(", ") : null;
  const bar = (...parts) => el("span", { class: "spent", "aria-hidden": "true" }, parts.map(([value, kind]) => el("i", { class: kind, style: { width: `${(100 * value) / longest}%` } })));
  const lost = each && each.eager !== null && took(each) > each.eager;
  return el("tr", { class: each ? null : "quiet" },
    el("td", { class: "number", title: parts }, each ? [el("span", { class: lost ? "differs" : null }, seconds(took(each))), bar([each.backward, "backward"], [each.forward, "forward"])] : null),
    eager ? el("td", { class: "number" }, each && each.eager !== null ? [seconds(each.eager), bar([each.eager, "in-eager"])] : null) : null,
    el("td", { class: "number" }, el("a", { href: address("source", [`f${spot[0]}`, String(spot[1])], {}, run) }, String(spot[1]))),
    el("td", {}, el("code", {}, code)));
}

function timedModules(timing) {
  const rows = timing.modules;
  const eager = rows.some((each) => each.eager !== null);
  return tableOf("Time of modules, without the modules inside of them",
    ["Module", "Class", numeric("Forward", (at) => rows[at].forward), numeric("Backward", (at) => rows[at].backward), numeric("In all", (at) => took(rows[at])), ...(eager ? [numeric("Eager", (at) => rows[at].eager)] : [])],
    rows.map((each) => [el("code", {}, shortened(each.name, 80) || "(the module itself)"), shortened(each.type, 60), seconds(each.forward), each.backward ? seconds(each.backward) : "", seconds(took(each)), ...(eager ? [seconds(each.eager)] : [])]),
    { most: 40 });
}

function timedKernels(run, timing) {
  const rows = timing.kernels;
  const [bytes, operations] = timing.limits || [0, 0];
  const ofLimit = (speed, limit) => (limit && speed / limit >= 0.01 ? ` (${Math.round((100 * speed) / limit)} %)` : "");
  const rate = (amount, each, limit) => (amount / each.seconds > 1e7 ? `${(amount / each.seconds / 1e9).toPrecision(3)} G/s${ofLimit(amount / each.seconds, limit)}` : "");
  return tableOf("Kernels, library calls and operations by time",
    ["Name", "Graph", numeric("Time", (at) => rows[at].seconds), numeric("Share", (at) => rows[at].seconds), numeric("Calls", (at) => rows[at].calls), numeric("Bytes", (at) => rows[at].bytes / rows[at].seconds || null), numeric("Operations", (at) => rows[at].operations / rows[at].seconds || null), "Lines"],
    rows.map((each) => [
      el("code", { title: each.name }, shortened(each.name, 50)),
      each.graph ? `${each.graph}${each.backward ? ", backward" : ""}` : "none",
      seconds(each.seconds), percent(timing.seconds ? each.seconds / timing.seconds : 0), digits(Math.round(each.calls * 10) / 10), rate(each.bytes, each, bytes), rate(each.operations, each, operations),
      each.places.slice(0, 4).map((spot) => [place(run, spot), " "]),
    ]),
    { most: 40 });
}

function gapsTable(run, timing) {
  const rows = timing.gaps.map((each) => ({ ...each, python: Math.max(0, each.seconds - each.guards - each.calling - each.launching) }));
  const parts = [["Guards", "guards"], ["Calling graphs", "calling"], ["Launching", "launching"], ["Other Python", "python"]].filter(([, key]) => rows.some((each) => each[key] > 0));
  const end = (spot) => (spot ? place(run, spot) : "none"); // at an end of the call, or the line is not known
  return tableOf("Stretches of a call in which nothing computed",
    ["After", "Before", numeric("Time", (at) => rows[at].seconds), numeric("Times", (at) => rows[at].times), ...parts.map(([words, key]) => numeric(words, (at) => rows[at][key]))],
    rows.map((each) => [end(each.after), end(each.before), seconds(each.seconds), digits(Math.round(each.times * 10) / 10), ...parts.map(([, key]) => (each[key] > 1e-9 ? seconds(each[key]) : ""))]),
    { most: 20 });
}

function pairsTable(run, timing) {
  const part = (name, places) => [el("code", { title: name }, shortened(name, 50)), " ", places.slice(0, 2).map((spot) => [place(run, spot), " "])];
  return tableOf("Parts of kernels that Inductor has not fused", ["First", "Second", "Why"],
    timing.not_fused.map((each) => [part(each.first, each.first_places), part(each.second, each.second_places), [prose(each.reason), each.advice ? [". ", prose(each.advice)] : null]]), { most: 20 });
}

function outsideTable(run, timing) {
  const rows = timing.outside;
  return tableOf("Operations in no compiled graph", [numeric("Time", (at) => rows[at].seconds), "Line", "Why"],
    rows.map((each) => [seconds(each.seconds), each.place ? place(run, each.place) : "not known", prose(each.reason)]), { most: 40 });
}
