// Layers: the operations of a graph by the modules that they were called in, with their kernels; layers that repeat are
// compared with the one before. What is inside of a module is made when it is opened.

VIEWS.push({ id: "layers", title: "Layers", show: showLayers });

function showLayers({ run, parts }, node) {
  node.classList.add("page", "wide");
  const graphs = run.artifacts.filter((each) => each.modules.length);
  const graph = graphs.find((each) => each.id === parts[0]) || graphs.find((each) => each.backward !== true) || graphs[0];
  if (!graph) {
    fill(node, el("h1", {}, "Layers"), el("p", { class: "quiet" }, "No modules are known of this run."));
    return;
  }
  const options = graphs.map((each) => el("option", { value: address("layers", [each.id], {}, run), selected: each === graph }, `${stageName(each)} ${run.titleOf(each.compile_id)}`));
  const tree = new LayerTree(run, graph, parts[1] || "");
  fill(
    node,
    el("div", { class: "bar" }, el("label", { for: "layers-pick" }, "Graph"),
      el("select", { id: "layers-pick", onchange: (event) => (location.hash = event.target.value) }, options), artifactLink(run, graph, "its text")),
    el("h1", {}, "Layers"),
    el("p", { class: "quiet" }, `${summedUp(tree.total)}, by the module that they were called in. A kernel that several layers share counts for each.`),
    el("div", { class: "layers" }, tree.parts(tree.roots, [], true), tree.outside())
  );
  const wanted = node.querySelector(".layer.chosen");
  if (wanted) wanted.scrollIntoView({ block: "start" });
}

const MOST_KERNELS = 4; // of an operation
const FEW_LAYERS = 3; // that are the same
const FEW_OPERATIONS = 6; // beside modules
const isOperation = (item) => !item.flat;

