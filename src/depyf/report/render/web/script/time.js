// Time: what compiling took, phase by phase, and what guards cost on every call.

VIEWS.push({ id: "time", title: "Time", show: showTime });

const ROW = 25;
const SHALLOW = 5; // levels of phases that are shown at first; a phase that is called as the one around it is a part of that

function showTime({ run }, node) {
  if (node.run === run) return;
  node.run = run;
  node.classList.add("page", "wide");
  const phases = nested(run);
  fill(
    node,
    el("h1", {}, "Time"),
    phases.length ? [el("h2", {}, "Where it went"), partTable(run)] : null,
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
    const shown = { chosen, stretched: stretch.checked && !chosen, all: deep.checked || Boolean(chosen) };
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
    el("div", { class: "bar" }, el("label", {}, stretch, "Stretch each compilation to the whole width"), el("label", {}, deep, "All levels"), whole,
    el("button", { type: "button", onclick: () => saveTrace() }, "Save for Perfetto")), box);
}

// The phases with their depths, the time that none of the phases inside of them took, and what they are called: in words,
// or as PyTorch calls them where the phase around has the same words. Those are ``folded`` at first: ``level`` and
// ``ownShown`` are depth and time without them. An outermost one, most of which phases inside took, has a name for the whole.
function nested(run) {
  const all = run.phases.map((each) => {
    const words = run.phaseWords[each.name] || each.name;
    return { ...each, end: each.start + each.seconds, own: each.seconds, depth: 0, level: 0, folded: false, within: new Set(), words, called: words };
  });
  all.forEach((each, index) => {
    const outer = each.parent === null || each.parent >= index ? null : all[each.parent];
    const around = outer && outer.compile_id === each.compile_id ? outer : null; // a track has one compilation
    each.root = around ? around.root : each;
    if (outer) outer.own = Math.max(0, outer.own - each.seconds);
    if (!around) return;
    each.folded = around.words === each.words;
    each.depth = around.depth + 1;
    each.level = around.level + (each.folded ? 0 : 1);
    if (each.folded) each.called = each.name;
    each.within = new Set([...around.within, around.name]);
  });
  for (const each of all) each.ownShown = each.own;
  for (const each of [...all].reverse()) if (each.folded) all[each.parent].ownShown += each.ownShown;
  for (const each of all) if (!each.depth && each.ownShown < each.seconds / 2) each.words = each.called = each.backward ? "the whole backward" : "the whole compilation";
  return all;
}

// Not Math.min(...values): engines take some hundred thousand arguments at most.
const least = (items, key) => items.reduce((found, each) => Math.min(found, each[key]), Infinity);
const most = (items, key) => items.reduce((found, each) => Math.max(found, each[key]), -Infinity);

