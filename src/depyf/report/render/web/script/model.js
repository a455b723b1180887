// The data of the page: the manifest of each run with its defaults filled in, and the indices that the views look up.

const COLOURS = 10;

const keyOf = (place) => `${place[0]}:${place[1]}`;

// The parts of a list of the manifest, with the default values that it omits, and so in the lists inside of the parts.
function filled(parts, list, defaults) {
  const inner = Object.keys(defaults).filter((each) => each.slice(0, each.lastIndexOf(".")) === list);
  return (parts || []).map((part) => {
    const whole = { ...defaults[list], ...part };
    for (const each of inner) {
      const name = each.slice(list.length + 1);
      whole[name] = filled(whole[name], each, defaults);
    }
    return whole;
  });
}

class RunModel {
  constructor(packed, index, defaults) {
    const run = packed.run;
    this.index = index;
    this.raw = run;
    for (const list of Object.keys(defaults).filter((each) => !each.includes("."))) this[list] = filled(run[list], list, defaults);
    for (const name of ["depyf", "torch", "python", "origin", "rank", "started"]) this[name] = run[name] ?? "";
    this.traced = run.origin !== "files"; // else nobody has counted graph breaks, recompilations, guards and times
    this.command = run.command || [];
    this.notes = run.notes || [];
    this.failures = run.failures || [];
    this.lost = this.fallbacks.filter((each) => each.cause !== "skipped"); // there is nothing to compile in the others
    this.totals = run.totals || {};
    this.headline = packed.headline || "";
    this.orderOfFindings = packed.order_of_findings || "";
    this.moreChanged = packed.more_changed; // what follows in an advice differs from call to call
    this.counts = packed.counts || {};
    this.partWords = packed.part_words || {};
    this.limits = packed.limits || {}; // of functions: words, and whether half of a limit is used
    this.phaseWords = packed.phase_words || {};
    this.timeParts = packed.time_parts || [];
    this.memory = packed.memory || [];
    this.texts = packed.texts;
    this.stacks = packed.stacks;
    this.statements = packed.statements || {};
    this.packedLinks = packed.links;
    this.guardGroups = packed.guards.groups;
    this.guardKinds = packed.guards.kinds;
    this.guardSources = packed.guards.sources;
    for (const each of this.compilations) {
      const groups = packed.guards.of[each.compile_id] || [];
      const required = packed.guards.required[each.compile_id] || [];
      each.guards.forEach((guard, at) => Object.assign(guard, { group: groups[at], required: packed.guards.requirements[required[at]] || "" }));
    }
    this.breaks.forEach((each, at) => (each.title = (packed.break_titles || [])[at] || each.reason.split("\n")[0]));
    this.artifact = new Map(this.artifacts.map((each) => [each.id, each]));
    this.compilation = new Map(this.compilations.map((each) => [each.compile_id, each]));
    this.byCompilation = grouped(this.artifacts, (each) => each.compile_id);
    for (const group of this.byCompilation.values()) group.sort(byOrder);
    this.kernelsOf = grouped(this.kernels, (each) => each.artifact);
    this.ids = [...new Set([...this.compilations, ...this.artifacts].map((each) => each.compile_id))].filter((id) => id);
    this.colours = new Map();
    for (const id of this.ids) if (this.hasGraph(id)) this.colours.set(id, this.colours.size % COLOURS);
    this.linksCache = new Map();
    this.inputs = new Map();
    this.shortTexts = new Map();
  }

  // The recorded stacks of calls, outermost first. Links of kernels and of transformed code hold sets of lines instead.
  get callStacks() {
    if (!this.callStacksCache) {
      // Captured graphs first: they have the whole stacks in the order of the program, earlier texts parts of them.
      const captured = (each) => each.stage === "Captured_Graph";
      const graphs = this.artifacts.filter((each) => each.kind === "graph").sort((one, other) => captured(other) - captured(one));
      const indices = new Set(graphs.flatMap((each) => (this.packedLinks[each.id] || []).map((link) => link[2])));
      this.callStacksCache = [...indices].map((index) => this.stacks[index]);
    }
    return this.callStacksCache;
  }

  // PyTorch's name of a value as the program writes it: L['self']._modules['up'] is self.up.
  written(source) {
    return this.guardSources[source] ?? source;
  }

