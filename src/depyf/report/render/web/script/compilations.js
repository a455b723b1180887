// Compilations: a row for each compile id with PyTorch's own numbers, who called what was compiled, and all about one.

VIEWS.push({ id: "compilations", title: "Compilations", show: showCompilations });

const SHAPE_KINDS = { symbol: "made dynamic", unbacked: "not known before it runs", specialised: "specialised", guard: "guard added" };

function showCompilations({ run, parts }, node) {
  node.classList.add("page", "wide");
  const chosen = run.compilation.get(parts[0]);
  const loose = run.shapes.filter((each) => !run.compilation.has(each.compile_id)); // of torch.export, say
  const shown = chosen || (run.compilations.length === 1 && run.compilations[0]);
  fill(
    node,
    el("h1", {}, "Compilations"),
    run.compilations.length ? compilationTable(run) : el("p", { class: "quiet" }, "Nothing was compiled."),
    shown ? aboutCompilation(run, shown) : null,
    restarts(run),
    run.compilations.some((each) => each.callers.length) ? [el("h2", {}, "Who called what was compiled"), callerTree(run)] : null,
    loose.length ? [el("h2", {}, "Symbolic shapes outside of compilations"), shapeTable(run, loose)] : null
  );
  const section = chosen && document.getElementById("compilation");
  if (section) section.scrollIntoView({ block: "start" });
  else node.scrollTop = 0;
}

function compilationLink(run, id) {
  return el("a", { href: address("compilations", [id], {}, run), class: "plain", "aria-label": `All about ${id}` }, chip(run, id));
}

// What PyTorch's caches answered: in short where several answered the same.
const cacheText = (one) => Object.entries(one.cache).map(([name, answer]) => `${name.replace(/_/g, " ")}: ${answer}`).join(", ");
function cacheInShort(one) {
  const answers = Object.values(one.cache);
  return answers.length > 1 && new Set(answers).size === 1 ? el("span", { title: cacheText(one) }, answers[0]) : cacheText(one);
}

// Why look-ups of one compilation did not hit, with the parts of the key that changed.
function cacheReasons(run, one) {
  const some = run.cache_lookups.filter((each) => each.compile_id === one.compile_id && (each.reason || each.saved !== null));
  if (!some.length) return null;
  return el("ul", {}, some.map((each) => el(
    "li", {}, `${each.cache.replace(/_/g, " ")}${each.backward ? ", backward" : ""}: ${each.state}. ${each.reason ? shortened(each.reason, 400) : `Saved ${seconds(each.saved)}, as PyTorch reports it`}`,
    each.changed.length ? el("ul", {}, each.changed.map((part) => el("li", {}, el("code", {}, part.name), changedValues(part)))) : null
  )));
}

// Where the seconds of a compilation went, which a start from caches is made of.
const timePartsOf = (run, one) => Object.entries(one.time_parts).filter(([, part]) => part >= 0.005).map(([name, part]) => `${run.partWords[name] || name} ${seconds(part)}`).join(", ") || null;

// Long values are left out of the page; one that a side lacks is empty.
const changedValues = ({ before, now }) => (before === "..." && now === "..." ? "" : `: ${shortened(before || "not there", 100)} before, ${shortened(now || "not there", 100)} now`);

function compilationTable(run) {
  const metric = (one, name) => (typeof one.metrics[name] === "number" ? digits(one.metrics[name]) : "");
  const time = (one) => (one.seconds ?? 0) + (one.backward_seconds ?? 0);
  const of = (value) => (at) => value(run.compilations[at]);
  const ofMetric = (text, name) => numeric(text, of((one) => one.metrics[name]));
  const rows = run.compilations.map((one) => [
    () => compilationLink(run, one.compile_id),
    one.function === null ? "" : () => el("a", { href: run.hrefOf(run.startOf(one.function)) }, shortened(run.nameOf(one.function), 60)),
    one.status === "compiled" ? "" : statusOf(one),
    one.attempts > 1 ? () => el("span", { title: one.restarts.join("\n") }, String(one.attempts)) : "1",
    metric(one, "graph_op_count"), metric(one, "graph_node_count"), metric(one, "graph_input_count"),
    digits(one.guards.length),
    one.dynamic.length || "",
    cacheInShort(one),
    seconds(time(one)),
  ]);
  return filledTableOf(
    "Compilations with PyTorch's numbers",
    [
      "Id", { text: "Function", by: of((one) => run.nameOf(one.function)) }, "Result", numeric("Attempts", of((one) => one.attempts)), ofMetric("Operations", "graph_op_count"),
      ofMetric("Nodes", "graph_node_count"), ofMetric("Inputs", "graph_input_count"), numeric("Guards", of((one) => one.guards.length)),
      numeric("Dynamic", of((one) => one.dynamic.length)), "Cache", numeric("Time", of(time)),
    ],
    rows, { most: MOST_SHOWN }
  );
}

