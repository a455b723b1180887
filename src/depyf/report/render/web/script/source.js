// Source: the user's code with what became of each line; a chosen line lights up in every stage, and the other way round.

VIEWS.push({ id: "source", title: "Source", show: showSource, keys: sourceKeys });

const SIGNS = { break: ["■", "graph break"], recompile: ["↻", "recompiled"], fallback: ["▲", "left to Python, or failed to compile"] };

const MOST_CHIPS = 12;

let source = null; // the one SourceView, made when it is first looked at

function showSource(wanted, node) {
  if (!source || source.run !== wanted.run) source = new SourceView(wanted.run, node);
  source.go(wanted);
}

function sourceKeys(event) {
  const steps = { n: 1, p: -1 };
  if (event.key in steps) source.nextMark(steps[event.key]);
  else if (event.key === "]") source.stage.step(1);
  else if (event.key === "[") source.stage.step(-1);
  else if (event.key === "Escape") source.clear();
  else return false;
  return true;
}

class SourceView {
  constructor(run, node) {
    this.run = run;
    this.selection = null;
    this.target = null; // {function, source}
    this.picker = el("select", { id: "source-pick", onchange: () => (location.hash = this.picker.value) });
    this.fillPicker();
    this.graphs = el("div", { class: "graphs", role: "group", "aria-label": "Graphs of this function" });
    this.code = new CodePane("source-code", "Your code", {
      choose: (line) => this.choose([this.target.source, line]),
      classes: (line) => this.classes(line),
      tint: (line) => this.tint(line),
      gutter: (line) => this.gutter(line),
      remark: (line) => this.remark(line),
    });
    this.details = el("div", { class: "details", role: "region", "aria-label": "About the chosen line", "aria-live": "polite", tabindex: "0" });
    this.stage = new ArtifactPane(this, "stage", "Stage", (artifact) => artifact.kind !== "kernels" && artifact.kind !== "note");
    this.kernel = new ArtifactPane(this, "kernel", "Kernels", (artifact) => artifact.kind === "kernels");
    this.splitters = [splitter("Width of your code", true), splitter("Width of the stage", true), splitter("Height of your code", false)];
    const next = (step, text, title) => el("button", { type: "button", title, "aria-label": title, onclick: () => this.nextMark(step) }, text);
    this.code.node.dataset.pane = "code";
    this.details.dataset.pane = "details";
    restoreSizes([this.code.node, this.details], false);
    fill(
      node,
      el("h1", { class: "hidden" }, "Source"),
      el(
        "div",
        { class: "panes" },
        el(
          "div",
          { class: "pane", "data-pane": "source" },
          el("div", { class: "bar" }, el("label", { for: "source-pick" }, "Your code"), this.picker,
            next(-1, "‹", "Previous break, recompile or fallback (p)"), next(1, "›", "Next break, recompile or fallback (n)")),
          this.graphs,
          this.code.node,
          this.splitters[2],
          this.details
        ),
        this.splitters[0],
        this.stage.node,
        this.splitters[1],
        this.kernel.node
      )
    );
    restoreSizes([...node.querySelectorAll(".pane")], true);
  }

  // Functions that Dynamo compiled, by file; files that were only traced into stand for themselves.
  fillPicker() {
    const { run } = this;
    const own = (index) => run.sources[index].library; // those last
    const order = run.sources.map((_, index) => index).sort((one, other) => own(one) - own(other) || one - other);
    for (const at of order) {
      const roots = run.functions.map((one, index) => [one, index]).filter(([one, index]) => one.resumes === null && one.source === at && run.matters(index));
      const traced = [...run.marks.keys()].some((key) => key.startsWith(`${at}:`));
      if (!roots.length && !traced) continue;
      const group = el("optgroup", { label: shortened(run.sources[at].path, 70) });
      roots.sort(([one], [other]) => one.first_line - other.first_line);
      for (const [one, index] of roots) {
        const text = `${shortened(one.qualified_name || one.name, 50)}  :${one.first_line}`;
        group.append(el("option", { value: address("source", [`f${index}`], {}, run) }, text));
      }
      const file = shortened(fileName(run.sources[at].path), 50);
      if (traced) group.append(el("option", { value: address("source", [`s${at}`], {}, run) }, roots.length ? `all of ${file}` : `${file} (traced into)`));
      this.picker.append(group);
    }
  }

