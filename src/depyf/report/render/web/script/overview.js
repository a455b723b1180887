// Overview: what was compiled, what it cost, and what is worth acting on.

VIEWS.push({ id: "overview", title: "Overview", show: showOverview });

function showOverview({ run }, node) {
  if (node.run === run) return;
  node.run = run;
  node.classList.add("page");
  fill(
    node,
    el("h1", { class: "headline" }, run.headline || "A run of torch.compile"),
    run.command.length ? el("p", { class: "mono" }, shortened(run.command.join(" "), 120)) : null,
    el("p", { class: "quiet" }, aboutRun(run)),
    aboutSettings(run),
    run.failures.length ? failures(run) : null,
    RUNS.length > 1 && !DATA.comparison ? aboutRanks() : null,
    tiles(run),
    timeBar(run),
    el("div", { class: "beside" },
      el("section", { "aria-label": "Worth acting on" }, el("h2", {}, "Worth acting on"), findings(run)),
      el("section", { "aria-label": "Functions" }, run.roots.length ? [el("h2", {}, "Functions"), functionTable(run)] : null,
        run.notes.length ? [el("h2", {}, "Notes"), el("ul", { class: "notes" }, run.notes.map((note) => el("li", {}, note)))] : null))
  );
}

const MOST_DIFFERENCES = 4;

// Of a distributed program: whether this rank is like the others.
function aboutRanks() {
  const titles = [...new Set(DATA.differences.map((each) => each.title))];
  const link = el("a", { href: "#ranks" }, titles.length ? "Where the ranks differ" : "The ranks");
  if (!titles.length) return el("p", { class: "card" }, link, `: ${RUNS.length} ranks compiled the same, in the same order.`);
  const more = titles.length - MOST_DIFFERENCES;
  return el("div", { class: "card break" }, el("strong", {}, link, ":"), el("ul", {}, titles.slice(0, MOST_DIFFERENCES).map((title) => el("li", {}, title)), more > 0 ? el("li", {}, `and ${more} more`) : null));
}

const MOST_SHARES = 5;

// The compile time by kind of phase, as one bar; the last part is the rest.
function timeBar(run) {
  const total = Math.max(timeOf(run.totals), run.timeParts.length ? run.timeParts[0][1] : 0);
  if (!(total > 0) || !run.timeParts.length) return null;
  const large = run.timeParts.filter(([, part], at) => at < MOST_SHARES && part >= total / 100);
  const rest = total - large.reduce((sum, [, part]) => sum + part, 0);
  const parts = [...large, ...(rest >= total / 100 ? [["the rest", rest]] : [])];
  return el("section", { class: "went", "aria-label": "What the compile time went into" },
    el("div", { class: "shares", "aria-hidden": "true" }, parts.map(([, part], at) => el("i", { class: `graph-${at}`, style: { "flex-grow": String(part) } }))),
    el("ul", { class: "legend" }, parts.map(([words, part], at) => el("li", { class: `graph-${at}` }, el("b", {}, shareOf(run, part) || seconds(part)), ` ${shortened(words, 60)}`))));
}

function failures(run) {
  return el(
    "div",
    { class: "card break failures", role: "alert" },
    el("strong", {}, "This dump is incomplete: depyf failed to make some parts."),
    el("ul", {}, run.failures.map((each) => el("li", {}, each)))
  );
}

function aboutRun(run) {
  const parts = [run.torch && `PyTorch ${run.torch}`, run.python && `Python ${run.python}`, run.depyf && `depyf ${run.depyf}`];
  if (run.rank !== "") parts.push(`rank ${run.rank}`);
  if (run.started) parts.push(new Date(run.started * 1000).toISOString().replace("T", " ").slice(0, 19) + " UTC");
  return parts.filter(Boolean).join("  ·  ");
}

// The settings that are not PyTorch's defaults, if all compilations had the same; others are with each compilation.
function aboutSettings(run) {
  const [settings, ...others] = run.settings || []; // a run without any has no such field
  if (others.length || !settings || !settings.length) return null;
  return el("p", { class: "quiet" }, "Settings that are not PyTorch's defaults: ", el("code", {}, settings.join(", ")));
}

const NOT_TRACED = "Not known: this was made from the files alone, without a manifest.";

function tiles(run) {
  const counts = run.totals;
  const tile = (value, name, href, bad) =>
    el("li", {}, el("a", { href: href + rankQuery(run), class: bad ? "tile bad" : "tile" }, el("strong", {}, value), el("span", {}, name)));
  const first = (kind) => {
    const artifact = run.ids.flatMap((id) => run.byCompilation.get(id) || []).find((each) => each.kind === kind);
    return artifact ? address("stages", [artifact.id]) : "#stages";
  };
  const traced = (number) => (run.traced ? digits(number) : "–");
  // What did not happen is in the headline and under "Worth acting on": a row of zeros hides what did.
  const unless0 = (value, ...rest) => (value === "0" ? null : tile(value, ...rest));
  return el(
    "ul",
    { class: "tiles" },
    tile(digits(counts.functions), counts.functions === 1 ? "function compiled" : "functions compiled", "#source"),
    tile(digits(counts.graphs), counts.graphs === 1 ? "graph" : "graphs", first("graph")),
    unless0(traced(counts.graph_breaks), counts.graph_breaks === 1 ? "graph break" : "graph breaks", "#breaks", counts.graph_breaks),
    unless0(traced(counts.recompilations), counts.recompilations === 1 ? "recompilation" : "recompilations", "#recompiles", counts.recompilations),
    unless0(traced(counts.fallbacks), counts.fallbacks === 1 ? "fallback to eager" : "fallbacks to eager", "#recompiles/left", counts.fallbacks),
    unless0(digits(counts.kernels), `${counts.kernels === 1 ? "kernel" : "kernels"}${counts.library_kernels ? `, ${count(counts.library_kernels, "library call")}` : ""}`, first("kernels")),
    unless0(traced(counts.guards), counts.guards === 1 ? "guard" : "guards", "#guards"),
    tile(run.traced && (timeOf(counts) || !counts.compilations) ? seconds(timeOf(counts)) : "–", "to compile", "#time") // of one that has not ended it is not known
  );
}

