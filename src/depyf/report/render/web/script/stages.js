// Stages: every artifact, highlighted, and what changed from one stage to the next.

VIEWS.push({ id: "stages", title: "Stages", show: showStages, keys: stageKeys });

let stages = null;

function showStages(wanted, node) {
  if (!stages || stages.run !== wanted.run) stages = new StagesView(wanted.run, node);
  stages.go(wanted);
}

function stageKeys(event) {
  if (event.key === "]") stages.step(1);
  else if (event.key === "[") stages.step(-1);
  else if (event.key === "d") stages.toggleDiff();
  else return false;
  return true;
}

class StagesView {
  constructor(run, node) {
    this.run = run;
    this.artifact = null;
    this.filter = el("input", { type: "search", id: "stage-filter", placeholder: "name, stage or compile id  ( / )", oninput: () => this.list() });
    this.items = el("nav", { class: "items", "aria-label": "Artifacts" });
    this.code = new CodePane("stage-text", "Artifact", { choose: (line) => this.chosen(line) });
    this.title = el("h1", {});
    this.about = el("p", { class: "quiet" });
    this.against = el("select", { id: "stage-against", onchange: () => (location.hash = address("stages", [this.artifact.id], this.against.value ? { diff: this.against.value } : {}, run)) });
    fill(
      node,
      el(
        "div",
        { class: "split" },
        el("div", { class: "side" }, el("label", { for: "stage-filter" }, "Artifacts"), this.filter, this.items),
        el("div", { class: "pane" }, el("div", { class: "heading" }, this.title, this.about, el("div", { class: "bar" }, el("label", { for: "stage-against" }, "Compare with"), this.against)), this.code.node)
      )
    );
    this.order = [...run.artifacts].sort((one, other) => this.rankOf(one) - this.rankOf(other) || byOrder(one, other));
    this.list();
  }

  rankOf(artifact) {
    const at = this.run.ids.indexOf(artifact.compile_id);
    return at === -1 ? this.run.ids.length : at;
  }

  // The names of all artifacts by compile id; names in a closed group are made when it is opened.
  list() {
    const words = this.filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    const fits = (each) => {
      const text = `${each.title} ${stageName(each)} ${each.compile_id || ""} ${each.path || ""}`.toLowerCase();
      return words.every((word) => text.includes(word));
    };
    const groups = [...grouped(this.order.filter(fits), (each) => each.compile_id)];
    const chosen = this.artifact && this.artifact.compile_id;
    const nodes = groups.map(([id, list]) => {
      const box = el("details", { open: groups.length < 5 || words.length > 0 || id === chosen },
        el("summary", {}, id ? chip(this.run, id) : null, el("span", { class: "what", title: id ? this.run.titleOf(id) : null }, id ? this.run.shortTitleOf(id) : "The whole run"), el("span", { class: "tally" }, list.length)));
      const build = () => {
        if (!box.open || box.built) return;
        box.built = true;
        box.append(el("ul", {}, list.map((each) => this.item(each, list))));
      };
      box.addEventListener("toggle", build);
      build();
      return box;
    });
    fill(this.items, nodes.length ? nodes : el("p", { class: "quiet" }, "No artifact is called that."));
  }

  item(each, list) {
    const same = each.equals ? `${each.title}: the same graph as in ${each.equals}` : each.title;
    return el("li", {}, el("a", { class: each.equals ? "quiet" : null, href: address("stages", [each.id], {}, this.run), "data-artifact": each.id, title: same, "aria-current": each === this.artifact ? "true" : null }, shortened(nameAmong(each, list), 60)));
  }

  go({ parts, keys }) {
    const artifact = this.run.artifact.get(parts[0]) || this.order[0];
    if (!artifact) {
      fill(this.title, "No artifacts");
      return;
    }
    const fresh = artifact !== this.artifact;
    this.artifact = artifact;
    if (fresh) this.head();
    const other = this.run.artifact.get(keys.get("diff"));
    this.against.value = other ? other.id : "";
    const line = Number((parts[1] || "").replace(/^L/, ""));
    if (other) this.showDiff(other);
    else {
      const text = this.run.text(artifact);
      this.code.hooks = { choose: (number) => this.chosen(number), ...foldBookkeeping(artifact, text) };
      if (fresh || this.other) this.code.show(text, artifact.language, `${stageName(artifact)} ${artifact.compile_id || ""}`);
      if (line >= 1 && !this.code.has(line)) {
        this.tell();
        add(this.about, [`  ·  there is no line ${line}: the text has ${count(this.code.lines.length, "line")}`]);
      } else if (line >= 1) {
        this.code.moveTo(line);
        this.code.reveal(this.code.cursor, "middle");
        this.code.highlight(new Map([[this.code.cursor, 2]]));
        this.tell(line);
      }
    }
    this.other = other || null;
    for (const link of this.items.querySelectorAll("[aria-current]")) link.removeAttribute("aria-current");
    if (fresh && !this.items.querySelector(`[data-artifact="${CSS.escape(artifact.id)}"]`)) this.list();
    const link = this.items.querySelector(`[data-artifact="${CSS.escape(artifact.id)}"]`);
    if (link) {
      link.setAttribute("aria-current", "true");
      link.closest("details").open = true;
      link.scrollIntoView({ block: "nearest" });
    }
  }

