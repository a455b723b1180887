// What there is to say about a chosen line, below the source.

const MOST_SHOWN = 40;
const MOST_FAILED = 8;

function aboutNothing(view) {
  const { run, target } = view;
  const name = target.root === null ? fileName(run.sources[target.source].path) : run.nameOf(target.root);
  const stops = view.stops.length;
  fill(
    view.details,
    el("h2", {}, shortened(name, 120)),
    el("p", { class: "quiet" }, "Choose a line, here or in a pane: its part in each stage and in the kernels lights up. ",
      view.costly ? `${count(stops, "line")} of this file broke a graph, fell back or made Dynamo recompile (n, p).`
        : `No line of this file broke a graph, fell back or made Dynamo recompile${stops ? `; ${count(stops, "line")} of it ${stops === 1 ? "is" : "are"} compiled (n, p)` : ""}.`),
    el("p", { class: "quiet" }, "A line and its parts in the panes have one colour. Beside it: ", Object.entries(SIGNS).map(([kind, [sign, words]]) => [el("span", { class: `sign ${kind}` }, sign), ` ${words}, `]),
      "a stripe for each graph, and how many kernels, or calls of a library, compute the line.")
  );
}

function aboutPlace(view, at) {
  const { run } = view;
  const mark = run.at(at);
  const parts = [el("h2", {}, `${shortened(run.placeText(at), 60)} `, el("code", {}, shortened(run.code(at).trim(), 100)))];
  if (!mark) parts.push(el("p", { class: "quiet" }, "Nothing of this line is in a graph."));
  else {
    const ids = run.ids.filter((id) => mark.ids.has(id));
    parts.push(
      ids.length ? el("p", {}, `In ${ids.length === 1 ? "the graph" : "the graphs"} of `, ids.slice(0, MOST_SHOWN).map((id) => [chip(run, id), " "])) : null,
      some(mark.breaks, (each) => breakCard(run, each)),
      some(mark.fallbacks, (each) => fallbackCard(run, each)),
      some(mark.recompiles, (each) => recompileCard(run, each)),
      callList(view, at),
      kernelList(view, mark.kernels),
      guardList(run, mark.guards)
    );
  }
  fill(view.details, parts);
  view.details.scrollTop = 0;
}

// Lines that were traced because this one calls them: the calls that lead to functions without a compilation.
function callList(view, at) {
  const { run } = view;
  const key = keyOf(at);
  const called = new Map();
  for (const stack of run.callStacks) {
    stack.forEach((where, depth) => {
      const next = stack[depth + 1];
      if (next && keyOf(where) === key && keyOf(next) !== key) called.set(keyOf(next), next);
    });
  }
  const list = [...called.values()]; // in the order in which they were recorded
  if (!list.length) return null;
  const row = (where) => el("li", {}, place(run, where), " ", el("code", {}, shortened(run.code(where).trim(), 80)));
  return [el("h3", {}, "Calls"), el("ul", {}, list.slice(0, MOST_SHOWN).map(row), rest(list))];
}

function aboutLine(view, artifact, selection) {
  const { run } = view;
  const kernels = (run.kernelsOf.get(artifact.id) || []).filter(
    (each) => (each.first <= selection.line && selection.line <= each.last) || each.calls.includes(selection.line)
  );
  const names = [...selection.names].filter((name) => !kernels.some((each) => each.name === name));
  const line = (where) => el("li", {}, place(run, where), " ", el("code", {}, shortened(run.code(where).trim(), 100)));
  fill(
    view.details,
    el("h2", {}, `Line ${selection.line} of ${stageName(artifact)} `, artifact.compile_id ? chip(run, artifact.compile_id) : null),
    names.length ? el("p", {}, "Computes ", names.slice(0, MOST_SHOWN).map((name) => [el("code", { title: name }, shortened(shortName(name), 80)), " "])) : null,
    selection.places.length ? [el("h3", {}, "Your code"), el("ul", {}, selection.places.map(line))] : el("p", { class: "quiet" }, "PyTorch does not say which line of yours this is."),
    selection.through.length ? [el("h3", {}, "Called from"), el("ul", {}, selection.through.map(line))] : null,
    kernelList(view, kernels)
  );
  view.details.scrollTop = 0;
}

function breakCard(run, each) {
  return el(
    "article",
    { class: "card break" },
    el("h3", {}, "Graph break ", each.compile_id ? chip(run, each.compile_id) : null),
    el("p", { class: "told" }, el("strong", {}, prose(each.title))),
    each.explanation !== each.reason ? explained(each.explanation) : null,
    each.advice ? el("p", { class: "advice" }, el("b", {}, "What to do: "), prose(each.advice)) : null,
    hintList(each.hints),
    each.url ? el("p", {}, "More: ", outwards(each.url)) : null,
    el("p", {}, calledFrom(run, each.stack))
  );
}