  go({ parts, keys }) {
    const [name = "", line] = parts;
    const index = Number(name.slice(1));
    const offered = [...this.picker.options].map((each) => parseRoute(each.value).parts[0]);
    const wanted = /^[fs]\d+$/.test(name) && (name[0] === "f" ? this.run.functions : this.run.sources)[index] ? name : this.run.shownFirst(offered);
    this.open(wanted);
    this.stage.ask(keys.get("stage"));
    if (keys.has("stage")) this.putInFront(this.stage);
    this.kernel.ask(keys.get("kernel"));
    if (!keys.has("stage")) this.putInFront(this.kernel);
    const number = Number(line);
    if (number >= 1 && this.target) {
      this.code.moveTo(Math.min(number, this.code.lines.length));
      this.choose([this.target.source, this.code.cursor]);
      this.code.reveal(this.code.cursor, "middle");
    } else if (!this.selection) {
      this.clear();
    }
  }

  // The function that a chosen line belongs to: the one that is shown where its graphs hold the line; else the one that
  // the line stands in, if it was compiled; else the file, with all graphs that hold lines of it.
  nameFor(at) {
    const { run } = this;
    const mark = run.at(at);
    if (mark && this.ids.some((id) => mark.ids.has(id))) return this.target.name;
    const own = run.functionAt(at);
    if (own !== null && run.matters(run.root(own))) return `f${run.root(own)}`;
    return mark && mark.ids.size ? `s${at[0]}` : this.target.name;
  }

  // Shows a function, or a file that was only traced into; ``stay`` keeps what is in sight of a file that is shown.
  open(name, stay) {
    if (this.target && this.target.name === name) return;
    const index = Number(name.slice(1));
    const root = name[0] === "f" ? this.run.root(index) : null;
    const one = root === null ? null : this.run.functions[root];
    const at = one ? one.source : index;
    const file = this.run.sources[at];
    if (!file) {
      this.target = null;
      fill(this.details, el("p", { class: "quiet" }, "Nothing was compiled."));
      return;
    }
    const same = this.target && this.target.source === at;
    this.target = { name, root, source: at };
    this.selection = null;
    this.ids = root === null ? this.idsIn(at) : this.run.idsOf(root);
    this.focus = this.ids.find((id) => this.run.colours.has(id)) || this.ids[0] || null;
    this.picker.value = address("source", [root === null ? name : `f${root}`], {}, this.run);
    [this.stops, this.costly] = this.findStops();
    tallyWidths(this.code.node, [...this.run.marks].filter(([key]) => key.startsWith(`${at}:`)).map(([, mark]) => mark));
    this.paintGraphs();
    if (same) this.code.refresh();
    else {
      const text = file.text === null ? `The text of ${file.path} could not be read.` : file.text;
      this.code.show(text, file.text === null ? "text" : "python", `Your code, ${shortened(fileName(file.path), 60)}`);
    }
    const begin = one ? one.first_line : this.stops[0] || 1; // of a file that was traced into, the first line in a graph
    if (!(stay && same)) this.code.reveal(Math.min(begin, this.code.lines.length), "top");
    this.stage.offer(this.ids, this.focus);
    this.kernel.offer(this.ids, this.focus);
    this.splitters[0].hidden = this.stage.node.hidden && this.kernel.node.hidden;
    this.splitters[1].hidden = this.stage.node.hidden || this.kernel.node.hidden;
  }

  idsIn(at) {
    const ids = new Set();
    for (const [key, mark] of this.run.marks) if (key.startsWith(`${at}:`)) mark.ids.forEach((id) => ids.add(id));
    return this.run.ids.filter((id) => ids.has(id));
  }

  // The lines that n and p lead to: those that cost something, or else those that something is known of; and which it is.
  findStops() {
    const lines = [];
    const computed = [];
    for (const [key, mark] of this.run.marks) {
      const [at, line] = key.split(":").map(Number);
      if (at === this.target.source) (mark.breaks.length || mark.recompiles.length || mark.fallbacks.length ? lines : computed).push(line);
    }
    return [(lines.length ? lines : computed).sort((one, other) => one - other), lines.length > 0];
  }

