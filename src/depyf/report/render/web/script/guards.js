// Guards: what each cache entry checks on every call, in groups with names, and the cost of checking.

VIEWS.push({ id: "guards", title: "Guards", show: showGuards });

function showGuards({ run, parts }, node) {
  node.classList.add("page", "wide");
  const entries = run.compilations.filter((each) => each.guards.length);
  const wanted = parts.length > 1 ? parts.slice(0, 2).join("/") : parts[0];
  const own = (each) => each.function === null || !run.sources[run.functions[each.function].source].library;
  const shown = entries.find((each) => each.compile_id === wanted) || entries.find(own) || entries[0];
  fill(node, el("h1", {}, "Guards"));
  if (!shown) {
    add(node, [el("p", { class: "quiet" }, "No guards were recorded.")]);
    return;
  }
  const options = entries.map((each) =>
    el("option", { value: address("guards", [each.compile_id], {}, run), selected: each === shown }, `${shortened(run.titleOf(each.compile_id), 80)}: ${count(each.guards.length, "guard")}`)
  );
  add(node, [
    el("p", { class: "quiet" }, "A cache entry is used where all of its guards hold. They are checked on every call, entry by entry, until one fits."),
    guardSummary(run, entries, shown),
    el("div", { class: "bar" }, el("label", { for: "guards-pick" }, "Cache entry"), el("select", { id: "guards-pick", onchange: (event) => (location.hash = event.target.value) }, options)),
    aboutEntry(run, shown),
    run.guardGroups.map((group, at) => guardGroup(run, shown, group, at)),
  ]);
}

function guardSummary(run, entries, shown) {
  const sums = run.guardGroups.map(() => 0);
  for (const each of entries) for (const guard of each.guards) sums[guard.group] += 1;
  const tile = (number, name, at) => el("li", {}, el("button", { type: "button", class: "tile", onclick: () => showGroup(run, entries, shown, at) }, el("strong", {}, digits(number)), el("span", {}, name)));
  return el("ul", { class: "tiles", "aria-label": "Guards of all cache entries" }, sums.map((number, at) => (number ? tile(number, run.guardGroups[at][0], at) : null)));
}

// Opens a group: in the shown entry, or else in the first entry with guards of the group.
function showGroup(run, entries, shown, at) {
  const has = (each) => each.guards.some((guard) => guard.group === at);
  const entry = has(shown) ? shown : entries.find(has);
  if (entry !== shown) showGuards({ run, parts: [entry.compile_id] }, document.querySelector(".view-guards"));
  const group = document.getElementById(`guards-group-${at}`);
  group.open = true;
  group.scrollIntoView({ block: "nearest" });
  group.querySelector("summary").focus();
}

function aboutEntry(run, one) {
  const facts = [
    count(one.guards.length, "guard"),
    one.guard_latency !== null ? `checking takes ${seconds(one.guard_latency)}` : "",
    one.guard_failures === null ? "" : one.guard_failures === 0 ? "never failed" : `failed ${one.guard_failures === 1 ? "once" : count(one.guard_failures, "time")}`,
  ];
  const tree = (run.byCompilation.get(one.compile_id) || []).find((each) => each.kind === "guards"); // of a log
  return el("p", {}, compilationLink(run, one.compile_id), " ", facts.filter(Boolean).join(", "), tree ? [", ", artifactLink(run, tree, "PyTorch's tree of them")] : null);
}

// A group is made into lines when it is opened: an entry may have thousands of guards.
function guardGroup(run, one, [name, what], at) {
  const guards = one.guards.filter((guard) => guard.group === at);
  if (!guards.length) return null;
  const box = el("div");
  const section = el("details", { class: "guards", id: `guards-group-${at}`, ontoggle: () => section.open && !box.firstChild && add(box, [guardTableOf(run, guards)]) },
    el("summary", {}, el("strong", {}, name), " ", el("b", { class: "number" }, digits(guards.length)), " ", el("span", { class: "quiet" }, what)), box);
  if (guards.length <= 12) section.open = true;
  if (section.open) add(box, [guardTableOf(run, guards)]);
  return section;
}

// A row for the guards of one kind on one value, because of one line.
function guardTableOf(run, guards) {
  const alike = [...grouped(guards, (guard) => `${guard.source}\n${guard.kind}\n${guard.source ? "" : guard.text}\n${guard.place}`).values()];
  const rows = alike.map((same) => {
    const [guard] = same;
    const texts = same.map((each) => each.text);
    return [
      () => el("code", {}, shortened(run.written(guard.source) || run.guardKinds[guard.kind] || "–", 80)),
      () => el("span", { title: run.guardKinds[guard.kind] || guard.kind }, requirementOf(run, same)),
      () => el("details", {}, el("summary", { title: texts.join("\n") }, el("code", { class: "quiet" }, shortened(guard.text, 60)), same.length > 1 ? ` and ${same.length - 1} more` : ""), el("code", { class: "told" }, texts.join("\n"))),
      guard.place ? () => place(run, guard.place) : "",
    ];
  });
  return filledTableOf("Guards of this group", ["Value", "Requirement", "PyTorch's text", "Because of"], rows);
}

const MOST_REQUIRED = 3;

// What guards on one value require, each once; of an unknown form PyTorch's text says it.
function requirementOf(run, guards) {
  const found = [...new Set(guards.map((each) => each.required || run.guardKinds[each.kind] || "").filter(Boolean))];
  const more = found.length - MOST_REQUIRED;
  return shortened(found.slice(0, MOST_REQUIRED).join(", "), 160) + (more > 0 ? ` and ${more} more` : "");
}
