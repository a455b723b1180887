// Guards: what each cache entry checks on every call, in groups a person can read, with what checking costs.

VIEWS.push({ id: "guards", title: "Guards", show: showGuards });

// The first that fits: a test of PyTorch's kind and of the value that is looked at.
const GUARD_GROUPS = [
  ["Tensors", "type, device, dtype, sizes and strides of tensors, and which share memory", (kind) => /^(TENSOR_|NO_TENSOR_|OBJECT_ALIASING|STORAGE_OVERLAPPING|DISPATCH_KEY|DYNAMIC_INDICES|DATA_PTR)/.test(kind)],
  ["Sizes", "relations of symbolic sizes", (kind) => /^(SYMBOLIC_SHAPE|SHAPE_ENV)/.test(kind)],
  ["Marked dimensions", "dimensions that the program marked as dynamic, or that nothing is marked", (kind) => /^DIMENSION_/.test(kind)],
  ["State of PyTorch", "grad mode, autocast, default device and dtype, modes and hooks that are on", (kind, source, text) => /^(GLOBAL_STATE|TORCH_FUNCTION|DEFAULT_DEVICE|DUAL_LEVEL)/.test(kind) || (!source && /saved_tensors_hooks|___check_|device/.test(text))],
  ["Module structure", "classes, hooks and attributes of modules", (kind, source) => /_modules\[|_parameters|_buffers|__dict__|_hooks\b/.test(source)],
  ["Lengths and keys", "of containers and iterators", (kind) => /LENGTH|LEN$|CONTAINS|KEYS|DICT_VERSION|ITERATOR|NO_HASATTR/.test(kind)],
  ["Functions and classes", "that the program calls, and classes of objects", (kind) => /^(TYPE_|ID_|FAKE_SCRIPT)/.test(kind)],
  ["Values", "numbers, strings, flags and None", (kind) => /EQUALS|NONE|TRUE|FALSE|IS_NAN/.test(kind)],
  ["Conditions", "everything else", () => true],
];

const GUARD_WORDS = {
  DEFAULT_DEVICE: "default device", DICT_CONTAINS: "has this key", DICT_LENGTH: "number of keys", DICT_VERSION: "not changed",
  DIMENSION_DYNAMIC_MARKING_GUARD: "marks of dimensions", DYNAMIC_INDICES: "marks of dimensions", EQUALS_MATCH: "value", FALSE_MATCH: "is False",
  ID_MATCH: "the same object", LENGTH_CHECK: "length", MAPPING_KEYS_MATCH: "keys in their order", NONE_MATCH: "is None", NOT_NONE: "is not None",
  NO_HASATTR: "lacks this attribute", NO_TENSOR_ALIASING: "no tensor twice", OBJECT_ALIASING: "the same object twice", SET_CONTAINS: "has this item",
  STORAGE_OVERLAPPING: "overlap in memory", SYMBOLIC_SHAPE_GUARD: "relation of sizes", TENSOR_ALIASING: "the same tensor twice", TENSOR_MATCH: "properties of a tensor",
  TRUE_MATCH: "is True", TYPE_MATCH: "class", GLOBAL_STATE: "global state", TORCH_FUNCTION_MODE_STACK: "torch function modes", DUAL_LEVEL_MATCH: "forward-mode level",
};

// PyTorch's name of a value as the program writes it: L['self']._modules['up'] is self.up.
function written(source) {
  return source
    .replace(/\b[LG]\['([^'\\]+)'\]/g, "$1")
    .replace(/\.(?:_modules|_parameters|_buffers)\['(\d+)'\]/g, "[$1]")
    .replace(/\.(?:_modules|_parameters|_buffers)\['([^'\\]+)'\]/g, ".$1");
}

const groupOf = (guard) => GUARD_GROUPS.findIndex(([, , fits]) => fits(guard.kind, guard.source, guard.text));

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
    GUARD_GROUPS.map((group, at) => guardGroup(run, shown, group, at)),
  ]);
}

function guardSummary(run, entries) {
  const sums = GUARD_GROUPS.map(() => 0);
  for (const each of entries) for (const guard of each.guards) sums[groupOf(guard)] += 1;
  const tile = (number, name) => el("li", {}, el("span", { class: "tile" }, el("strong", {}, number.toLocaleString("en")), el("span", {}, name)));
  return el("ul", { class: "tiles", "aria-label": "Guards of all cache entries" }, sums.map((number, at) => (number ? tile(number, GUARD_GROUPS[at][0]) : null)));
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
  const guards = one.guards.filter((guard) => groupOf(guard) === at);
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
      el("code", {}, shortened(written(guard.source) || "–", 80)),
      el("span", { title: guard.kind }, GUARD_WORDS[guard.kind] || (guard.source ? guard.kind : "condition")),
      el("details", {}, el("summary", { title: text }, el("code", { class: "quiet" }, shortened(guard.text, 70)), same.length > 1 ? ` and ${same.length - 1} more` : ""), el("code", { class: "told" }, text)),
      guard.place ? place(run, guard.place) : "",
    ];
  });
  const table = tableOf("Guards of this group", ["Value", "What of it", "PyTorch's text", "Because of"], rows);
  const more = alike.length - rows.length;
  return more > 0 ? [table, el("p", { class: "quiet" }, `and ${more.toLocaleString("en")} more, in the full code and the manifest`)] : table;
}
