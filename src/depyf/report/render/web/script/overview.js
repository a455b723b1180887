// Overview: what was compiled, what it cost, and what is worth acting on, most expensive first.

VIEWS.push({ id: "overview", title: "Overview", show: showOverview });

function showOverview({ run }, node) {
  if (node.run === run) return;
  node.run = run;
  node.classList.add("page");
  fill(
    node,
    el("h1", {}, run.command.length ? shortened(run.command.join(" "), 120) : "A run of torch.compile"),
    el("p", { class: "headline" }, el("strong", {}, run.headline)),
    el("p", { class: "quiet" }, aboutRun(run)),
    run.failures.length ? failures(run) : null,
    tiles(run),
    el("h2", {}, "Worth acting on"),
    findings(run),
    el("h2", {}, "Functions"),
    functionTable(run),
    run.notes.length ? [el("h2", {}, "Notes"), el("ul", { class: "notes" }, run.notes.map((note) => el("li", {}, note)))] : null
  );
}

function failures(run) {
  return el(
    "div",
    { class: "card break failures", role: "alert" },
    el("strong", {}, "This dump is incomplete: depyf failed to make a part of it."),
    el("ul", {}, run.failures.map((each) => el("li", {}, each)))
  );
}

function aboutRun(run) {
  const parts = [run.torch && `PyTorch ${run.torch}`, run.python && `Python ${run.python}`, run.depyf && `depyf ${run.depyf}`];
  if (run.rank !== "") parts.push(`rank ${run.rank}`);
  if (run.started) parts.push(new Date(run.started * 1000).toISOString().replace("T", " ").slice(0, 19) + " UTC");
  return parts.filter(Boolean).join("  ·  ");
}

function tiles(run) {
  const counts = run.totals;
  const total = counts.compile_seconds + counts.backward_compile_seconds;
  const tile = (value, name, href, bad) =>
    el("li", {}, el("a", { href: href + rankQuery(run), class: bad ? "tile bad" : "tile" }, el("strong", {}, value), el("span", {}, name)));
  const n = (number) => number.toLocaleString("en");
  return el(
    "ul",
    { class: "tiles" },
    tile(n(counts.functions), counts.functions === 1 ? "function compiled" : "functions compiled", "#source"),
    tile(n(counts.graphs), counts.graphs === 1 ? "graph" : "graphs", "#stages"),
    tile(n(counts.graph_breaks), counts.graph_breaks === 1 ? "graph break" : "graph breaks", "#breaks", counts.graph_breaks),
    tile(n(counts.recompilations), counts.recompilations === 1 ? "recompilation" : "recompilations", "#recompiles", counts.recompilations),
    tile(n(counts.fallbacks), counts.fallbacks === 1 ? "fallback to eager" : "fallbacks to eager", "#recompiles", counts.fallbacks),
    tile(n(counts.kernels), counts.kernels === 1 ? "kernel" : "kernels", "#stages"),
    tile(n(counts.guards), counts.guards === 1 ? "guard" : "guards", "#guards"),
    tile(seconds(total) || "–", "to compile", "#time")
  );
}

function findings(run) {
  if (!run.findings.length) return el("p", { class: "quiet" }, "Nothing stands out.");
  return el(
    "ol",
    { class: "findings" },
    run.findings.map((each) =>
      el(
        "li",
        {},
        el("strong", {}, prose(each.title)), " ",
        each.place ? place(run, each.place) : null, " ",
        each.compile_id ? chip(run, each.compile_id) : null,
        each.text ? el("p", {}, prose(each.text)) : null
      )
    )
  );
}

function functionTable(run) {
  const roots = run.functions.map((_, index) => index).filter((index) => run.functions[index].resumes === null && run.matters(index));
  const rows = roots.map((index) => {
    const one = run.functions[index];
    const ids = new Set(run.idsOf(index));
    const counts = run.counts[index];
    const entries = run.compilations.filter((each) => ids.has(each.compile_id));
    const where = [one.source, one.first_line];
    const verdicts = [...new Set(entries.map((each) => each.verdict).filter(Boolean))];
    return [
      el("a", { href: run.hrefOf(where), title: one.qualified_name }, shortened(one.qualified_name || one.name, 60)),
      el("span", { class: "quiet", title: run.sources[one.source]?.path }, shortened(run.placeText(where), 40)),
      counts.compilations,
      counts.graphs,
      counts.graph_breaks || "",
      counts.recompilations || "",
      counts.fallbacks ? "yes" : "",
      counts.kernels,
      counts.guards,
      seconds(counts.compile_seconds + counts.backward_compile_seconds),
      verdicts.join(", "),
      el("a", { href: address("flow", [`f${index}`], {}, run), "aria-label": `Flow of ${shortened(one.name, 60)}` }, "flow"),
    ];
  });
  const number = (text) => ({ text, number: true });
  return tableOf(
    "Functions that Dynamo compiled, with their resume functions",
    ["Function", "Where", number("Compiled"), number("Graphs"), number("Breaks"), number("Recompilations"), "Falls back to eager",
      number("Kernels"), number("Guards"), number("Time"), "Decompiled", "Drawing"],
    rows
  );
}