function findings(run) {
  if (!run.findings.length) return el("p", { class: "quiet" }, !run.traced ? NOT_TRACED : run.totals.graphs ? "Nothing stands out: no graph broke, and nothing was compiled twice." : "Nothing stands out.");
  return [run.findings.length > 1 ? el("p", { class: "quiet" }, run.orderOfFindings) : null, el(
    "ol",
    { class: "findings" },
    run.findings.map((each) =>
      el(
        "li",
        {},
        each.seconds ? el("span", { class: "cost", title: "compile time" }, seconds(each.seconds)) : null,
        el("strong", {}, prose(each.title)), " ",
        each.place ? place(run, each.place) : null, " ",
        each.compile_id ? compilationLink(run, each.compile_id) : null,
        each.text ? inLines(each.text) : null
      )
    )
  )];
}

// Where a finding is, beside its line, or what else it touches: neither its cause nor a remedy.
const ASIDE = /^(?:Also at |This breaks graphs of |(?:It|The guard) is in .*, which is reached from this line)/;

// A text of cause and remedies: of several sentences the first is the cause; the first remedy is a line, the rest is folded.
function inLines(text) {
  const sentences = split(text, /^\.(?= [A-Z])/).map((each, at, all) => (at < all.length - 1 ? `${each}.` : each));
  const told = sentences.filter((each) => !ASIDE.test(each));
  const cause = told.length > 1 ? told.shift() : null;
  const [first, ...others] = split(told.shift() || "", /^;(?= )/);
  const rest = [others.join("; "), ...told, ...sentences.filter((each) => ASIDE.test(each))].filter(Boolean);
  const capital = (each) => (/^[a-z]+ /.test(each) ? `${each[0].toUpperCase()}${each.slice(1)}` : each);
  return [
    cause === null ? null : el("p", { class: "cause" }, prose(cause)),
    first ? el("p", { class: "remedy" }, prose(others.length ? `${first.replace(/[.,]$/, "")}.` : first)) : null,
    rest.length ? el("details", {}, el("summary", {}, "more"), rest.map((each) => el("p", {}, prose(capital(each))))) : null,
  ];
}

// Splits a text at a separator that is in no quotes and no brackets: values of the program stay whole.
function split(text, separator) {
  const parts = [""];
  let depth = 0;
  let quote = "";
  for (let at = 0; at < text.length; at += 1) {
    const one = text[at];
    if (quote) quote = one === quote ? "" : quote;
    else if (one === "`" || one === '"' || (one === "'" && !/\w/.test(text[at - 1] || ""))) quote = one; // not Python's
    else if ("([{".includes(one)) depth += 1;
    else if (")]}".includes(one)) depth = Math.max(0, depth - 1);
    if (!quote && !depth && separator.test(text.slice(at, at + 3))) {
      parts.push("");
      at += 1; // the blank after it
    } else parts[parts.length - 1] += one;
  }
  return parts;
}

const timeOf = (counts) => counts.compile_seconds + counts.backward_compile_seconds;

function functionTable(run) {
  const roots = run.roots;
  const of = (text, key) => numeric(text, (at) => run.counts[roots[at]][key]);
  const rows = roots.map((index) => {
    const one = run.functions[index];
    const ids = new Set(run.idsOf(index));
    const counts = run.counts[index];
    const entries = run.compilations.filter((each) => ids.has(each.compile_id));
    const where = [one.source, one.first_line];
    const name = shortened(one.name, 60);
    const guarded = entries.find((each) => each.guards.length);
    const verdicts = [...new Set(entries.map((each) => each.verdict).filter(Boolean))];
    return [
      el("a", { href: run.hrefOf(where), title: one.qualified_name }, shortened(one.qualified_name || one.name, 60)),
      el("span", { class: "quiet", title: run.sources[one.source]?.path }, shortened(run.placeText(where), 40)),
      counts.compilations,
      counts.graphs || "",
      counts.graph_breaks ? el("a", { href: address("breaks", [], {}, run), "aria-label": `Graph breaks of ${name}` }, counts.graph_breaks) : "",
      counts.recompilations ? el("a", { href: address("recompiles", [`f${index}`], {}, run), "aria-label": `Recompilations of ${name}` }, counts.recompilations) : "",
      counts.fallbacks ? "yes" : "",
      counts.kernels ? digits(counts.kernels) : "",
      guarded ? el("a", { href: address("guards", [guarded.compile_id], {}, run), "aria-label": `Guards of ${name}` }, digits(counts.guards)) : "",
      run.traced && timeOf(counts) ? seconds(timeOf(counts)) : "",
      verdicts.join(", "),
      el("a", { href: address("flow", [`f${index}`], {}, run), "aria-label": `Flow of ${name}` }, "flow"),
    ];
  });
  return filledTableOf(
    "Functions that Dynamo compiled, with their resume functions",
    ["Function", "Where", of("Compilations", "compilations"), of("Graphs", "graphs"), of("Breaks", "graph_breaks"), of("Recompilations", "recompilations"), "Fallback",
      of("Kernels", "kernels"), of("Guards", "guards"), numeric("Time", (at) => timeOf(run.counts[roots[at]])), "Decompiled", "Drawing"],
    rows
  );
}