// PyTorch's explanation of a graph break: what it says, and the lines of the graph that it quotes, folded.
function explained(text) {
  const lines = text.split("\n");
  const quoted = lines.findIndex((line) => shortComment(line) !== line);
  const announced = quoted > 0 && /:\s*$/.test(lines[quoted - 1]);
  const said = lines.slice(0, quoted < 0 ? lines.length : quoted - (announced ? 1 : 0)).join("\n").trim();
  return [
    said ? el("p", { class: "told" }, prose(said)) : null,
    quoted < 0 ? null : el("details", {},
      el("summary", {}, announced ? lines[quoted - 1].trim() : "What PyTorch quotes"),
      el("pre", { class: "told" }, lines.slice(quoted).map((line) => shortComment(line.trim())).join("\n"))),
  ].filter(Boolean);
}

// The calls that led to a place of a stack, or to its last one, the innermost first.
function calledFrom(run, stack, to) {
  const at = to ? stack.findIndex((each) => keyOf(each) === keyOf(to)) : -1;
  const calls = stack.slice(0, at).reverse();
  if (!calls.length) return null;
  return el("span", { class: "quiet" }, "called from ", joined(framesOf(run, calls), ", from "), " ");
}

// The calls in libraries that the user's line of an error or a guard leads to, the outermost first.
function leadsTo(run, { place: own, stack }) {
  const inside = own ? stack.slice(stack.findIndex((each) => keyOf(each) === keyOf(own)) + 1) : [];
  const known = inside.length && inside.length < stack.length && inside.every((where) => run.sources[where[0]]?.library);
  return known ? el("span", { class: "quiet" }, "calls ", joined(framesOf(run, inside), ", then ")) : null;
}

const MOST_FRAMES = 2; // of libraries, one after the other

// Links to calls. Of a row of calls in libraries the first stands there, and a button shows the others.
function framesOf(run, calls) {
  const runs = [];
  for (const where of calls) {
    const library = Boolean(run.sources[where[0]]?.library);
    if (!runs.length || !library || !runs[runs.length - 1].library) runs.push({ library, calls: [] });
    runs[runs.length - 1].calls.push(where);
  }
  return runs.flatMap(({ calls: inside }) => {
    const links = inside.map((where) => place(run, where));
    if (inside.length <= MOST_FRAMES) return links;
    const box = el("span", {}, el("button", { type: "button", class: "link", onclick: () => fill(box, joined(links.slice(1), ", from ")) }, `${inside.length - 1} more lines of libraries`));
    return [links[0], box];
  });
}

const joined = (nodes, between) => nodes.map((node, at) => [at ? between : "", node]);

// What became of a function that was to be compiled and was not.
const isRaised = (each) => each.cause.endsWith("raised into the program");
const cameTo = (each) => (isRaised(each) ? "Failed to compile" : "Left to Python");

// Of a reason of many lines the first is in sight, the others where nothing says what to do. ``head`` is what the card is called.
function fallbackCard(run, each, head = `${cameTo(each)} `) {
  const [reason, ...more] = each.reason === each.cause ? [] : (each.reason || "").trim().split("\n");
  return el(
    "article",
    { class: "card fallback" },
    el("h3", {}, head, each.compile_id ? chip(run, each.compile_id) : null),
    el("p", {}, el("strong", {}, prose(each.cause)), each.calls != null ? `: ${count(each.calls, "call")} ran as plain Python` : null),
    reason ? el("p", { class: "quiet told" }, prose(reason)) : null,
    each.advice ? el("p", { class: "advice" }, el("b", {}, "What to do: "), prose(each.advice)) : null,
    more.length ? el("details", { open: !each.advice }, el("summary", {}, "PyTorch says"), el("p", { class: "told" }, prose(more.join("\n").trim()))) : null,
    el("p", {}, calledFrom(run, each.stack, each.place), leadsTo(run, each))
  );
}