  hasGraph(id) {
    return (this.byCompilation.get(id) || []).some((each) => each.kind === "graph" || each.kind === "kernels");
  }

  text(artifact) {
    return this.texts[artifact.id] ?? artifact.text ?? `# The text of ${artifact.path || artifact.id} is not there.`;
  }

  // The short names of AOTAutograd's inputs in the graphs of a compilation. Parts of a split graph have inputs of their own.
  inputsOf({ compile_id: id }) {
    if (!this.inputs.has(id)) {
      const graphs = (this.byCompilation.get(id) || []).filter((each) => each.kind === "graph" && !each.piece);
      const captured = graphs.filter((each) => each.stage === "Captured_Graph");
      const texts = graphs.map((each) => this.text(each)).filter((text) => text.includes("AOTInput("));
      this.inputs.set(id, captured.length === 1 ? inputNames(this.text(captured[0]), texts) : new Map());
    }
    return this.inputs.get(id);
  }

  // The text of a graph with the short names of parameters, by which they are found as well; "" if it has none.
  shortText(artifact) {
    if (!this.shortTexts.has(artifact.id)) {
      const text = artifact.kind === "graph" ? this.text(artifact) : "";
      const inputs = this.inputsOf(artifact);
      const named = artifact.kind === "graph" && (inputs.size || /_(?:parameters|buffers)_/.test(text));
      this.shortTexts.set(artifact.id, named ? text.replace(new RegExp(NAMED_INPUT, "g"), (word) => inputs.get(word) || shortName(word)) : "");
    }
    return this.shortTexts.get(artifact.id);
  }

  // The user's function that a resume function goes on with, over all steps.
  root(index) {
    const seen = new Set();
    while (this.functions[index] && this.functions[index].resumes !== null && !seen.has(index)) {
      seen.add(index);
      index = this.functions[index].resumes;
    }
    return index;
  }

  family(root) {
    return this.functions.map((_, index) => index).filter((index) => this.root(index) === root);
  }

  idsOf(root) {
    return this.compilations
      .filter((each) => each.function !== null && this.root(each.function) === root)
      .map((each) => each.compile_id);
  }

  // Whether there is something to say about a function: Dynamo also sees some in which there is nothing to compile.
  matters(root) {
    return this.idsOf(root).length > 0 || this.lost.some((each) => each.function !== null && this.root(each.function) === root);
  }

  // The functions about which something is known, without resume functions: user code before libraries.
  get roots() {
    const library = (index) => this.sources[this.functions[index].source]?.library;
    const all = this.functions.map((_, index) => index).filter((index) => this.functions[index].resumes === null && this.matters(index));
    return all.sort((one, other) => library(one) - library(other) || one - other);
  }

  nameOf(index) {
    const one = this.functions[index];
    if (!one) return "?";
    return one.resumes === null ? one.qualified_name || one.name : `${this.nameOf(this.root(index))}, resumed at line ${one.resumes_at}`;
  }

  titleOf(id) {
    const one = this.compilation.get(id);
    return one && one.function !== null ? `${id}  ${this.nameOf(one.function)}` : id || "";
  }

  // The same for a list: the function, and of a resume function its line.
  shortTitleOf(id) {
    const one = this.functions[this.compilation.get(id)?.function];
    if (!one) return "";
    const name = this.functions[this.root(this.compilation.get(id).function)];
    return `${name.qualified_name || name.name}${one.resumes === null ? "" : `, from line ${one.resumes_at}`}`;
  }

  placeText(place) {
    const source = this.sources[place[0]];
    return `${source ? fileName(source.path) : "?"}:${place[1]}`;
  }

  code(place) {
    const source = this.sources[place[0]];
    if (!source || source.text === null) return "";
    source.lines ||= source.text.split("\n");
    return source.lines[place[1] - 1] ?? "";
  }

  // The function that a place lies in: where several nest, the innermost; resume functions share their root's lines.
  functionAt(place) {
    let best = null;
    this.functions.forEach((one, index) => {
      if (one.resumes !== null || one.source !== place[0] || place[1] < one.first_line || place[1] > one.last_line) return;
      if (best === null || one.first_line >= this.functions[best].first_line) best = index;
    });
    return best;
  }