function timeline(run, phases, { chosen, stretched, all }, zoom) {
  const start = least(phases, "start");
  const from = chosen ? chosen.start : start;
  const span = Math.max((chosen ? chosen.end : most(phases, "end")) - from, 1e-9);
  const level = all ? "depth" : "level";
  const drawn = phases.filter((each) => (all || (!each.folded && each.level < SHALLOW)) && each.start < from + span && each.end > from);
  const detail = el("p", { class: "quiet", role: "status" }, "Point at a phase, or move to it with Tab, to see how long it took; click it, or press Enter, to enlarge it.");
  const tell = (phase) => fill(detail, `${phase.compile_id || "no compile id"}  ${phase.name}${inWords(run, phase.name)}${phase.backward ? " (backward)" : ""}: ${seconds(phase.seconds)}, from ${seconds(phase.start - start)}; ${seconds(phase.own)} in no phase inside of it`);
  const bar = (each, left, wide, top) => {
    const part = Math.min(each.end, left + wide) - Math.max(each.start, left); // what of it is on the axis
    if (part / wide <= 4e-4) return null;
    return el("button", {
      type: "button", class: each.backward ? "phase backward" : "phase", tabindex: each.depth === 0 || chosen ? null : "-1", "aria-label": `${each.name}, ${seconds(each.seconds)}`,
      style: { left: `${(100 * (Math.max(each.start, left) - left)) / wide}%`, width: `${(100 * part) / wide}%`, top: `${(each[level] + top) * ROW}px`, "--own": String((all ? each.own : each.ownShown) / Math.max(each.seconds, 1e-9)) },
      onmouseenter: () => tell(each), onfocus: () => tell(each), onclick: () => zoom(each),
    }, readable(part / wide) ? (all ? each.called : each.words) : null);
  };
  const row = (label, levels, bars) => el("div", { class: "track" }, label, el("div", { class: "bars", style: { height: `${levels * ROW}px` } }, bars));
  const last = ([one], [other]) => (one === null) - (other === null); // what belongs to no compilation
  const apart = () => [...grouped(drawn, (each) => each.compile_id)].sort(last).map(([id, list]) => {
    const left = least(list, "start");
    const wide = Math.max(most(list, "end"), left + 1e-9) - left;
    const label = el("span", { class: "label", title: aboutTrack(run, id) }, id ? chip(run, id) : IN_NONE, isCached(run, id) ? el("small", {}, " cached") : null);
    return row(label, most(list, level) + 1, list.map((each) => bar(each, left, wide, 0)));
  });
  const packed = () => lanesOf(drawn).map((lane) => row(null, 2 + most(lane.flatMap((each) => each.phases), level), lane.map((stretch) => [
    trackName(run, stretch, from, span), stretch.phases.map((each) => bar(each, from, span, 1)),
  ])));
  const ticks = ticksOf(from - start, span).map((at) => {
    const share = (at - from + start) / span;
    return el("span", { class: share < 0.03 ? "first" : share > 0.97 ? "last" : null, style: { left: `${100 * share}%` } }, seconds(at).replace(/\.0+ /, " "));
  });
  return el("div", { class: "timeline", role: "region", "aria-label": chosen ? `Timeline of ${chosen.name}` : "Timeline", tabindex: "0" },
    stretched ? null : el("div", { class: "track axis" }, el("div", { class: "bars" }, ticks)), stretched ? apart() : packed(), detail);
}

// Whether a part of the width has room for a word.
const readable = (share) => share * innerWidth > 56;

// Round times on an axis, three to seven.
function ticksOf(from, span) {
  const magnitude = 10 ** Math.floor(Math.log10(span / 6));
  const step = magnitude * [1, 2, 2.5, 5, 10].find((each) => each * magnitude >= span / 6);
  const round = [];
  for (let at = Math.ceil(from / step); at * step <= from + span; at += 1) round.push(at * step);
  return round;
}

// Phases of one compilation after each other, until those of another one begin, are a stretch; stretches that do not
// overlap share a lane. What belongs to no compilation comes last.
function lanesOf(phases) {
  const stretches = [];
  for (const part of [phases.filter((each) => each.compile_id !== null), phases.filter((each) => each.compile_id === null)]) {
    const roots = [...grouped(part, (each) => each.root)].sort(([one], [other]) => one.start - other.start);
    let open = null;
    for (const [root, inside] of roots) {
      if (!open || open.id !== root.compile_id || (root.compile_id === null && root.start < open.end)) stretches.push((open = { id: root.compile_id, start: root.start, end: root.end, phases: [] }));
      open.end = Math.max(open.end, root.end);
      for (const each of inside) open.phases.push(each);
    }
  }
  const lanes = [];
  for (const stretch of stretches) {
    const lane = lanes.find((each) => (each[0].id === null) === (stretch.id === null) && each[each.length - 1].end <= stretch.start + 1e-9);
    if (lane) lane.push(stretch);
    else lanes.push([stretch]);
  }
  return lanes;
}

const isCached = (run, id) => Boolean(id) && Object.values((run.compilation.get(id) || { cache: {} }).cache).includes("hit");
const aboutTrack = (run, id) => (id ? `${run.titleOf(id)}${isCached(run, id) ? ", from a cache of PyTorch's" : ""}` : "PyTorch does not say for which compilation");
const IN_NONE = "beside the compilations"; // compilers in other processes, say