  nextMark(step) {
    const from = this.code.cursor;
    const next = step > 0 ? this.stops.find((line) => line > from) : [...this.stops].reverse().find((line) => line < from);
    if (!next) return;
    this.code.moveTo(next);
    this.choose([this.target.source, next]);
  }

  // A chip for each graph. Many are shown function by function: a list of the functions, and the entries of one.
  paintGraphs() {
    const withGraph = this.ids.filter((id) => this.run.colours.has(id));
    const functionOf = (id) => (this.run.compilation.get(id) || {}).function ?? null;
    const byFunction = grouped(withGraph, functionOf);
    const many = withGraph.length > MOST_CHIPS && byFunction.size > 1;
    const own = (many && byFunction.get(functionOf(this.focus))) || withGraph;
    const at = Math.max(0, Math.min(own.indexOf(this.focus) - MOST_SHOWN / 2, own.length - MOST_SHOWN));
    const buttons = own.slice(at, at + MOST_SHOWN).map((id) =>
      el("button", {
        type: "button", class: "chip", title: this.run.titleOf(id), "aria-pressed": String(id === this.focus),
        style: { "--graph": `var(--g${this.run.colours.get(id)})` }, onclick: () => this.setFocus(id),
      }, id)
    );
    fill(this.graphs, many ? this.functionPicker(byFunction) : el("span", { class: "quiet" }, buttons.length === 1 ? "Graph" : "Graphs"),
      buttons.length ? buttons : el("span", { class: "quiet" }, "none"),
      own.length > buttons.length ? el("span", { class: "quiet" }, `${buttons.length} of ${digits(own.length)}; the lists of stages have all`) : null);
  }

  // The functions that the graphs belong to, with the number of graphs of each; resume functions by the line they begin at.
  functionPicker(byFunction) {
    const name = (index) => {
      const one = this.run.functions[index];
      if (!one) return "of no function";
      return one.resumes !== null && this.target.root !== null ? `resumed at line ${one.resumes_at}` : this.run.nameOf(index);
    };
    const picker = el("select", { id: "graph-function", onchange: () => {
      this.setFocus(picker.value);
      document.getElementById("graph-function").focus(); // a new one was made
    } });
    for (const [index, ids] of byFunction) {
      picker.append(el("option", { value: ids[0], selected: ids.includes(this.focus) }, `${shortened(name(index), 60)}  (${count(ids.length, "graph")})`));
    }
    return [el("label", { for: "graph-function", class: "quiet" }, `Graphs of ${count(byFunction.size, "function")}`), picker];
  }

  // One compile id is in front: its colour on the lines, its artifacts in the panes.
  setFocus(id) {
    this.focus = id;
    this.paintGraphs();
    this.code.refresh();
    this.stage.toCompilation(id);
    this.kernel.toCompilation(id);
    this.code.highlight(placesIn(this.target.source, this.selection));
  }

  classes(line) {
    if (!this.target) return "";
    const mark = this.run.at([this.target.source, line]);
    const one = this.target.root === null ? null : this.run.functions[this.target.root];
    const outside = one && (line < one.first_line || line > one.last_line) && !(mark && mark.ids.size);
    return outside ? "outside" : "";
  }

  // Lines of the graph in front have colours of their own, which their parts in the other panes have, too.
  tint(line) {
    const mark = this.target && this.run.at([this.target.source, line]);
    return mark && mark.ids.has(this.focus) ? [this.run.lineColours(this.target.source).get(line)] : [];
  }

  gutter(line) {
    const mark = this.target && this.run.at([this.target.source, line]);
    const ids = mark ? this.ids.filter((id) => mark.ids.has(id)) : [];
    const stripes = ids.slice(0, 6).map((id) => el("i", { class: `graph-${this.run.colours.get(id)}` }));
    const sign = !mark ? "" : mark.breaks.length ? "break" : mark.fallbacks.length ? "fallback" : mark.recompiles.length ? "recompile" : "";
    return [
      el("span", { class: `sign ${sign}`, title: sign ? SIGNS[sign][1] : null }, sign ? SIGNS[sign][0] : ""),
      el("span", { class: "stripes", title: ids.length ? `in the graphs of ${shortened(ids.join(", "), 200)}` : null }, stripes),
      talliesOf(mark).map(({ text, title }) => el("span", { class: "tally", title }, text)),
    ];
  }