  hrefOf(place) {
    const index = this.functionAt(place);
    return `#source/${index === null ? `s${place[0]}` : `f${index}`}/${place[1]}${rankQuery(this)}`;
  }

  // What ties lines of an artifact to the user's lines and to names: torch's links, and the kernels of a module.
  links(artifact) {
    if (!this.linksCache.has(artifact.id)) {
      const links = (this.packedLinks[artifact.id] || []).map(([first, last, stack, names]) => ({
        first, last, places: this.stacks[stack], names: names || [], set: artifact.kind !== "graph", // else a stack of calls
      }));
      for (const each of this.kernelsOf.get(artifact.id) || []) {
        const spans = each.calls.map((line) => [line, line]);
        if (each.first) spans.push([each.first, each.last]);
        for (const [first, last] of spans) {
          links.push({ first, last, places: each.places, names: [each.name, ...each.nodes], set: true, kernel: each });
        }
      }
      this.linksCache.set(artifact.id, links);
    }
    return this.linksCache.get(artifact.id);
  }

  // What happened at each line of the user's files, by place.
  get marks() {
    return (this.marksCache ||= this.collectMarks());
  }

  at(place) {
    return this.marks.get(keyOf(place));
  }

  // The colours of the lines of a file that are in a graph: neighbours have different ones.
  lineColours(source) {
    this.lineColoursCache ||= new Map();
    if (!this.lineColoursCache.has(source)) {
      const lines = [...this.marks].filter(([, mark]) => mark.ids.size).map(([key]) => key.split(":").map(Number));
      const own = lines.filter(([at]) => at === source).map(([, line]) => line).sort((one, other) => one - other);
      this.lineColoursCache.set(source, new Map(own.map((line, at) => [line, at % COLOURS])));
    }
    return this.lineColoursCache.get(source);
  }

  // What Source begins with, of the names that it offers: the program's function with most findings, of equal ones that with
  // most graphs; or a library's function, or, as that may only call the model, the file with most lines in graphs.
  shownFirst(offered) {
    const own = offered.filter((each) => each[0] === "f" && !this.sources[this.functions[Number(each.slice(1))]?.source]?.library);
    const told = (each) => {
      const { graph_breaks = 0, recompilations = 0, fallbacks = 0, graphs = 0 } = this.counts[Number(each.slice(1))] || {};
      return [graph_breaks + recompilations + fallbacks, graphs];
    };
    const rank = new Map(own.map((each) => [each, told(each)]));
    own.sort((one, other) => rank.get(other)[0] - rank.get(one)[0] || rank.get(other)[1] - rank.get(one)[1]);
    const name = own[0] || offered[0] || "f0";
    const source = name[0] === "f" ? this.functions[Number(name.slice(1))]?.source : undefined;
    if (!this.sources[source]?.library) return name;
    const lines = this.sources.map(() => 0);
    for (const [key, mark] of this.marks) if (mark.ids.size) lines[Number(key.split(":")[0])] += 1;
    const most = lines.indexOf(Math.max(...lines));
    return lines[most] > 2 * lines[source] ? `s${most}` : name;
  }

  // The lines of the statement around a line about which nothing is known.
  statement(place) {
    if (this.at(place)) return [place];
    const spans = (this.statements[place[0]] || []).filter(([first, last]) => first <= place[1] && place[1] <= last);
    const inside = [];
    for (const [first, last] of spans) {
      for (let line = first; line <= last; line += 1) if (this.at([place[0], line])) inside.push([place[0], line]);
    }
    return inside.length ? inside : [place];
  }

  collectMarks() {
    const marks = new Map();
    const mark = (place) => {
      const key = keyOf(place);
      if (!marks.has(key)) marks.set(key, { breaks: [], guards: [], recompiles: [], kernels: [], fallbacks: [], ids: new Set() });
      return marks.get(key);
    };
    for (const each of this.breaks) if (each.place) mark(each.place).breaks.push(each);
    for (const each of this.lost) if (each.place) mark(each.place).fallbacks.push(each);
    for (const one of this.compilations) {
      for (const guard of one.guards) if (guard.place) mark(guard.place).guards.push({ guard, id: one.compile_id });
    }
    for (const each of this.recompiles) {
      if (each.place) mark(each.place).recompiles.push(each);
    }
    for (const each of this.kernels) for (const place of each.places) mark(place).kernels.push(each);
    for (const [id, artifacts] of this.byCompilation) {
      if (!this.colours.has(id)) continue;
      const graphs = artifacts.filter((each) => each.kind === "graph");
      const stacks = new Set(graphs.flatMap((each) => (this.packedLinks[each.id] || []).map((link) => link[2])));
      for (const stack of stacks) for (const place of this.stacks[stack]) mark(place).ids.add(id);
    }
    for (const each of this.kernels) for (const place of each.places) if (each.compile_id) mark(place).ids.add(each.compile_id);
    return marks;
  }