// What a stretch is called, above its phases; it leads to all about the compilation.
function trackName(run, { id, start, end }, from, span) {
  const [left, right] = [Math.max(start, from), Math.min(end, from + span)];
  const style = { left: `${(100 * (left - from)) / span}%`, width: `${(100 * (right - left)) / span}%`, "--graph": id && run.colours.has(id) ? `var(--g${run.colours.get(id)})` : null };
  const text = id ? `${run.titleOf(id)}${isCached(run, id) ? ", cached" : ""}` : IN_NONE;
  const named = readable((right - left) / span);
  return el(id && named ? "a" : "span", { class: "whose", href: id && named ? address("compilations", [id], {}, run) : null, title: aboutTrack(run, id), style }, named ? text : null);
}

function inWords(run, name) {
  const words = run.phaseWords[name];
  return words && words !== name ? `, ${words}` : "";
}

function phaseTable(run, phases) {
  const names = grouped(phases, (each) => each.name);
  const sum = (list, key) => list.reduce((total, each) => total + each[key], 0);
  const outer = (list) => list.filter((each) => !each.within.has(each.name)); // a phase in one of its own name counts once
  const rows = [...names].map(([name, list]) => [name, list.length, sum(outer(list), "seconds"), sum(list, "own")]);
  rows.sort((one, other) => other[2] - one[2]);
  return tableOf(
    "Phases over all compilations",
    ["Phase", "What it is", ...["Times", "Altogether", "Without the phases inside"].map((text, column) => numeric(text, (at) => rows[at][column + 1]))],
    rows.map(([name, times, total, own]) => [el("span", { title: name }, shortened(name, 60)), inWords(run, name).slice(2), times, seconds(total), seconds(own)]),
    { most: MOST_PHASES }
  );
}

const MOST_PARTS = 8;
const MOST_PHASES = 15;
const MOST_ENTRIES = 100;

// The share of the compile time; "" of what is more than all of it, where several processes compile at the same time.
function shareOf(run, part) {
  const total = timeOf(run.totals);
  return total > 0 && part <= total ? `${part < total / 200 ? "< 1" : Math.round((100 * part) / total)} %` : "";
}

// What the time went into, in words: phases of one kind together, without the phases inside of them.
function partTable(run) {
  const most = run.timeParts[0][1] || 1;
  return tableOf(
    "Where the compile time went",
    ["What", numeric("Time"), numeric("Share"), ""],
    run.timeParts.slice(0, MOST_PARTS).map(([words, part]) => [
      shortened(words, 80), seconds(part), shareOf(run, part),
      el("span", { class: "share", style: { width: `${(100 * part) / most}%` } }),
    ]),
    { narrow: true }
  );
}

function guardTable(run) {
  const blank = (value) => (value === null ? "" : value);
  const of = (key) => (at) => run.compilations[at][key];
  return filledTableOf(
    "Each compilation: time, calls, and its guards",
    [
      "Id", { text: "Function", by: (at) => run.titleOf(run.compilations[at].compile_id).slice(run.compilations[at].compile_id.length) },
      numeric("Forward", of("seconds")), numeric("Backward", of("backward_seconds")), numeric("Runs", of("runs")),
      numeric("Guards", (at) => run.compilations[at].guards.length), numeric("Checking them takes", of("guard_latency")), numeric("They failed", of("guard_failures")),
    ],
    run.compilations.map((each) => [
      () => compilationLink(run, each.compile_id),
      each.function === null ? "" : shortened(run.nameOf(each.function), 60),
      seconds(each.seconds),
      seconds(each.backward_seconds),
      blank(each.runs),
      digits(each.guards.length),
      seconds(each.guard_latency),
      blank(each.guard_failures),
    ]),
    { most: MOST_ENTRIES }
  );
}

