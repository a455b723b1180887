// Time: what compiling took, phase by phase, and what guards cost on every call.

VIEWS.push({ id: "time", title: "Time", show: showTime });

const ROW = 18;
const SHALLOW = 5; // levels of phases that are shown at first

function showTime({ run }, node) {
  if (node.run === run) return;
  node.run = run;
  node.classList.add("page", "wide");
  fill(
    node,
    el("h1", {}, "Time"),
    el("h2", {}, "Timeline"),
    timelines(run),
    el("h2", {}, "Phases"),
    phaseTable(run),
    el("h2", {}, "Compilations and their guards"),
    guardTable(run)
  );
}

// The timeline, and a switch between one axis for all and each compilation stretched to the whole width.
function timelines(run) {
  if (!run.phases.length) return el("p", { class: "quiet" }, "No times were recorded.");
  const box = el("div");
  const draw = () => fill(box, timeline(run, stretch.checked, deep.checked ? Infinity : SHALLOW));
  const deep = el("input", { type: "checkbox", id: "deep", onchange: draw });
  const stretch = el("input", { type: "checkbox", id: "stretch", onchange: draw });
  draw();
  return [el("div", { class: "bar" }, stretch, el("label", { for: "stretch" }, "Stretch each compilation to the whole width"), deep, el("label", { for: "deep" }, "All levels")), box];
}

function timeline(run, stretched, deepestShown) {
  const start = Math.min(...run.phases.map((each) => each.start));
  const end = Math.max(...run.phases.map((each) => each.start + each.seconds));
  const span = Math.max(end - start, 1e-9);
  const depths = [];
  run.phases.forEach((each, index) => (depths[index] = each.parent === null || each.parent >= index ? 0 : depths[each.parent] + 1));
  const groups = grouped(run.phases.map((each, index) => ({ ...each, depth: depths[index] })), (each) => each.compile_id);
  const shown = (each) => each.depth < deepestShown;
  const detail = el("p", { class: "quiet", role: "status" }, "Point at a phase, or move to it with Tab, to see how long it took.");
  const tell = (phase) => fill(detail, `${phase.compile_id || "no compile id"}  ${phase.name}${inWords(run, phase.name)}${phase.backward ? " (backward)" : ""}: ${seconds(phase.seconds)}, from ${seconds(phase.start - start)}`);
  const last = ([one], [other]) => (one === null) - (other === null); // what belongs to no compilation
  const rows = [...groups].sort(last).map(([id, list]) => {
    const from = stretched ? Math.min(...list.map((each) => each.start)) : start;
    const wide = stretched ? Math.max(...list.map((each) => each.start + each.seconds), from + 1e-9) - from : span;
    const deepest = Math.max(...list.filter(shown).map((each) => each.depth), 0);
    const bars = list.filter((each) => shown(each) && each.seconds / wide > 4e-4).map((each) =>
      el("span", {
        class: each.backward ? "phase backward" : "phase", tabindex: each.depth === 0 ? "0" : null, role: "img", "aria-label": `${each.name}, ${seconds(each.seconds)}`,
        style: { left: `${(100 * (each.start - from)) / wide}%`, width: `${(100 * each.seconds) / wide}%`, top: `${each.depth * ROW}px`, "--shade": String(Math.min(each.depth, 5)) },
        onmouseenter: () => tell(each), onfocus: () => tell(each),
      }, each.seconds / wide > 0.03 ? each.name : null)
    );
    return el("div", { class: "track" }, el("span", { class: "label", title: id ? run.titleOf(id) : null }, id ? chip(run, id) : "other"), el("div", { class: "bars", style: { height: `${(deepest + 1) * ROW}px` } }, bars));
  });
  const ticks = [0, 0.25, 0.5, 0.75, 1].map((share) => el("span", { style: { left: `${share * 100}%` } }, seconds(share * span)));
  return el("div", { class: "timeline", role: "region", "aria-label": "Timeline", tabindex: "0" }, stretched ? null : el("div", { class: "track axis" }, el("span", { class: "label" }), el("div", { class: "bars" }, ticks)), rows, detail);
}

function inWords(run, name) {
  const words = run.phaseWords[name];
  return words && words !== name ? `, ${words}` : "";
}

function phaseTable(run) {
  const inside = run.phases.map(() => 0);
  run.phases.forEach((each) => each.parent !== null && (inside[each.parent] += each.seconds));
  const names = grouped(run.phases.map((each, index) => ({ ...each, own: Math.max(0, each.seconds - inside[index]) })), (each) => each.name);
  const sum = (list, key) => list.reduce((total, each) => total + each[key], 0);
  const rows = [...names].map(([name, list]) => [name, list.length, sum(list, "seconds"), sum(list, "own")]);
  rows.sort((one, other) => other[2] - one[2]);
  const number = (text) => ({ text, number: true });
  return tableOf(
    "Phases over all compilations",
    ["Phase", "What it is", number("Times"), number("Altogether"), number("Without the phases inside")],
    rows.map(([name, times, total, own]) => [el("span", { title: name }, shortened(name, 60)), inWords(run, name).slice(2), times, seconds(total), seconds(own)])
  );
}

function guardTable(run) {
  const number = (text) => ({ text, number: true });
  const blank = (value) => (value === null ? "" : value);
  return tableOf(
    "Each compilation: time, calls, and its guards",
    ["Compile id", "Function", "Status", number("Forward"), number("Backward"), number("Runs"), number("Guards"), number("Check takes"), number("Did not hold"), "Caches", "Dynamic sizes"],
    run.compilations.map((each) => [
      () => el("a", { href: each.transformed ? address("stages", [each.transformed], {}, run) : "#time" }, chip(run, each.compile_id)),
      () => el("span", { title: each.failure || null }, each.function === null ? "" : shortened(run.nameOf(each.function), 50)),
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