  // The compilations of the resume functions that begin at a graph break, or at a line that called it.
  compiledAfter(graphBreak) {
    const at = new Set([...graphBreak.stack, graphBreak.place].filter(Boolean).map(keyOf));
    return this.compilations.filter((each) => {
      const one = this.functions[each.function];
      return one && one.resumes !== null && at.has(`${one.source}:${one.resumes_at}`);
    });
  }

  startOf(index) {
    const one = this.functions[index];
    return one ? [one.source, one.first_line] : null;
  }
}

// Kernels that Inductor generated, and calls of libraries, which are counted apart everywhere (docs/glossary.md).
function kernelCounts(kernels) {
  const library = kernels.filter((each) => each.extern).length;
  const own = kernels.length - library;
  const words = [own ? count(own, "kernel") : "", library ? count(library, "library call") : ""].filter(Boolean).join(", ");
  return { own, library, words };
}

// The results of compilations in words.
const STATUS_WORDS = { empty: "no graph", limit: "limit reached" };
const statusOf = (one) => STATUS_WORDS[one.status] || one.status;

function byOrder(one, other) {
  return one.order - other.order || (one.backward === true) - (other.backward === true); // or else as they came
}

function grouped(items, key) {
  const groups = new Map();
  for (const item of items) {
    const name = key(item);
    if (!groups.has(name)) groups.set(name, []);
    groups.get(name).push(item);
  }
  return groups;
}

// The name of a stage among others; equal ones are numbered.
function nameAmong(artifact, list) {
  const name = stageName(artifact);
  const same = list.filter((each) => stageName(each) === name);
  return same.length > 1 ? `${name} ${same.indexOf(artifact) + 1}` : name;
}

const MAKERS = {
  Dynamo: ["Captured_Graph", "pre_insert_deferred_runtime_asserts", "BEFORE_PRE_GRAD", "AFTER_PRE_GRAD"],
  AOTAutograd: ["tensorify_python_scalars", "Joint_graph", "Forward_graph", "Backward_graph"],
  Inductor: ["before_joint_graph", "after_joint_graph", "BEFORE_POST_GRAD", "AFTER_POST_GRAD"],
};

// Which part of PyTorch made an artifact; others have printed the graphs that are not in the table.
function makerOf(artifact) {
  if (artifact.kind === "kernels" || artifact.kind === "passes") return "Inductor";
  if (artifact.kind === "wrapper") return "AOTAutograd";
  if (artifact.kind !== "graph") return "Dynamo";
  return Object.keys(MAKERS).find((maker) => MAKERS[maker].includes(artifact.stage)) || "Others";
}

// ``Forward_graph`` reads better as words; what is no stage has its kind.
function stageName(artifact) {
  const names = { transformed: "Transformed code", full_code: "Whole story", kernels: "Kernels", guards: "Guards", wrapper: "Wrapper", note: "Note", passes: "Passes" };
  const name = (artifact.kind === "graph" || artifact.kind === "wrapper") && artifact.stage
    ? (/[a-z][A-Z]|\./.test(artifact.stage) ? artifact.stage : artifact.stage.replace(/_/g, " ").toLowerCase().replace(/\baot\b/g, "AOT"))
    : artifact.kind === "note" && artifact.stage ? artifact.stage : names[artifact.kind] || artifact.title;
  const capital = name === artifact.stage ? name : name.charAt(0).toUpperCase() + name.slice(1); // torch's own name
  const whole = artifact.backward === true && !/backward/i.test(name) ? `${capital} (backward)` : capital;
  return artifact.piece ? `${artifact.piece}: ${whole}` : whole;
}