  head() {
    const { artifact, run } = this;
    fill(this.title, shortened(stageName(artifact), 80), " ", artifact.compile_id ? chip(run, artifact.compile_id) : null);
    this.tell();
    const others = this.neighbours();
    fill(this.against, el("option", { value: "" }, "nothing: show the text"));
    const before = others[others.indexOf(artifact) - 1];
    if (before) this.against.append(el("option", { value: before.id }, `stage before: ${stageName(before)}`));
    const rest = others.filter((each) => each !== artifact && each !== before);
    if (rest.length) this.against.append(el("optgroup", { label: "this compilation" }, rest.map((each) => el("option", { value: each.id }, stageName(each)))));
    const same = run.artifacts.filter((each) => each !== artifact && each.compile_id !== artifact.compile_id && each.kind === artifact.kind && each.stage === artifact.stage && each.backward === artifact.backward);
    if (same.length) this.against.append(el("optgroup", { label: "the same of another compilation" }, same.slice(0, 200).map((each) => el("option", { value: each.id }, `${stageName(each)} ${each.compile_id || ""}`))));
  }

  // What a stage can be compared with: graphs of this compilation, and of its direction.
  neighbours() {
    const list = this.run.byCompilation.get(this.artifact.compile_id) || [];
    const { kind, backward } = this.artifact;
    return list.filter((each) => each.kind === kind && (backward === null || each.backward === null || each.backward === backward));
  }

  tell(line) {
    const { artifact, run } = this;
    const places = line ? selectLine(run, artifact, line) : null;
    const lines = places && places.places.length ? places.places : [];
    fill(
      this.about,
      el("span", { class: "mono", title: artifact.path || artifact.title }, shortened(artifact.path || artifact.title, 90)),
      artifact.equals ? "  ·  the same graph: it has no file of its own" : artifact.runs === true ? "  ·  this file runs" : artifact.runs === false ? "  ·  does not run" : "",
      line ? [`  ·  line ${line}`, lines.length ? [" comes from ", lines.slice(0, 6).map((where) => [place(run, where), " "])] : null] : null
    );
  }

  chosen(line) {
    if (this.other) return;
    this.code.highlight(new Map([[line, 2]]));
    this.tell(line);
    remember(address("stages", [this.artifact.id, `L${line}`], {}, this.run));
  }

  step(by) {
    const next = this.order[this.order.indexOf(this.artifact) + by];
    if (next) location.hash = address("stages", [next.id], {}, this.run);
  }

  toggleDiff() {
    const list = this.neighbours();
    const before = list[list.indexOf(this.artifact) - 1];
    if (!before && !this.other) return;
    location.hash = address("stages", [this.artifact.id], this.other ? {} : { diff: before.id }, this.run);
  }

  showDiff(other) {
    const sign = { add: "+", drop: "−", same: "", skip: "⋯" };
    const { rows, added, removed } = diffRows(bodyOf(this.run.text(other)), bodyOf(this.run.text(this.artifact)));
    this.code.hooks = {
      classes: (number) => `diff-${rows[number - 1].kind}`,
      gutter: (number) => el("span", { class: "sign" }, sign[rows[number - 1].kind]),
      numbered: (number) => rows[number - 1].at,
    };
    this.code.show(rows.map((row) => row.text).join("\n"), this.artifact.language, `From ${stageName(other)} to ${stageName(this.artifact)}`);
    fill(this.about, `From ${stageName(other)} ${other.compile_id || ""} to this: `, added || removed ? `${count(added, "line")} added, ${removed} removed` : "no difference");
  }
}

// The lines of a text; comments at its head say which file this is, which is no difference.
function bodyOf(text) {
  const lines = text.split("\n");
  for (let at = 0; at < lines.length && lines[at].startsWith("#"); at += 1) lines[at] = "";
  return lines;
}

const AROUND = 4; // equal lines that are shown around a change

function diffRows(before, after) {
  const script = diffLines(before, after);
  const near = new Uint8Array(script.length);
  script.forEach(([kind], at) => {
    if (kind === "=") return;
    near.fill(1, Math.max(0, at - AROUND), Math.min(script.length, at + AROUND + 1));
  });
  const rows = [];
  let added = 0;
  let removed = 0;
  let skipped = 0;
  const flush = () => {
    if (skipped) rows.push({ kind: "skip", at: "", text: `# ${count(skipped, "equal line")}` });
    skipped = 0;
  };
  for (let at = 1; at < near.length - 1; at += 1) if (near[at - 1] && near[at + 1]) near[at] = 1; // no gap of one line
  script.forEach(([kind, a, b], at) => {
    if (kind === "=" && !near[at]) {
      skipped += 1;
      return;
    }
    flush();
    if (kind === "+") added += 1;
    if (kind === "-") removed += 1;
    rows.push({ kind: { "=": "same", "+": "add", "-": "drop" }[kind], at: (kind === "-" ? a : b) + 1, text: kind === "-" ? before[a] : after[b] });
  });
  flush();
  return { rows, added, removed };
}
