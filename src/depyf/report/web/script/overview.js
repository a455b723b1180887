// Overview: what was compiled, what it cost, and what is worth acting on, most expensive first.

VIEWS.push({ id: "overview", title: "Overview", show: showOverview });

function showOverview({ run }, node) {
  if (node.run === run) return;
  node.run = run;
  node.classList.add("page");
  fill(
    node,
    el("h1", {}, run.command.length ? shortened(run.command.join(" "), 120) : "A run of torch.compile"),
    el("p", { class: "quiet" }, aboutRun(run)),
    tiles(run),
    el("h2", {}, "Worth acting on"),
    findings(run),
    el("h2", {}, "Functions"),
    functionTable(run),
    run.notes.length ? [el("h2", {}, "Notes"), el("ul", { class: "notes" }, run.notes.map((note) => el("li", {}, note)))] : null
  );
}

function aboutRun(run) {
  const parts = [run.torch && `PyTorch ${run.torch}`, run.python && `Python ${run.python}`, run.depyf && `depyf ${run.depyf}`];
  if (run.rank !== "") parts.push(`rank ${run.rank}`);
  if (run.started) parts.push(new Date(run.started * 1000).toISOString().replace("T", " ").slice(0, 19) + " UTC");
  return parts.filter(Boolean).join("  ·  ");
}

function tiles(run) {
  const roots = new Set(run.compilations.filter((each) => each.function !== null).map((each) => run.root(each.function)));
  const total = run.compilations.reduce((sum, each) => sum + (each.seconds || 0) + (each.backward_seconds || 0), 0);
  const graphs = run.compilations.filter((each) => each.graph).length;
  const guards = run.compilations.reduce((sum, each) => sum + each.guards.length, 0);
  const tile = (value, name, href, bad) =>
    el("li", {}, el("a", { href: href + rankQuery(run), class: bad ? "tile bad" : "tile" }, el("strong", {}, value), el("span", {}, name)));
  const n = (number) => number.toLocaleString("en");
  return el(
    "ul",
    { class: "tiles" },
    tile(n(roots.size), roots.size === 1 ? "function" : "functions", "#source"),
    tile(n(graphs), graphs === 1 ? "graph" : "graphs", "#stages"),
    tile(n(run.breaks.length), run.breaks.length === 1 ? "graph break" : "graph breaks", "#source", run.breaks.length),
    tile(n(run.recompiles.length), run.recompiles.length === 1 ? "recompile" : "recompiles", "#recompiles", run.recompiles.length),
    tile(n(run.lost.length), run.lost.length === 1 ? "frame left to Python" : "frames left to Python", "#flow", run.lost.length),
    tile(n(run.kernels.length), run.kernels.length === 1 ? "kernel" : "kernels", "#stages"),
    tile(n(guards), guards === 1 ? "guard" : "guards", "#time"),
    tile(seconds(total) || "–", "to compile", "#time")
  );
}

function findings(run) {
  if (!run.findings.length) return el("p", { class: "quiet" }, "Nothing stands out.");
  const sorted = [...run.findings].sort((one, other) => other.weight - one.weight);
  return el(
    "ol",
    { class: "findings" },
    sorted.map((each) =>
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
    const family = new Set(run.family(index));
    const entries = run.compilations.filter((each) => ids.has(each.compile_id));
    const sum = (list, key) => list.reduce((total, each) => total + (each[key] || 0), 0);
    const where = [one.source, one.first_line];
    const verdicts = [...new Set(entries.map((each) => each.verdict).filter(Boolean))];
    return [
      el("a", { href: run.hrefOf(where), title: one.qualified_name }, shortened(one.qualified_name || one.name, 60)),
      el("span", { class: "quiet", title: run.sources[one.source]?.path }, shortened(run.placeText(where), 40)),
      entries.length,
      entries.filter((each) => each.graph).length,
      run.breaks.filter((each) => ids.has(each.compile_id)).length || "",
      run.recompiles.filter((each) => family.has(each.function)).length || "",
      run.lost.filter((each) => family.has(each.function)).length ? "yes" : "",
      run.kernels.filter((each) => ids.has(each.compile_id)).length,
      entries.reduce((total, each) => total + each.guards.length, 0),
      seconds(sum(entries, "seconds") + sum(entries, "backward_seconds")),
      verdicts.join(", "),
      el("a", { href: address("flow", [`f${index}`], {}, run), "aria-label": `Flow of ${shortened(one.name, 60)}` }, "flow"),
    ];
  });
  const number = (text) => ({ text, number: true });
  return tableOf(
    "Functions that Dynamo compiled, with their resume functions",
    ["Function", "Where", number("Compiled"), number("Graphs"), number("Breaks"), number("Recompiles"), "Left to Python",
      number("Kernels"), number("Guards"), number("Time"), "Decompiled", "Drawing"],
    rows
  );
}
