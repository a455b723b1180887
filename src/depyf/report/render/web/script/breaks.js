// Breaks: the graph breaks by reason, with what to do about each, where they are, and what went on after them.

VIEWS.push({ id: "breaks", title: "Breaks", show: showBreaks });

const MOST_IDS = 8; // of the compilations that met a break

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
          el("div", { class: "beside" }, groups.map((group, at) => breakGroup(run, group, at))),
        ]
      : el("p", { class: "quiet" }, run.breaks.length ? "" : run.traced ? "No graph was broken." : NOT_TRACED)
  );
  const chosen = parts[0] && document.getElementById(`break-${parts[0]}`);
  if (chosen) {
    chosen.scrollIntoView({ block: "start" });
    chosen.classList.add("chosen");
  }
}

// The breaks of one reason: ``places`` are the distinct ones, ``after`` the compilations that began after them.
function breakGroups(run) {
  const groups = [...grouped(run.breaks, (each) => each.title)].map(([title, met]) => {
    const places = [...grouped(met, (each) => (each.place ? keyOf(each.place) : "")).values()];
    return { title, met, places, ...costOf(run, met) };
  });
  return groups.sort((one, other) => other.seconds - one.seconds || other.places.length - one.places.length || other.met.length - one.met.length);
}

// What was compiled after breaks: the number of graphs, and the compile time.
function costOf(run, breaks) {
  const after = [...new Set(breaks.flatMap((each) => run.compiledAfter(each)))];
  return {
    graphs: after.filter((each) => each.status === "compiled").length,
    seconds: after.reduce((sum, each) => sum + (each.seconds || 0) + (each.backward_seconds || 0), 0),
  };
}

function breakTable(run, groups) {
  return tableOf(
    "Graph breaks by reason",
    ["Reason", numeric("Places"), numeric("Met"), numeric("Graphs after them"), numeric("Compile time after them")],
    groups.map((group, at) => [
      el("a", { href: address("breaks", [String(at)], {}, run) }, prose(shortened(group.title, 120))),
      group.places.length, group.met.length, group.graphs, seconds(group.seconds),
    ])
  );
}

function breakGroup(run, group, at) {
  const [first] = group.met;
  const advised = group.met.every((each) => each.advice === first.advice);
  const shared = sharedLines(group.met.map((each) => each.explanation));
  const callers = group.places.map(([each]) => JSON.stringify(each.stack.slice(0, -1)));
  const calledAlike = callers.every((each) => each === callers[0]);
  return el(
    "section",
    { id: `break-${at}`, class: "card break", "aria-label": `Graph breaks: ${shortened(group.title, 80)}` },
    el("h2", {}, prose(group.title)),
    shared !== first.reason ? explained(shared) : null,
    advised && first.advice ? el("p", { class: "advice" }, el("b", {}, "What to do: "), prose(first.advice)) : null,
    hintList(first.hints),
    first.url ? el("p", {}, "More: ", outwards(first.url)) : null,
    calledAlike ? el("p", {}, calledFrom(run, first.stack)) : null,
    breakPlaces(run, group, { shared, advised, calledAlike })
  );
}

// The first lines that all of these texts have.
function sharedLines(texts) {
  const [first, ...others] = texts.map((text) => text.split("\n"));
  const differ = first.findIndex((line, at) => others.some((lines) => lines[at] !== line));
  const alike = differ < 0 ? first : first.slice(0, differ);
  while (differ >= 0 && /:\s*$/.test(alike[alike.length - 1] || "")) alike.pop(); // what it announces differs
  return alike.join("\n").trim();
}

// A row for each place; what differs from place to place stands in it.
function breakPlaces(run, { places }, { shared, advised, calledAlike }) {
  const row = (met) => {
    const [first] = met;
    const ids = [...new Set(met.map((each) => each.compile_id).filter(Boolean))];
    const more = first.explanation.slice(shared.length).trim();
    const cost = costOf(run, met);
    return [
      first.place ? place(run, first.place) : "unknown",
      [
        first.place ? el("code", {}, shortened(run.code(first.place).trim(), 100)) : null,
        calledAlike ? null : el("p", {}, calledFrom(run, first.stack)),
        foldedUnder("PyTorch says", explained(more)),
        advised || !first.advice ? null : el("p", { class: "advice" }, el("b", {}, "What to do: "), prose(first.advice)),
      ],
      idList(run, ids),
      cost.graphs, seconds(cost.seconds),
    ];
  };
  return tableOf("Where", ["Line", "Code", "Met in", numeric("Graphs after"), numeric("Compile time after")], places.map(row), { most: MOST_SHOWN });
}

// Parts behind a summary; one that is folded itself needs no other.
function foldedUnder(title, parts) {
  return parts.every((each) => each.localName === "details") ? parts : el("details", {}, el("summary", {}, title), parts);
}

// What PyTorch advises; beside the one advice of the cause it is asked for.
function hintList(hints) {
  return hints.length ? el("details", {}, el("summary", {}, `PyTorch's ${hints.length === 1 ? "hint" : `${hints.length} hints`}`), el("ul", {}, hints.map((hint) => el("li", {}, prose(hint))))) : null;
}