// Phases and profiled calls as ``depyf report --perfetto`` writes them: the JSON of ui.perfetto.dev and chrome://tracing.
function perfettoTrace() {
  const since = (run, phase) => (Number(run.started) || 0) + phase.start;
  const first = least(RUNS.flatMap((run) => run.phases.map((phase) => ({ at: since(run, phase) }))), "at");
  const events = [];
  const thread = (pid, tid, name) => events.push({ ph: "M", pid, tid, name: "thread_name", args: { name } });
  const span = (pid, tid, name, start, length, args) => {
    const [ts, dur] = [micro(start), micro(Math.max(0, length))];
    if (Number.isFinite(ts) && Number.isFinite(dur)) events.push({ ph: "X", pid, tid, name, cat: "torch.compile", ts, dur, args });
  };
  RUNS.forEach((run, pid) => {
    const threads = new Map();
    events.push({ ph: "M", pid, name: "process_name", args: { name: runName(run) } });
    for (const phase of run.phases) {
      const { name, compile_id: id, backward } = phase;
      const lane = `${id} ${backward}`;
      if (!threads.has(lane)) {
        threads.set(lane, threads.size + 1);
        const own = run.functions[run.compilation.get(id)?.function];
        const title = `${id || "no compile id"}${own ? ` ${own.qualified_name}` : ""}${backward ? " (backward)" : ""}`;
        thread(pid, threads.get(lane), title);
      }
      const args = { what: run.phaseWords[name] || name, ...(id === null ? {} : { compile_id: id }) };
      span(pid, threads.get(lane), name, since(run, phase) - first, phase.seconds, args);
    }
  });
  let pid = RUNS.length;
  for (const run of RUNS) for (const timing of run.timings) if (timing.timeline.length) {
    events.push({ ph: "M", pid, name: "process_name", args: { name: `${runName(run)}: one call of ${timing.function}, profiled` } });
    tracedCall(run, timing, thread.bind(null, pid), span.bind(null, pid));
    pid += 1;
  }
  return { otherData: { generator: "depyf" }, displayTimeUnit: "ms", traceEvents: events };
}

const micro = (value) => Math.round(value * 1e9) / 1e3;

// One profiled call: its source lines, and what ran on each thread and on the device.
function tracedCall(run, timing, thread, span) {
  const threads = new Map([["source lines", 1]]);
  thread(1, "source lines");
  for (const { where } of timing.timeline) if (!threads.has(where)) {
    threads.set(where, threads.size + 1);
    thread(threads.get(where), where);
  }
  const at = (place) => run.placeText(place);
  const texts = (places) => places.map((each) => [at(each), run.code(each).trim()].filter(Boolean).join(": "));
  for (const { places, start, end } of linesInTime(timing)) span(1, places.length === 1 ? texts(places)[0] : places.map(at).join(", "), start, end - start, { lines: texts(places) });
  for (const { name, what, where, start, seconds: length, graph, backward, places } of timing.timeline) {
    const args = { what, ...(graph ? { graph: backward ? `${graph}, backward` : graph } : {}), ...(places.length ? { lines: texts(places) } : {}) };
    span(threads.get(where), name, start, length, args);
  }
}

// The lines that compute, with begin and end. Neighbours in time with the same lines are one. Where kernels ran on a
// device, only the lines of device kernels count.
function linesInTime(timing) {
  const ran = timing.timeline.filter((each) => each.places.length || !["guards", "calling"].includes(each.what));
  const ofDevice = ran.filter((each) => each.where === timing.device);
  const found = [];
  let open = null;
  for (const { places, start, seconds: length } of ofDevice.length ? ofDevice : ran) {
    if (open && String(open.places) === String(places)) {
      open.end = Math.max(open.end, start + length);
      continue;
    }
    if (open) open.end = Math.min(open.end, start);
    open = { places, start, end: start + length };
    found.push(open);
  }
  return found.filter((each) => each.places.length);
}

function saveTrace() {
  const url = URL.createObjectURL(new Blob([JSON.stringify(perfettoTrace())], { type: "application/json" }));
  el("a", { href: url, download: "torch_compile.perfetto.json" }).click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}