class LayerTree {
  constructor(run, graph, wanted) {
    this.run = run;
    this.graph = graph;
    this.wanted = wanted; // the name of a module that is opened, with those around it
    const lines = run.text(graph).split("\n");
    this.ops = new Map(); // what is known of each node, by name, in the order of the graph
    for (const link of run.links(graph)) {
      for (const name of link.names) if (!this.ops.has(name)) this.ops.set(name, { name, line: link.last, places: link.places, ...operationIn(lines[link.last - 1] || "") });
    }
    lines.forEach((text, at) => {
      const node = /^\s+(\w+)(?:\s*:\s*(?:"[^"]*"|'[^']*'))?\s*= \S/.exec(text);
      if (node && !this.ops.has(node[1])) this.ops.set(node[1], { name: node[1], line: at + 1, places: [], ...operationIn(text) });
    });
    this.kernels = new Map();
    for (const kernel of run.kernels) {
      if (kernel.compile_id !== graph.compile_id || (kernel.backward === true) !== (graph.backward === true)) continue;
      for (const name of kernel.nodes) this.kernels.set(name, [...(this.kernels.get(name) || []), kernel]);
    }
    const modules = graph.modules.map((each, index) => ({ ...each, index, below: [] }));
    for (const each of modules) if (modules[each.parent] && each.parent < each.index) modules[each.parent].below.push(each);
    this.roots = modules.filter((each) => !modules[each.parent] || each.parent >= each.index);
    for (const each of [...modules].reverse()) this.sum(each);
    this.total = this.summed(this.roots, this.loose());
  }

  loose() {
    const inside = new Set(this.graph.modules.flatMap((each) => each.nodes));
    return [...this.ops.keys()].filter((name) => !inside.has(name) && /^\S+\(|^\w+ [^\w]/.test(this.ops.get(name).code));
  }

  summed(below, nodes) {
    const kernels = new Set(below.flatMap((each) => [...each.sum.kernels]));
    const own = nodes.filter((name) => this.ops.has(name));
    for (const name of own) for (const kernel of this.kernels.get(name) || []) kernels.add(kernel);
    return { kernels, ops: own.length + below.reduce((total, each) => total + each.sum.ops, 0) };
  }

  // What a module holds in all, and the operations in it in their order, by which equal layers are known.
  sum(module) {
    module.sum = this.summed(module.below, module.nodes);
    const own = module.nodes.map((name) => this.ops.get(name)).filter(Boolean);
    module.flat = [...own, ...module.below.flatMap((each) => each.flat)].sort((one, other) => one.line - other.line);
    module.first = module.flat.length ? module.flat[0].line : 0;
  }

  parts(modules, nodes, open) {
    const own = nodes.map((name) => this.ops.get(name)).filter(Boolean);
    const items = [...modules.filter((each) => each.flat.length), ...own];
    items.sort((one, other) => (one.first ?? one.line) - (other.first ?? other.line));
    const most = items.reduce((total, each) => total + (each.flat ? each.sum.ops : 1), 0);
    const shown = (each) => (each.flat ? this.module(each, modules, open && 2 * each.sum.ops > most) : this.operation(each));
    const same = (each) => Boolean(each.flat && this.likeBefore(each, modules)?.same);
    const parts = [];
    for (let at = 0; at < items.length; ) {
      const kind = same(items[at]) ? same : items.length > own.length && !items[at].flat ? isOperation : null;
      let end = at + 1;
      while (kind && end < items.length && kind(items[end])) end += 1;
      const few = end - at < (kind === same ? FEW_LAYERS : FEW_OPERATIONS);
      parts.push(few ? items.slice(at, end).map(shown) : this.folded(items.slice(at, end), shown));
      at = end;
    }
    return parts;
  }

  // Layers that are the same as the one before, or operations beside modules, in one line; they are made when it is opened.
  folded(items, shown) {
    const [first, last] = [items[0], items[items.length - 1]];
    const names = first.flat
      ? [el("b", {}, `${this.nameIn(first)} to ${this.nameIn(last)}`), el("span", { class: "quiet" }, ` ${items.length} layers, each the same as the one before`)]
      : el("b", {}, count(items.length, "operation"), " between them");
    const inside = el("div");
    const build = () => box.open && !inside.firstChild && add(inside, items.map(shown));
    const box = el("details", { class: "layer", ontoggle: build }, el("summary", {}, names), inside);
    box.open = items.some((each) => each.flat && `${this.wanted}.`.startsWith(`${each.name}.`));
    build();
    return box;
  }

  // The name of a module without the name of the module around it.
  nameIn(module) {
    const parent = this.graph.modules[module.parent];
    return parent && module.name.startsWith(`${parent.name}.`) ? module.name.slice(parent.name.length + 1) : module.name;
  }

  // How a layer that repeats compares with the one before; null of others.
  likeBefore(module, beside) {
    const before = beside[beside.indexOf(module) - 1];
    const repeats = before && before.type === module.type && numbered(before.name) === numbered(module.name);
    if (repeats && module.alike === undefined) module.alike = this.compared(before, module);
    return repeats ? module.alike : null;
  }

  module(module, beside, open) {
    const name = this.nameIn(module);
    const alike = this.likeBefore(module, beside);
    const inside = this.wanted.startsWith(`${module.name}.`);
    const box = el("details", { class: this.wanted && module.name === this.wanted ? "layer chosen" : "layer", ontoggle: () => build() },
      el("summary", {}, el("b", { title: module.name }, shortened(name, 80)), " ", el("span", { class: "quiet" }, shortened(module.type, 60)), " ",
        el("span", { class: "sum" }, summedUp(module.sum)), " ",
        alike ? el("span", { class: alike.same ? "quiet" : "differs" }, alike.text) : null));
    const build = () => {
      if (!box.open || box.built) return;
      box.built = true;
      add(box, [alike && !alike.same ? el("pre", { tabindex: "0", "aria-label": "How it differs from the one before" }, alike.rows) : null, el("div", { class: "inside" }, this.parts(module.below, module.nodes, open))]);
    };
    box.open = Boolean(open) || inside || module.name === this.wanted;
    build();
    return box;
  }

  // One layer against the one before: the operations and the types of their results, without names.
  compared(before, module) {
    const [one, other] = [before, module].map((each) => each.flat.map((op) => `${op.kind} ${op.type}`));
    if (one.join("\n") === other.join("\n")) return { same: true, text: `the same as ${shortened(before.name, 60)}` };
    if ([...one].sort().join("\n") === [...other].sort().join("\n")) return { same: true, text: `the same as ${shortened(before.name, 60)}, in another order` };
    const { rows, added, removed } = diffRows(one, other);
    const kinds = { add: "diff-add", drop: "diff-drop", skip: "diff-skip" };
    const signs = { add: "+ ", drop: "- ", same: "  ", skip: "" };
    return {
      same: false, text: `unlike ${shortened(before.name, 60)}: ${added} added, ${removed} removed`,
      rows: rows.map((row) => el("span", { class: `row ${kinds[row.kind] || ""}` }, signs[row.kind] + row.text)),
    };
  }

  operation(op) {
    const { run, graph } = this;
    const last = op.places[op.places.length - 1];
    return el("div", { class: "operation" },
      artifactLink(run, graph, shortened(op.name, 40), op.line), el("code", {}, shortened(op.target, 80)), el("span", { class: "quiet mono" }, shortened(op.type, 60)),
      el("span", {}, last ? place(run, last) : null),
      el("span", {}, this.kernelsOf(op.name)));
  }

  // Links to the kernels that an operation is in; calls of one library function are one, with their number.
  kernelsOf(name) {
    const same = [...grouped(this.kernels.get(name) || [], (kernel) => kernel.name).values()];
    const link = ([kernel, ...others]) => [
      el("a", { href: address("stages", [kernel.artifact, `L${kernel.first || kernel.calls[0] || 1}`], {}, this.run), class: "kernel" }, shortened(kernel.name, 50)),
      others.length ? ` ${others.length + 1} times ` : " ",
    ];
    return [same.slice(0, MOST_KERNELS).map(link), same.length > MOST_KERNELS ? `and ${same.length - MOST_KERNELS} more` : ""];
  }

  outside() {
    const names = this.loose();
    if (!names.length) return null;
    const module = { name: "outside of all modules", type: "", parent: null, below: [], nodes: names };
    this.sum(module);
    return this.module(module, [], false);
  }
}

const summedUp = (sum) => [count(sum.ops, "operation"), kernelCounts([...sum.kernels]).words].filter(Boolean).join(", ");

// Layers that repeat have names that differ in their numbers only.
const numbered = (name) => name.replace(/\d+/g, "#");

// What a line of a graph computes: the type of the result, the operator, the whole expression, and what it has in common
// with lines for other values.
function operationIn(text) {
  const match = /^\s*\w+(?:\s*:\s*"([^"]*)")?\s*= (.*?)(?:;|$)/.exec(text);
  const code = match ? match[2].trim() : "";
  const called = /^([\w.]+)\(/.exec(code);
  const target = (called ? called[1] : code).replace(/^torch\.ops\./, "");
  return { type: (match && match[1]) || "", code, target, kind: called ? target : code.replace(/[A-Za-z_]\w*/g, "_") }; // no names
}
