// The data of the page: the manifest of each run with its defaults filled in, and the indices that the views look up.

const DEFAULTS = {
  artifacts: { compile_id: null, stage: "", order: 0, path: null, text: null, language: "python", backward: null, runs: null, piece: "" },
  breaks: { compile_id: null, place: null, explanation: "", hints: [], url: "", stack: [], advice: "" },
  compilations: {
    function: null, status: "compiled", failure: "", graph: null, attempts: 1, restarts: [], verdict: "",
    verdict_reason: "", transformed: null, calls: [], guards: [], guard_latency: null, guard_failures: null,
    dynamic: [], cache: {}, start: null, seconds: null, backward_seconds: null, runs: null,
    graph_runs: null, graph_run_seconds: null, backward_runs: null, backward_run_seconds: null, earlier: false, metrics: {},
  },
  fallbacks: { function: null, compile_id: null, cause: "", reason: "", place: null, advice: "" },
  findings: { text: "", weight: 0, place: null, compile_id: null },
  functions: { resumes: null, resumes_at: null, full_code: null },
  kernels: { compile_id: null, backward: null, extern: false, first: 0, last: 0, calls: [], places: [], nodes: [] },
  phases: { compile_id: null, backward: false, parent: null },
  cudagraph_skips: { place: null, advice: "" },
  recompiles: { failed: [], advice: "", place: null, cause: "" },
  sources: { text: null, library: false },
};
const GUARD = { source: "", place: null };
const FAILED = { entry: null, text: "", words: "", before: null, now: null, place: null, checked: "", stack: [] };
const COLOURS = 10;

const keyOf = (place) => `${place[0]}:${place[1]}`;

class RunModel {
  constructor(packed, index) {
    const run = packed.run;
    this.index = index;
    this.raw = run;
    for (const [name, defaults] of Object.entries(DEFAULTS)) {
      this[name] = (run[name] || []).map((each) => ({ ...defaults, ...each }));
    }
    for (const name of ["depyf", "torch", "python", "origin", "rank", "started"]) this[name] = run[name] ?? "";
    this.command = run.command || [];
    this.notes = run.notes || [];
    this.failures = run.failures || [];
    this.lost = this.fallbacks.filter((each) => each.cause !== "skipped"); // there is nothing to compile in the others
    this.totals = run.totals || {};
    this.headline = packed.headline || "";
    this.counts = packed.counts || {};
    this.phaseWords = packed.phase_words || {};
    this.texts = packed.texts;
    this.stacks = packed.stacks;
    this.statements = packed.statements || {};
    this.packedLinks = packed.links;
    this.guardGroups = packed.guards.groups;
    this.guardKinds = packed.guards.kinds;
    this.guardSources = packed.guards.sources;
    for (const each of this.compilations) {
      const groups = packed.guards.of[each.compile_id] || [];
      each.guards = each.guards.map((guard, at) => ({ ...GUARD, ...guard, group: groups[at] }));
    }
    for (const each of this.recompiles) each.failed = each.failed.map((failed) => ({ ...FAILED, ...failed }));
    this.artifact = new Map(this.artifacts.map((each) => [each.id, each]));
    this.compilation = new Map(this.compilations.map((each) => [each.compile_id, each]));
    this.byCompilation = grouped(this.artifacts, (each) => each.compile_id);
    for (const group of this.byCompilation.values()) group.sort(byOrder);
    this.kernelsOf = grouped(this.kernels, (each) => each.artifact);
    this.ids = [...new Set([...this.compilations, ...this.artifacts].map((each) => each.compile_id))].filter((id) => id);
    this.colours = new Map();
    for (const id of this.ids) if (this.hasGraph(id)) this.colours.set(id, this.colours.size % COLOURS);
    this.linksCache = new Map();
  }

  // The recorded stacks of calls, outermost first. Links of kernels and of transformed code hold sets of lines instead.
  get callStacks() {
    if (!this.callStacksCache) {
      const graphs = this.artifacts.filter((each) => each.kind === "graph");
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

  nameOf(index) {
    const one = this.functions[index];
    if (!one) return "?";
    return one.resumes === null ? one.qualified_name || one.name : `${this.nameOf(this.root(index))}, resumed at line ${one.resumes_at}`;
  }

  titleOf(id) {
    const one = this.compilation.get(id);
    return one && one.function !== null ? `${id}  ${this.nameOf(one.function)}` : id || "";
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

  // The lines of the statement around a line of which nothing is known itself.
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

// ``Forward_graph`` reads better as words; what is no stage has its kind.
function stageName(artifact) {
  const names = { transformed: "Transformed code", full_code: "Whole story", kernels: "Kernels", guards: "Guards", wrapper: "Wrapper", note: "Note" };
  const name = (artifact.kind === "graph" || artifact.kind === "wrapper") && artifact.stage
    ? (/[a-z][A-Z]|\./.test(artifact.stage) ? artifact.stage : artifact.stage.replace(/_/g, " ").toLowerCase().replace(/\baot\b/g, "AOT"))
    : names[artifact.kind] || artifact.title;
  const capital = name.charAt(0).toUpperCase() + name.slice(1);
  const whole = artifact.backward === true && !/backward/i.test(name) ? `${capital} (backward)` : capital;
  return artifact.piece ? `${artifact.piece}: ${whole}` : whole;
}