// ``advised`` holds the advice that is said elsewhere.
function recompileCard(run, each, advised = new Set()) {
  const same = [...grouped(each.failed, checkOf).values()];
  const texts = [...new Set(each.failed.filter((failed) => failed.text && failed.words).map((failed) => failed.text))];
  return el(
    "article",
    { class: "card recompile" },
    el("h3", {}, "Recompiled as ", chip(run, each.compile_id)),
    same.slice(0, MOST_FAILED).map((failed) => failedGuards(run, failed)),
    same.length > MOST_FAILED ? el("p", { class: "quiet" }, `and ${count(same.length - MOST_FAILED, "other check")}`) : null,
    each.advice && !advised.has(each.advice) ? el("p", { class: "advice" }, el("b", {}, "What would avoid it: "), prose(each.advice)) : null,
    texts.length ? el("details", {}, el("summary", {}, texts.length === 1 ? "PyTorch's text of the guard" : `PyTorch's texts of the ${texts.length} guards`), el("p", { class: "told" }, el("code", {}, texts.join("\n")))) : null
  );
}

// A check that failed for one entry or several. What the words already say is not said again.
function failedGuards(run, [failed, ...others]) {
  const told = [failed.before, failed.now].every((value) => value === null || failed.words.includes(value));
  const entries = [failed, ...others].map((each) => each.entry).filter(Boolean);
  const befores = [...new Set(others.map((each) => each.before).filter((value) => value !== null && value !== failed.before))];
  return el(
    "p",
    { class: "failed" },
    entries.length > MOST_IDS ? [chip(run, entries[0]), " … ", chip(run, entries[entries.length - 1])] : entries.map((id, at) => [at ? " " : "", chip(run, id)]), " ",
    el("strong", {}, failed.words || failed.text), " ",
    befores.length ? [el("span", { class: "quiet" }, "(the others for ", shortened(befores.join(", "), 80), ")"), " "] : null,
    failed.place ? [place(run, failed.place), " "] : null,
    calledFrom(run, failed.stack, failed.place), leadsTo(run, failed),
    told ? null : [el("span", { class: "quiet" }, "before "), el("code", {}, failed.before ?? "?"), el("span", { class: "quiet" }, " now "), el("code", {}, failed.now ?? "?"), " "]
  );
}

function kernelList(view, kernels) {
  if (!kernels.length) return null;
  const row = (each) => {
    const line = each.first || each.calls[0] || 1;
    return el(
      "li",
      {},
      el("button", {
        type: "button", class: "link",
        onclick: () => {
          const artifact = view.run.artifact.get(each.artifact);
          if (!artifact) return;
          view.kernel.open(artifact, true);
          if (!view.kernel.code.has(line)) {
            fill(view.kernel.hits, `there is no line ${line}: the text has ${count(view.kernel.code.lines.length, "line")}`);
            return;
          }
          view.kernel.code.moveTo(line);
          view.kernel.code.reveal(line, "middle");
        },
      }, shortened(each.name, 80)),
      " ", each.compile_id ? chip(view.run, each.compile_id) : null,
      el("span", { class: "quiet" }, each.backward ? " backward" : "", each.extern ? " library call" : ""),
      Object.keys(each.launch).length
        ? el("p", { class: "quiet" }, shortened(`launch: ${Object.entries(each.launch).map(([name, value]) => `${name} ${value}`).join(", ")}`, 400))
        : null
    );
  };
  return [el("h3", {}, kernelCounts(kernels).words), el("ul", {}, kernels.slice(0, MOST_SHOWN).map(row), rest(kernels))];
}

// The guards that a line caused; a requirement that several cache entries have stands there once.
function guardList(run, guards) {
  if (!guards.length) return null;
  const ids = [...new Set(guards.map(({ id }) => id))];
  const same = [...grouped(guards, ({ guard }) => `${guard.source}\n${guard.required || guard.text}`).values()];
  const row = (met) => {
    const { guard } = met[0];
    const words = guard.source && guard.required ? [el("code", {}, shortened(run.written(guard.source), 100)), `: ${shortened(guard.required, 160)}`] : el("code", {}, shortened(guard.text, 160));
    const of = [...new Set(met.map(({ id }) => id))];
    return el("li", { title: guard.text }, words, " ", of.length === ids.length ? null : of.slice(0, MOST_SHOWN).map((id) => [chip(run, id), " "]));
  };
  return [
    el("h3", {}, count(guards.length, "guard"), " ", ids.slice(0, MOST_SHOWN).map((id) => [el("a", { href: address("guards", [id], {}, run) }, `all of ${id}`), " "])),
    el("ul", {}, same.slice(0, MOST_SHOWN).map(row), rest(same)),
  ];
}

const MOST_CARDS = 12;

function some(list, card) {
  return [list.slice(0, MOST_CARDS).map(card), list.length > MOST_CARDS ? el("p", { class: "quiet" }, `and ${count(list.length - MOST_CARDS, "more like these", "more like these")}`) : null];
}

function rest(list) {
  return list.length > MOST_SHOWN ? el("li", { class: "quiet" }, `and ${list.length - MOST_SHOWN} more`) : null;
}
