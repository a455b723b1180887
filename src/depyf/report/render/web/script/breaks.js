// Breaks: the graph breaks by reason, with what to do about each, where they are, and what went on after them.

VIEWS.push({ id: "breaks", title: "Breaks", show: showBreaks });

function showBreaks({ run, parts }, node) {
  node.classList.add("page");
  const groups = breakGroups(run);
  fill(
    node,
    el("h1", {}, "Graph breaks"),
    groups.length
      ? [
          el("p", { class: "quiet" }, "Each ends a graph: its line runs as plain Python, and what follows is compiled as a function of its own, with guards of its own. Reasons are in the order of what was compiled after them."),
          breakTable(run, groups),
          groups.map((group, at) => breakGroup(run, group, at)),
        ]
      : el("p", { class: "quiet" }, run.breaks.length ? "" : "No graph was broken.")
  );
  const chosen = parts[0] && document.getElementById(`break-${parts[0]}`);
  if (chosen) {
    chosen.scrollIntoView({ block: "start" });
    chosen.classList.add("chosen");
  }
}

// The breaks of one reason: ``places`` are the distinct ones, ``ids`` the compilations that began after them.
function breakGroups(run) {
  const groups = [...grouped(run.breaks, (each) => each.reason)].map(([reason, met]) => {
    const places = [...grouped(met, (each) => (each.place ? keyOf(each.place) : "")).values()];
    const after = [...new Set(met.flatMap((each) => run.compiledAfter(each)))];
    const graphs = after.filter((each) => each.status === "compiled");
    const spent = after.reduce((sum, each) => sum + (each.seconds || 0) + (each.backward_seconds || 0), 0);
    return { reason, met, places, graphs: graphs.length, seconds: spent };
  });
  return groups.sort((one, other) => other.seconds - one.seconds || other.places.length - one.places.length || other.met.length - one.met.length);
}

function breakTable(run, groups) {
  const number = (text) => ({ text, number: true });
  return tableOf(
    "Graph breaks by reason",
    ["Reason", number("Places"), number("Met"), number("Graphs after them"), number("Compile time after them")],
    groups.map((group, at) => [
      el("a", { href: address("breaks", [String(at)], {}, run) }, prose(shortened(group.reason.split("\n")[0], 120))),
      group.places.length, group.met.length, group.graphs, seconds(group.seconds),
    ])
  );
}

function breakGroup(run, group, at) {
  const [first] = group.met;
  const explained = group.met.every((each) => each.explanation === first.explanation);
  const advised = group.met.every((each) => each.advice === first.advice);
  return el(
    "section",
    { id: `break-${at}`, class: "card break", "aria-label": `Graph breaks: ${shortened(group.reason, 80)}` },
    el("h2", {}, prose(group.reason)),
    explained && first.explanation && first.explanation !== group.reason ? el("p", { class: "told" }, prose(first.explanation)) : null,
    advised && first.advice ? el("p", { class: "advice" }, el("b", {}, "What to do: "), prose(first.advice)) : null,
    hintList(first.hints),
    first.url ? el("p", {}, "More: ", outwards(first.url)) : null,
    el("ul", { class: "places" }, group.places.slice(0, MOST_SHOWN).map((met) => breakPlace(run, met, explained, advised)), rest(group.places))
  );
}

function breakPlace(run, met, explained, advised) {
  const [first] = met;
  const ids = [...new Set(met.map((each) => each.compile_id).filter(Boolean))];
  return el(
    "li",
    {},
    first.place ? [place(run, first.place), " ", el("code", {}, shortened(run.code(first.place).trim(), 100)), " "] : "an unknown line ",
    ids.slice(0, MOST_SHOWN).map((id) => [chip(run, id), " "]),
    first.stack.length > 1 ? el("p", { class: "quiet" }, "Called from ", first.stack.slice(0, -1).map((where) => [place(run, where), " "])) : null,
    explained || !first.explanation ? null : el("p", { class: "told" }, prose(first.explanation)),
    advised || !first.advice ? null : el("p", { class: "advice" }, el("b", {}, "What to do: "), prose(first.advice))
  );
}

function hintList(hints) {
  return hints.length ? el("ul", {}, hints.map((hint) => el("li", {}, prose(hint)))) : null;
}
