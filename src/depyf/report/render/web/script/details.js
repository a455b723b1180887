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
      stops ? `${count(stops, "line")} of this file broke a graph or made Dynamo recompile (n, p).` : "No line of this file broke a graph.")
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

// Lines that were traced because this one calls them: the way into functions that have no compilation of their own.
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
    names.length ? el("p", {}, "Computes ", names.slice(0, MOST_SHOWN).map((name) => [el("code", {}, shortened(name, 80)), " "])) : null,
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
    el("p", { class: "told" }, el("strong", {}, prose(each.reason))),
    each.explanation && each.explanation !== each.reason ? el("p", { class: "told" }, prose(each.explanation)) : null,
    each.advice ? el("p", { class: "advice" }, el("b", {}, "What to do: "), prose(each.advice)) : null,
    hintList(each.hints),
    each.url ? el("p", {}, "More: ", outwards(each.url)) : null,
    el("p", {}, calledFrom(run, each.stack))
  );
}

// The calls that led to the last place of a stack, the innermost first.
function calledFrom(run, stack) {
  if (stack.length < 2) return null;
  return el("span", { class: "quiet" }, "called from ", stack.slice(0, -1).reverse().map((where) => [place(run, where), " "]));
}

function fallbackCard(run, each) {
  return el(
    "article",
    { class: "card fallback" },
    el("h3", {}, "Left to Python ", each.compile_id ? chip(run, each.compile_id) : null),
    el("p", {}, el("strong", {}, prose(each.cause))),
    each.reason && each.reason !== each.cause ? el("p", { class: "quiet told" }, prose(each.reason)) : null,
    each.advice ? el("p", { class: "advice" }, el("b", {}, "What to do: "), prose(each.advice)) : null
  );
}

function recompileCard(run, each, advised) {
  return el(
    "article",
    { class: "card recompile" },
    el("h3", {}, "Recompiled as ", chip(run, each.compile_id)),
    each.failed.slice(0, MOST_FAILED).map((failed) => failedGuard(run, failed)),
    each.failed.length > MOST_FAILED ? el("p", { class: "quiet" }, `and ${count(each.failed.length - MOST_FAILED, "guard")} of other entries`) : null,
    each.advice && each.advice !== advised ? el("p", { class: "advice" }, el("b", {}, "What would avoid it: "), each.advice) : null
  );
}

// What the words already say is not said again.
function failedGuard(run, failed) {
  const told = [failed.before, failed.now].every((value) => value === null || failed.words.includes(value));
  return el(
    "p",
    { class: "failed" },
    failed.entry ? chip(run, failed.entry) : null, " ",
    el("strong", {}, failed.words || failed.text), " ",
    failed.place ? [place(run, failed.place), " "] : null,
    calledFrom(run, failed.stack),
    told ? null : [el("span", { class: "quiet" }, "before "), el("code", {}, failed.before ?? "?"), el("span", { class: "quiet" }, " now "), el("code", {}, failed.now ?? "?"), " "],
    failed.text && failed.words ? [el("span", { class: "quiet" }, "guard "), el("code", { class: "quiet" }, failed.text)] : null
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
      el("span", { class: "quiet" }, each.backward ? " backward" : "", each.extern ? " library call" : "")
    );
  };
  return [el("h3", {}, count(kernels.length, "kernel")), el("ul", {}, kernels.slice(0, MOST_SHOWN).map(row), rest(kernels))];
}

function guardList(run, guards) {
  if (!guards.length) return null;
  const row = ({ guard, id }) => el("li", {}, chip(run, id), " ", el("span", { class: "quiet" }, guard.kind), " ", el("code", {}, guard.text));
  return [el("h3", {}, count(guards.length, "guard")), el("ul", {}, guards.slice(0, MOST_SHOWN).map(row), rest(guards))];
}

const MOST_CARDS = 12;

function some(list, card) {
  return [list.slice(0, MOST_CARDS).map(card), list.length > MOST_CARDS ? el("p", { class: "quiet" }, `and ${count(list.length - MOST_CARDS, "more like these", "more like these")}`) : null];
}

function rest(list) {
  return list.length > MOST_SHOWN ? el("li", { class: "quiet" }, `and ${list.length - MOST_SHOWN} more`) : null;
}
