// Time: what compiling took, phase by phase, and what guards cost on every call.

VIEWS.push({ id: "time", title: "Time", show: showTime });

const ROW = 18;
const SHALLOW = 5; // levels of phases that are shown at first

function showTime({ run }, node) {
  if (node.run === run) return;
  node.run = run;
  node.classList.add("page", "wide");
  const phases = nested(run);
  fill(
    node,
    el("h1", {}, "Time"),
    el("h2", {}, "Timeline"),
    timelines(run, phases),
    el("h2", {}, "Phases"),
    phaseTable(run, phases),
    el("h2", {}, "Compilations and their guards"),
    guardTable(run)
  );
}

// The timeline: one axis for all compilations, or each stretched to the whole width, or one phase that was chosen.
function timelines(run, phases) {
  if (!run.phases.length) return el("p", { class: "quiet" }, "No times were recorded.");
  const box = el("div");
  const whole = el("button", { type: "button", onclick: () => zoom(null) }, "Show the whole run");
  let chosen = null;
  const draw = () => {
    const shown = { chosen, stretched: stretch.checked && !chosen, deepest: deep.checked || chosen ? Infinity : SHALLOW };
    fill(box, timeline(run, phases, shown, zoom));
    whole.hidden = !chosen;
  };
  const zoom = (phase) => {
    if (phase === chosen) return;
    chosen = phase;
    draw();
    (phase ? whole : box.querySelector(".timeline")).focus();
  };
  const deep = el("input", { type: "checkbox", id: "deep", onchange: draw });
  const stretch = el("input", { type: "checkbox", id: "stretch", onchange: draw });
  draw();
  return el("div", { onkeydown: (event) => event.key === "Escape" && zoom(null) },
    el("div", { class: "bar" }, stretch, el("label", { for: "stretch" }, "Stretch each compilation to the whole width"), deep, el("label", { for: "deep" }, "All levels"), whole), box);
}

// The phases with their depths, the time that none of the phases inside of them took, and what they are called: in words,
// or as PyTorch calls them where the phase around has the same words.
function nested(run) {
  const all = run.phases.map((each) => ({ ...each, end: each.start + each.seconds, own: each.seconds, depth: 0, called: run.phaseWords[each.name] || each.name }));
  all.forEach((each, index) => {
    if (each.parent === null || each.parent >= index) return;
    each.depth = all[each.parent].depth + 1;
    if ((run.phaseWords[run.phases[each.parent].name] || "") === each.called) each.called = each.name;
    all[each.parent].own = Math.max(0, all[each.parent].own - each.seconds);
  });
  return all;
}

// Not Math.min(...values): engines take some hundred thousand arguments at most.
const least = (items, key) => items.reduce((found, each) => Math.min(found, each[key]), Infinity);
const most = (items, key) => items.reduce((found, each) => Math.max(found, each[key]), -Infinity);

function timeline(run, phases, { chosen, stretched, deepest }, zoom) {
  const start = least(phases, "start");
  const from = chosen ? chosen.start : start;
  const span = Math.max((chosen ? chosen.end : most(phases, "end")) - from, 1e-9);
  const shown = phases.filter((each) => each.depth < deepest && each.start < from + span && each.end > from);
  const detail = el("p", { class: "quiet", role: "status" }, "Point at a phase, or move to it with Tab, to see how long it took; click it, or press Enter, to enlarge it.");
  const tell = (phase) => fill(detail, `${phase.compile_id || "no compile id"}  ${phase.name}${inWords(run, phase.name)}${phase.backward ? " (backward)" : ""}: ${seconds(phase.seconds)}, from ${seconds(phase.start - start)}; ${seconds(phase.own)} in no phase inside of it`);
  const last = ([one], [other]) => (one === null) - (other === null); // what belongs to no compilation
  const rows = [...grouped(shown, (each) => each.compile_id)].sort(last).map(([id, list]) => {
    const left = stretched ? least(list, "start") : from;
    const wide = stretched ? Math.max(most(list, "end"), left + 1e-9) - left : span;
    const part = (each) => Math.min(each.end, left + wide) - Math.max(each.start, left); // what of it is on the axis
    const levels = most(list, "depth");
    const bars = list.filter((each) => part(each) / wide > 4e-4).map((each) =>
      el("button", {
        type: "button", class: each.backward ? "phase backward" : "phase", tabindex: each.depth === 0 || chosen ? null : "-1", "aria-label": `${each.name}, ${seconds(each.seconds)}`,
        style: { left: `${(100 * (Math.max(each.start, left) - left)) / wide}%`, width: `${(100 * part(each)) / wide}%`, top: `${each.depth * ROW}px`, "--own": String(each.own / Math.max(each.seconds, 1e-9)) },
        onmouseenter: () => tell(each), onfocus: () => tell(each), onclick: () => zoom(each),
      }, part(each) / wide > 0.03 ? each.called : null)
    );
    const cached = id && Object.values((run.compilation.get(id) || { cache: {} }).cache).includes("hit");
    return el("div", { class: "track" },
      el("span", { class: "label", title: id ? `${run.titleOf(id)}${cached ? ", from a cache of PyTorch's" : ""}` : null }, id ? chip(run, id) : "other", cached ? el("small", {}, " cached") : null),
      el("div", { class: "bars", style: { height: `${(levels + 1) * ROW}px` } }, bars));
  });
  const ticks = [0, 0.25, 0.5, 0.75, 1].map((share) => el("span", { style: { left: `${share * 100}%` } }, seconds(from - start + share * span)));
  return el("div", { class: "timeline", role: "region", "aria-label": chosen ? `Timeline of ${chosen.name}` : "Timeline", tabindex: "0" },
    stretched ? null : el("div", { class: "track axis" }, el("span", { class: "label" }), el("div", { class: "bars" }, ticks)), rows, detail);
}

function inWords(run, name) {
  const words = run.phaseWords[name];
  return words && words !== name ? `, ${words}` : "";
}

function phaseTable(run, phases) {
  const names = grouped(phases, (each) => each.name);
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