// Why Dynamo began compilations anew, by reason.
function restarts(run) {
  const met = run.compilations.flatMap((one) => one.restarts.map((reason) => ({ reason, id: one.compile_id })));
  if (!met.length) return null;
  const groups = [...grouped(met, (each) => each.reason)].map(([reason, all]) => [reason, [...new Set(all.map((each) => each.id))]]);
  groups.sort(([, one], [, other]) => other.length - one.length);
  const rows = groups.map(([reason, ids]) => [prose(shortened(dedented(reason), 300)), ids.length, idList(run, ids)]);
  return [el("h2", {}, "Why Dynamo began again"), tableOf("Why Dynamo began again", ["Reason", numeric("Compilations"), ""], rows)];
}

// Links to compilations; of many the first, and a button for the rest.
function idList(run, ids) {
  const links = (list) => list.map((id) => [compilationLink(run, id), " "]);
  const left = ids.length - MOST_IDS;
  if (left <= 1) return links(ids);
  const box = el("span", {}, el("button", { type: "button", class: "link", onclick: () => fill(box, links(ids.slice(MOST_IDS))) }, `${digits(left)} more`));
  return [links(ids.slice(0, MOST_IDS)), box, " "];
}

// Calls as a tree, outermost first; steps that only one way leads through stand in one line.
function callerTree(run) {
  const root = { below: new Map(), ids: [] };
  for (const one of run.compilations) {
    let at = root;
    for (const where of one.callers) {
      const key = keyOf(where);
      if (!at.below.has(key)) at.below.set(key, { where, below: new Map(), ids: [] });
      at = at.below.get(key);
    }
    at.ids.push(one.compile_id);
  }
  const functionOf = (id) => run.compilation.get(id).function;
  const level = (node) => el("ul", { class: "tree" }, [
    ...[...grouped(node.ids, functionOf)].map(([index, ids]) => el("li", {}, idList(run, ids), index === null ? "" : shortened(run.nameOf(index), 80))),
    ...[...node.below.values()].map((next) => {
      const way = [next];
      while (!next.ids.length && next.below.size === 1) {
        next = next.below.values().next().value;
        way.push(next);
      }
      return el("li", {}, way.map((step, at) => [at ? " → " : "", place(run, step.where), " ", el("code", { class: "quiet" }, shortened(run.code(step.where).trim(), 60))]), level(next));
    }),
  ]);
  const unknown = root.ids.splice(0);
  return [level(root), unknown.length ? [el("p", { class: "quiet" }, "Called from where PyTorch does not say:"), level({ below: new Map(), ids: unknown })] : null];
}

