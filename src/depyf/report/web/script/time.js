// Time: what compiling took, phase by phase, and what guards cost on every call.

VIEWS.push({ id: "time", title: "Time", show: showTime });

const ROW = 18;

function showTime({ run }, node) {
  if (node.run === run) return;
  node.run = run;
  node.classList.add("page", "wide");
  fill(
    node,
    el("h1", {}, "Time"),
    el("h2", {}, "Timeline"),
    timeline(run),
    el("h2", {}, "Phases"),
    phaseTable(run),
    el("h2", {}, "Compilations and their guards"),
    guardTable(run)
  );
}

function timeline(run) {
  if (!run.phases.length) return el("p", { class: "quiet" }, "No times were recorded.");
  const start = Math.min(...run.phases.map((each) => each.start));
  const end = Math.max(...run.phases.map((each) => each.start + each.seconds));
  const span = Math.max(end - start, 1e-9);
  const depths = [];
  run.phases.forEach((each, index) => (depths[index] = each.parent === null || each.parent >= index ? 0 : depths[each.parent] + 1));
  const groups = grouped(run.phases.map((each, index) => ({ ...each, depth: depths[index] })), (each) => each.compile_id);
  const detail = el("p", { class: "quiet", role: "status" }, "Point at a phase, or move to it with Tab, to see how long it took.");
  const tell = (phase) => fill(detail, `${phase.compile_id || "no compile id"}  ${phase.name}${phase.backward ? " (backward)" : ""}: ${seconds(phase.seconds)}, from ${seconds(phase.start - start)}`);
  const rows = [...groups].map(([id, list]) => {
    const deepest = Math.max(...list.map((each) => each.depth));
    const bars = list.filter((each) => each.seconds / span > 4e-4).map((each) =>
      el("span", {
        class: each.backward ? "phase backward" : "phase", tabindex: each.depth === 0 ? "0" : null, role: "img", "aria-label": `${each.name}, ${seconds(each.seconds)}`,
        style: { left: `${(100 * (each.start - start)) / span}%`, width: `${(100 * each.seconds) / span}%`, top: `${each.depth * ROW}px`, "--shade": String(Math.min(each.depth, 5)) },
        onmouseenter: () => tell(each), onfocus: () => tell(each),
      }, each.seconds / span > 0.03 ? each.name : null)
    );
    return el("div", { class: "track" }, el("span", { class: "label", title: id ? run.titleOf(id) : null }, id ? chip(run, id) : "other"), el("div", { class: "bars", style: { height: `${(deepest + 1) * ROW}px` } }, bars));
  });
  const ticks = [0, 0.25, 0.5, 0.75, 1].map((share) => el("span", { style: { left: `${share * 100}%` } }, seconds(share * span)));
  return el("div", { class: "timeline", role: "region", "aria-label": "Timeline", tabindex: "0" }, el("div", { class: "track axis" }, el("span", { class: "label" }), el("div", { class: "bars" }, ticks)), rows, detail);
}

function phaseTable(run) {
  const inside = run.phases.map(() => 0);
  run.phases.forEach((each) => each.parent !== null && (inside[each.parent] += each.seconds));
  const names = grouped(run.phases.map((each, index) => ({ ...each, own: Math.max(0, each.seconds - inside[index]) })), (each) => each.name);
  const sum = (list, key) => list.reduce((total, each) => total + each[key], 0);
  const rows = [...names].map(([name, list]) => [name, list.length, sum(list, "seconds"), sum(list, "own")]);
  for (const [name, total] of Object.entries(run.totals)) if (!names.has(name)) rows.push([name, "", total, null]);
  rows.sort((one, other) => other[2] - one[2]);
  const number = (text) => ({ text, number: true });
  return tableOf(
    "Phases over all compilations",
    ["Phase", number("Times"), number("Altogether"), number("Without the phases inside")],
    rows.map(([name, times, total, own]) => [el("span", { title: name }, shortened(name, 60)), times, seconds(total), seconds(own)]),
    true
  );
}

function guardTable(run) {
  const number = (text) => ({ text, number: true });
  const blank = (value) => (value === null ? "" : value);
  return tableOf(
    "Each compilation: time, calls, and its guards",
    ["Compile id", "Function", "Status", number("Forward"), number("Backward"), number("Runs"), number("Guards"), number("Check takes"), number("Did not hold"), "Caches", "Dynamic sizes"],
    run.compilations.map((each) => [
      el("a", { href: each.transformed ? address("stages", [each.transformed], {}, run) : "#time" }, chip(run, each.compile_id)),
      el("span", { title: each.failure || null }, each.function === null ? "" : shortened(run.nameOf(each.function), 50)),
      each.status,
      seconds(each.seconds),
      seconds(each.backward_seconds),
      blank(each.runs),
      each.guards.length,
      seconds(each.guard_latency),
      blank(each.guard_failures),
      Object.entries(each.cache).map(([name, state]) => `${name}: ${state}`).join(", "),
      shortened(each.dynamic.join(", "), 60),
    ])
  );
}
