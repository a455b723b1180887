// A pane beside the source that shows one artifact, says where else the chosen line went, and follows the choice.

class ArtifactPane {
  constructor(view, name, title, wanted) {
    this.view = view;
    this.run = view.run;
    this.wanted = wanted;
    this.artifact = null;
    this.shownHit = -1;
    this.picker = el("select", { id: `${name}-pick`, onchange: () => this.picked() });
    this.code = new CodePane(`${name}-code`, title, { choose: (line) => this.artifact && view.chooseIn(this, line) });
    this.where = el("div", { class: "where", role: "group", "aria-label": `${title}: where the chosen line is` });
    this.hits = el("output", { class: "hits" });
    const jump = (step, text, title) => el("button", { type: "button", title, "aria-label": title, onclick: () => this.jump(step) }, text);
    this.open_ = el("a", { class: "open", href: "#stages" }, "open");
    this.node = el(
      "div",
      { class: "pane", "data-pane": name },
      el("div", { class: "bar" }, el("label", { for: `${name}-pick` }, title), this.picker,
        jump(-1, "‹", `${title}: previous place of the chosen line`), jump(1, "›", `${title}: next place of the chosen line`), this.hits, this.open_),
      this.where,
      this.code.node
    );
  }

  // The artifacts of these compile ids; starts with one that says most.
  offer(ids, focus) {
    this.ids = ids;
    this.choices = ids.flatMap((id) => (this.run.byCompilation.get(id) || []).filter(this.wanted));
    this.picker.replaceChildren();
    for (const id of ids) {
      const list = this.choices.filter((each) => each.compile_id === id);
      if (!list.length) continue;
      const options = list.map((each) => el("option", { value: each.id }, `${nameAmong(each, list)} ${id}`));
      this.picker.append(el("optgroup", { label: shortened(this.run.titleOf(id), 70) }, options));
    }
    this.artifact = null;
    this.open(this.preferred(focus) || this.choices[0] || null, true);
  }

  preferred(id, like) {
    const list = this.choices.filter((each) => each.compile_id === id);
    const same = like && list.find((each) => each.kind === like.kind && each.stage === like.stage && each.backward === like.backward);
    return same || list.find((each) => each.stage === "Captured_Graph") || list.find((each) => each.kind === "graph") || list[0];
  }

  ask(id) {
    const artifact = id && this.run.artifact.get(id);
    if (artifact && this.choices && this.choices.includes(artifact)) this.open(artifact, true);
  }

  picked() {
    this.open(this.run.artifact.get(this.picker.value));
    this.view.putInFront(this);
    this.view.remember(this.view.code.cursor);
  }

  open(artifact, quiet) {
    this.node.hidden = !artifact; // what has nothing to show gives its room to the others
    if (!artifact) {
      this.artifact = null;
      this.code.show("", "text", "empty");
      fill(this.where);
      fill(this.hits);
      this.open_.hidden = true;
      return;
    }
    this.open_.hidden = false;
    if (artifact !== this.artifact) {
      this.artifact = artifact;
      this.picker.value = artifact.id;
      this.open_.href = address("stages", [artifact.id], {}, this.run);
      this.open_.setAttribute("aria-label", `Open ${stageName(artifact)} ${artifact.compile_id || ""} under Stages`);
      const text = this.run.text(artifact);
      const graph = artifact.kind === "graph";
      const folded = (graph ? foldParameters : foldBookkeeping)(artifact, text);
      Object.assign(this.code.hooks, folded, { tint: coloursIn(this.run, artifact, this.view.target.source), short: graph ? shortLine : null, inputs: this.run.inputsOf(artifact) });
      this.code.show(text, artifact.language, `${stageName(artifact)} ${artifact.compile_id || ""}`);
      const first = this.run.kernels.filter((each) => each.artifact === artifact.id && each.first).map((each) => each.first);
      this.begin = beginOf(this.run, artifact);
      if (this.begin > 1) first.push(this.begin);
      if (first.length) this.code.reveal(first.reduce((one, other) => Math.min(one, other)), "top"); // not imports and parameters above it
    }
    if (!quiet || this.view.selection) this.paint();
  }

  step(by) {
    const at = this.choices.indexOf(this.artifact) + by;
    if (this.choices[at]) {
      this.open(this.choices[at]);
      this.view.remember(this.view.code.cursor);
    }
  }