function aboutCompilation(run, one) {
  const artifacts = run.byCompilation.get(one.compile_id) || [];
  const shapes = run.shapes.filter((each) => each.compile_id === one.compile_id);
  const settings = (run.settings || [])[one.settings] || [];
  const facts = [
    ["Function", one.function === null ? null : el("a", { href: run.hrefOf(run.startOf(one.function)) }, run.nameOf(one.function))],
    ["Result", one.failure ? `${statusOf(one)}: ${shortened(one.failure, 400)}` : statusOf(one)],
    ["Cache", [cacheText(one) || "not asked", cacheReasons(run, one)]],
    ["What its time went into", timePartsOf(run, one)],
    ["Guards", el("a", { href: address("guards", [one.compile_id], {}, run) }, digits(one.guards.length))],
    ["Entries of the function", run.limits[one.function] ? limitText(run.limits[one.function]) : null],
    ["Attempts", one.restarts.length ? `${one.attempts}, restarted for: ${one.restarts.map((each) => shortened(each, 200)).join("; ")}` : String(one.attempts)],
    ["torch.compile called at", one.compiled_at && place(run, one.compiled_at)], // logs do not have it
    ["Settings that are not PyTorch's defaults", settings.length ? el("code", {}, settings.join(", ")) : null],
    ["Called from", one.callers.length ? one.callers.map((where, at) => [at ? " → " : "", place(run, where)]) : null],
  ].filter(([, value]) => value);
  const metrics = Object.entries(one.metrics).filter(([, value]) => typeof value !== "object" || value !== null);
  return el(
    "section",
    { id: "compilation", class: "card", "aria-label": `Compilation ${one.compile_id}` },
    el("h2", {}, chip(run, one.compile_id), " ", shortened(run.titleOf(one.compile_id).slice(one.compile_id.length).trim(), 80)),
    el("dl", {}, facts.map(([name, value]) => [el("dt", {}, name), el("dd", {}, value)])),
    shapes.length ? [el("h3", {}, "Symbolic shapes"), shapeTable(run, shapes)] : null,
    memoryOf(run, one.compile_id),
    el("h3", {}, "Files and texts"),
    el("p", { class: "links" }, artifacts.map((each) => [artifactLink(run, each, nameAmong(each, artifacts)), " "])),
    metrics.length ? el("details", { class: "guards", open: true }, el("summary", {}, `PyTorch's metrics (${metrics.length})`), metricTable(metrics)) : null
  );
}

// What the graphs of a compilation keep alive; sizes come in words.
function memoryOf(run, id) {
  const known = run.memory.filter((each) => run.artifact.get(each.artifact)?.compile_id === id);
  if (!known.length) return null;
  const rows = known.map((each) => {
    const artifact = run.artifact.get(each.artifact);
    return [
      artifactLink(run, artifact, artifact.kind === "kernels" ? artifact.path || artifact.title : undefined, each.line),
      [each.peak, each.note ? el("p", { class: "quiet" }, each.note) : null],
      place(run, each.place),
      each.inputs,
      each.saved,
    ];
  });
  const heads = ["Graph or generated code", numeric("Most at once"), "At", numeric("Inputs"), numeric("Saved for the backward")];
  const lists = known.flatMap((each) => [[`Alive at the peak of ${each.artifact}`, each.largest, each], [`Saved for the backward by ${each.artifact}`, each.kept, each]]);
  return [
    el("h3", {}, "Memory"),
    filledTableOf("Memory of the graphs, run operation by operation, and of the generated code", heads, rows),
    lists.filter(([, tensors]) => tensors.length).map(([title, tensors, each]) => el("details", {}, el("summary", {}, title), tensorTable(run, each.artifact, title, tensors))),
  ];
}

function tensorTable(run, id, title, tensors) {
  const rows = tensors.map(([name, size, line, where, input]) => [
    artifactLink(run, run.artifact.get(id), el("code", {}, name), line), size, input ? "an input" : place(run, where),
  ]);
  return tableOf(title, ["Tensor", numeric("Size"), "Made at"], rows, { narrow: true });
}

function shapeTable(run, shapes) {
  const rows = shapes.map((each) => [
    SHAPE_KINDS[each.kind] || each.kind,
    [el("code", {}, shortened(each.text, 300)), each.reason ? el("p", { class: "quiet" }, shortened(each.reason, 300)) : null],
    each.stack.length ? each.stack.map((where, at) => [at ? " → " : "", place(run, where)]) : "",
    each.torch_stack.length ? el("details", {}, el("summary", {}, "PyTorch's stack"), el("pre", { tabindex: "0" }, each.torch_stack.join("\n"))) : "",
  ]);
  return tableOf("Symbols, specialisations and guards on shapes", ["What", "Shape", "Your stack", ""], rows);
}

// PyTorch's names say the unit: microseconds (_us) or seconds (_s).
function metricTable(metrics) {
  const shown = (name, value) => {
    if (typeof value === "number" && /_us$/.test(name) && !/^(start|end)_time/.test(name)) return seconds(value / 1e6);
    if (typeof value === "number" && /_time_s$|_overhead_s$/.test(name)) return seconds(value);
    return shortened(typeof value === "string" ? value : JSON.stringify(value), 300);
  };
  return tableOf("PyTorch's metrics", ["Metric", "Value"], metrics.map(([name, value]) => [el("code", {}, name), shown(name, value)]), { narrow: true });
}
