// Guards: what each cache entry checks on every call, in groups a person can read, with what checking costs.

VIEWS.push({ id: "guards", title: "Guards", show: showGuards });

function showGuards({ run, parts }, node) {
  node.classList.add("page", "wide");
  const entries = run.compilations.filter((each) => each.guards.length);
  const wanted = parts.length > 1 ? parts.slice(0, 2).join("/") : parts[0];
  const shown = entries.find((each) => each.compile_id === wanted) || entries[0];
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
    guardSummary(run, entries),
    el("div", { class: "bar" }, el("label", { for: "guards-pick" }, "Cache entry"), el("select", { id: "guards-pick", onchange: (event) => (location.hash = event.target.value) }, options)),
    aboutEntry(run, shown),
    run.guardGroups.map((group, at) => guardGroup(run, shown, group, at)),
  ]);
}

function guardSummary(run, entries) {
  const sums = run.guardGroups.map(() => 0);
  for (const each of entries) for (const guard of each.guards) sums[guard.group] += 1;
  const tile = (number, name) => el("li", {}, el("span", { class: "tile" }, el("strong", {}, number.toLocaleString("en")), el("span", {}, name)));
  return el("ul", { class: "tiles", "aria-label": "Guards of all cache entries" }, sums.map((number, at) => (number ? tile(number, run.guardGroups[at][0]) : null)));
}

function aboutEntry(run, one) {
  const facts = [
    count(one.guards.length, "guard"),
    one.guard_latency !== null ? `checking takes ${seconds(one.guard_latency)}` : "",
    one.guard_failures !== null ? `did not hold ${count(one.guard_failures, "time")}` : "",
  ];
  return el("p", {}, chip(run, one.compile_id), " ", facts.filter(Boolean).join(", "));
}

// A group is made into lines when it is opened: an entry may have thousands of guards.
function guardGroup(run, one, [name, what], at) {
  const guards = one.guards.filter((guard) => guard.group === at);
  if (!guards.length) return null;
  const box = el("div");
  const section = el("details", { class: "guards", ontoggle: () => section.open && !box.firstChild && add(box, [guardTableOf(run, guards)]) },
    el("summary", {}, el("strong", {}, name), " ", el("b", { class: "number" }, guards.length.toLocaleString("en")), " ", el("span", { class: "quiet" }, what)), box);
  if (guards.length <= 12) section.open = true;
  if (section.open) add(box, [guardTableOf(run, guards)]);
  return section;
}

const MOST_GUARDS = 500;

function guardTableOf(run, guards) {
  const alike = [...grouped(guards, (guard) => `${guard.source}\n${guard.kind}\n${guard.source ? "" : guard.text}\n${guard.place}`).values()];
  const rows = alike.slice(0, MOST_GUARDS).map((same) => {
    const [guard] = same;
    const text = same.map((each) => each.text).join("\n");
    return [
      el("code", {}, shortened(run.written(guard.source) || "–", 80)),
      el("span", { title: guard.kind }, run.guardKinds[guard.kind] || (guard.source ? guard.kind : "condition")),
      el("details", {}, el("summary", { title: text }, el("code", { class: "quiet" }, shortened(guard.text, 70)), same.length > 1 ? ` and ${same.length - 1} more` : ""), el("code", { class: "told" }, text)),
      guard.place ? place(run, guard.place) : "",
    ];
  });
  const table = tableOf("Guards of this group", ["Value", "What of it", "PyTorch's text", "Because of"], rows);
  const more = alike.length - rows.length;
  return more > 0 ? [table, el("p", { class: "quiet" }, `and ${more.toLocaleString("en")} more, in the full code and the manifest`)] : table;
}