  remark(line) {
    const mark = this.target && this.run.at([this.target.source, line]);
    if (!mark) return null;
    const parts = [];
    for (const [title, met] of grouped(mark.breaks, (each) => each.title)) {
      parts.push(el("span", { class: "remark break" }, el("b", {}, "Graph break"), ": ", prose(shortened(title, 300)), met.length > 1 ? `, in ${met.length} compilations` : ""));
    }
    for (const met of grouped(mark.recompiles, (each) => (each.failed[0] ? checkOf(each.failed[0]) : "")).values()) {
      const words = recompiledFor(met);
      parts.push(el("span", { class: "remark recompile" }, el("b", {}, `Recompiled${met.length > 1 ? ` ${met.length} times` : ""}`), words ? `: ${shortened(words, 300)}` : ""));
    }
    if (mark.fallbacks.length) parts.push(el("span", { class: "remark fallback" }, el("b", {}, cameTo(mark.fallbacks[0])), `: ${shortened(isRaised(mark.fallbacks[0]) ? mark.fallbacks[0].reason.trim().split("\n")[0] : mark.fallbacks[0].cause, 300)}`));
    if (parts.length > 4) parts.splice(3, parts.length, el("span", { class: "remark" }, `and ${parts.length - 3} more`));
    return parts.length ? el("div", { class: "remarks", role: "presentation" }, parts) : null;
  }

  choose(line) {
    const at = this.run.statement(line)[0];
    const mark = this.run.at(at);
    this.open(this.nameFor(at), true);
    if (mark && mark.ids.size && !mark.ids.has(this.focus)) {
      const id = this.ids.find((each) => mark.ids.has(each));
      if (id) this.setFocusQuietly(id);
    }
    this.apply(selectPlace(this.run, line));
    aboutPlace(this, at);
    this.code.reveal(line[1]); // what is said of it takes room
    this.remember(line[1]);
  }

  chooseIn(pane, line) {
    const selection = selectLine(this.run, pane.artifact, line);
    const last = selection.places[selection.places.length - 1];
    if (last && !selection.places.some((each) => each[0] === this.target.source) && !selection.through.some((each) => each[0] === this.target.source)) {
      const index = this.run.functionAt(last);
      const keep = [this.stage.artifact, this.kernel.artifact];
      this.open(index === null ? `s${last[0]}` : `f${this.run.root(index)}`);
      this.stage.open(keep[0], true);
      this.kernel.open(keep[1], true);
    }
    this.apply(selection, pane);
    const lines = placesIn(this.target.source, selection);
    const here = [...lines].find(([, strength]) => strength === 2) || [...lines][0];
    if (here) this.code.reveal(here[0], "middle");
    aboutLine(this, pane.artifact, selection);
    this.remember(here ? here[0] : null);
  }

  // The graph that a pane shows is in front, and the other pane shows it, too.
  putInFront(pane) {
    const id = pane.artifact && pane.artifact.compile_id;
    if (!id || id === this.focus || !this.run.colours.has(id)) return;
    this.setFocusQuietly(id);
    this.code.highlight(placesIn(this.target.source, this.selection));
    for (const each of [this.stage, this.kernel]) if (each !== pane && each.artifact) each.toCompilation(id);
  }

  setFocusQuietly(id) {
    this.focus = id;
    this.paintGraphs();
    this.code.refresh();
  }

  apply(selection, from) {
    this.selection = selection;
    this.code.highlight(placesIn(this.target.source, selection));
    for (const pane of [this.stage, this.kernel]) pane.follow(selection, pane === from);
  }

  clear() {
    this.selection = null;
    this.code.highlight(new Map());
    for (const pane of [this.stage, this.kernel]) pane.follow(null, true);
    if (this.target) aboutNothing(this);
  }

  remember(line) {
    const keys = {};
    if (this.stage.artifact) keys.stage = this.stage.artifact.id;
    if (this.kernel.artifact) keys.kernel = this.kernel.artifact.id;
    if (current && current.id === "source") remember(address("source", line ? [this.target.name, String(line)] : [this.target.name], keys, this.run));
  }
}