  toCompilation(id) {
    const next = this.preferred(id, this.artifact);
    if (next) this.open(next);
    this.tellWhere();
  }

  // Shows the selection; goes to another compilation where this one has no part of it and another has, or to the one in front.
  follow(selection, stay) {
    if (!this.artifact) return;
    this.found = new Map(selection ? this.choices.map((each) => [each, matches(this.run, each, selection)]) : []);
    if (selection && !stay && !this.found.get(this.artifact).size) {
      const others = this.choices.filter((each) => this.found.get(each).size);
      const near = (each) =>
        2 * (each.stage === this.artifact.stage && each.kind === this.artifact.kind) + (each.compile_id === this.view.focus) * 3 - (each.kind === "transformed");
      others.sort((one, other) => near(other) - near(one));
      const next = others[0] || (this.artifact.compile_id !== this.view.focus && this.preferred(this.view.focus, this.artifact));
      if (next) this.open(next, true);
    }
    this.paint(stay);
  }

  paint(stay) {
    const found = (this.found && this.found.get(this.artifact)) || new Map();
    this.code.highlight(found);
    this.blocks = blocksOf(found, this.begin);
    this.shownHit = -1;
    if (this.blocks.length && !stay) this.jump(1);
    else this.tellHits();
    this.tellWhere();
  }

  jump(step) {
    if (!this.blocks || !this.blocks.length) return;
    this.shownHit = (this.shownHit + step + this.blocks.length) % this.blocks.length;
    this.code.reveal(this.blocks[this.shownHit], "middle");
    this.tellHits();
  }

  tellHits() {
    const many = this.blocks ? this.blocks.length : 0;
    fill(this.hits, !this.view.selection ? "" : many === 0 ? "not in it" : (this.shownHit >= 0 ? `${this.shownHit + 1} of ${many}` : count(many, "place")) + (this.blocks.every((line) => this.code.isFolded(line)) ? ", folded" : ""));
  }

  tellWhere() {
    const has = (each) => this.found && this.found.get(each) && this.found.get(each).size;
    const list = this.choices.filter(
      (each) => each.compile_id === (this.artifact || {}).compile_id && (each.kind !== "wrapper" || each === this.artifact || has(each))
    );
    const button = (each) => {
      const many = this.found && this.found.get(each) ? blocksOf(this.found.get(each), beginOf(this.run, each)).length : 0;
      return el("button", {
        type: "button", class: `tab${many ? " some" : ""}${each.equals ? " same" : ""}`, title: each.equals ? "the same graph as a stage before it, or after it" : null, "aria-pressed": String(each === this.artifact),
        onclick: () => { this.open(each); this.view.remember(this.view.code.cursor); },
      }, nameAmong(each, list), many ? el("b", {}, many) : null);
    };
    const groups = [...grouped(list, makerOf)];
    fill(this.where, groups.map(([maker, made]) => el("span", { class: "made", role: "group", "aria-label": maker }, groups.length > 1 ? el("span", { class: "maker" }, maker) : null, made.map(button))));
  }
}

const BEGINS = new WeakMap();

// The line of an artifact that computes first: those of a graph above it only rename inputs. A comment above it belongs to it.
function beginOf(run, artifact) {
  if (artifact.kind !== "graph") return 1;
  if (!BEGINS.has(artifact)) {
    const text = run.text(artifact);
    const found = /^([ \t]*# File: .*\n)?[ \t]+\w+(?:[ \t]*:[ \t]*(?:"[^"\n]*"|'[^'\n]*'))?[ \t]*= (?!\w+[ \t]*(?:;|$))/m.exec(text);
    BEGINS.set(artifact, found ? text.slice(0, found.index).split("\n").length : 1);
  }
  return BEGINS.get(artifact);
}

// The first lines of runs of neighbouring lines; where some are the thing itself, only those.
function blocksOf(found, begin) {
  const after = [...found].some(([line]) => line >= begin) ? [...found].filter(([line]) => line >= begin) : [...found];
  const strong = after.some(([, strength]) => strength === 2);
  const lines = after.filter(([, strength]) => !strong || strength === 2).map(([line]) => line).sort((one, other) => one - other);
  return lines.filter((line, at) => at === 0 || lines[at - 1] !== line - 1);
}
