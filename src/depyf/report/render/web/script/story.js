// Story: the compilation of one function in ten steps. Each step has what this run made of it, what to look at, and a question
// with the answer of this run.

VIEWS.push({ id: "story", title: "Story", show: showStory, keys: storyKeys });

const MOST_LINES = 40; // of a text in a step
const MOST_CHECKS = 8; // guards in a step
const MOST_LISTED = 16; // kernels and entries at first

let story = null;

function showStory({ run, parts }, node) {
  node.classList.add("page");
  const roots = run.roots.filter((index) => run.idsOf(index).length);
  const wanted = Number((parts[0] || "").slice(1));
  const first = Number(run.shownFirst(roots.map((index) => `f${index}`)).slice(1));
  const root = /^f\d+$/.test(parts[0] || "") && roots.includes(wanted) ? wanted : roots.includes(first) ? first : roots[0];
  if (root === undefined) {
    story = null;
    fill(node, el("h1", {}, "Story"), el("p", { class: "quiet" }, "Nothing was compiled in this run, so there is nothing to tell."));
    return;
  }
  story = new Story(run, root);
  const at = Math.min(Math.max(Number(parts[1]) || 1, 1), STEPS.length);
  story.at = at;
  const [title, tell] = STEPS[at - 1];
  const { about, look, shown, question, answer } = tell(story);
  const go = (to, text) => el("a", { class: "go", href: story.href(to) }, text);
  const options = roots.map((index) => el("option", { value: address("story", [`f${index}`, "1"], {}, run), selected: index === root }, shortened(run.nameOf(index), 80)));
  fill(
    node,
    el("div", { class: "bar" }, el("label", { for: "story-pick" }, "Function"), el("select", { id: "story-pick", onchange: (event) => (location.hash = event.target.value) }, options)),
    el("ol", { class: "steps", "aria-label": "Steps" }, STEPS.map(([name], number) => el("li", {}, el("a", { href: story.href(number + 1), title: name, "aria-label": `${number + 1}: ${name}`, "aria-current": number + 1 === at ? "step" : null }, number + 1)))),
    el("h1", {}, `${at}. ${title}`),
    about.map((text) => el("p", {}, text)),
    look ? el("p", { class: "look" }, el("b", {}, "Look at: "), look) : null,
    shown,
    question ? el("details", { class: "question" }, el("summary", {}, el("b", {}, "Question: "), question), el("p", {}, answer)) : null,
    el("p", { class: "bar" }, at > 1 ? go(at - 1, `‹ ${STEPS[at - 2][0]}`) : null, at < STEPS.length ? go(at + 1, `${STEPS[at][0]} ›`) : el("a", { class: "go", href: run.hrefOf(run.startOf(root)) }, "Go on in Source ›"))
  );
  node.scrollTo(0, 0);
}

function storyKeys(event) {
  const step = { ArrowRight: 1, n: 1, ArrowLeft: -1, p: -1 }[event.key];
  if (!step || !story || story.at + step < 1 || story.at + step > STEPS.length) return false;
  location.hash = story.href(story.at + step);
  return true;
}

// What the steps are made of: the function's first compilation that has a graph, and the artifacts of it.
class Story {
  constructor(run, root) {
    this.run = run;
    this.root = root;
    this.ids = run.idsOf(root);
    this.id = this.ids.find((id) => run.hasGraph(id)) || this.ids[0];
    this.one = run.compilation.get(this.id);
    this.artifacts = run.byCompilation.get(this.id) || [];
    this.breaks = run.breaks.filter((each) => this.ids.includes(each.compile_id));
    this.kernels = run.kernels.filter((each) => each.compile_id === this.id && each.backward !== true);
  }

  href(step) {
    return address("story", [`f${this.root}`, String(step)], {}, this.run);
  }

  graph(...stages) {
    return stages.map((stage) => this.artifacts.find((each) => each.kind === "graph" && each.stage === stage && !each.piece)).find(Boolean);
  }

  get captured() {
    return this.graph("Captured_Graph") || this.artifacts.find((each) => each.kind === "graph");
  }

  get forward() {
    return this.graph("Forward_graph");
  }

  get lines() {
    const { source, first_line: first, last_line: last } = this.run.functions[this.root];
    const all = Array.from({ length: last - first + 1 }, (_, at) => [source, first + at]);
    const within = (each) => this.run.at(each) && this.run.at(each).ids.size;
    return { all, inGraph: all.filter(within), stopped: all.filter((each) => this.run.at(each) && this.run.at(each).breaks.length) };
  }
}

// Lines of a text as they are numbered there; ``marked`` has those to look at.
function excerpt(text, language, { first = 1, last = Infinity, marked = new Set(), label, short, inputs = new Map(), hidden = new Set(), more }) {
  const lines = text.split("\n");
  const regions = longStrings(text, language);
  const end = Math.min(last, lines.length);
  const numbers = Array.from({ length: end - first + 1 }, (_, at) => first + at).filter((each) => !hidden.has(each));
  const shown = numbers.slice(0, MOST_LINES);
  const row = (number) => el("span", { class: marked.has(number) ? "row hit" : "row" }, el("span", { class: "no", "aria-hidden": "true" }, number), withShortNames(highlighted(short ? short(lines[number - 1]) : lines[number - 1], number - 1, language, regions), inputs), "\n");
  const left = numbers.length - shown.length;
  const folded = hidden.size && `${count(hidden.size, "line")} that Dynamo adds to take parameters out of modules, or for the profiler, ${hidden.size === 1 ? "is" : "are"} left out. `;
  return [
    el("pre", { class: "excerpt", tabindex: "0", role: "region", "aria-label": label, style: { "--digits": String(String(end).length) } }, shown.map(row)),
    left > 0 || more ? el("p", { class: "quiet" }, left > 0 ? `${count(left, "more line")}. ` : "", folded || "", more || "") : null,
  ];
}

function excerptOf(run, artifact, options = {}) {
  const text = run.text(artifact);
  const graph = artifact.kind === "graph";
  const { profiler, modules } = bookkeepingIn(artifact, text);
  const lines = text.split("\n");
  const last = graph ? lines.length : lines.length - [...lines].reverse().findIndex((line) => line && !line.startsWith("#"));
  const first = options.first || (graph ? beginOf(run, artifact) : 1 + lines.findIndex((line) => line && !line.startsWith("#") && !line.startsWith("import ")));
  return excerpt(text, artifact.language, { label: stageName(artifact), short: graph ? shortLine : null, inputs: run.inputsOf(artifact), last, ...options, first, hidden: new Set([...profiler, ...modules]), more: el("a", { href: address("stages", [artifact.id], {}, run) }, "All of it") });
}

// The operations of a graph by name, in order: torch.ops.aten.mul.Tensor is mul.
const operationsIn = (text) => [...text.matchAll(/\btorch\.ops\.(?:aten|prims)\.(\w+)/g)].map(([, name]) => name);

// The words of a list; of many the first.
const someOf = (words, most = 8) => (words.length > most ? `${words.slice(0, most).join(", ")} and ${words.length - most} more` : words.join(", "));

const NO_ARTIFACT = "Nothing of this step was recorded in this run";

function functionStep({ run, root, lines }) {
  const { all, inGraph, stopped } = lines;
  const one = run.functions[root];
  const source = run.sources[one.source];
  const code = (each) => /^(?!#|"""|def |async def |@|else\b|try\b|[)\]}]+,?:?$)./.test(run.code(each).trim());
  const outside = all.filter((each) => !inGraph.includes(each) && code(each));
  return {
    about: ["torch.compile runs this function in another way than Python does. At the first call, the part of PyTorch that is called Dynamo reads the function's bytecode (the instructions that Python runs) and follows it with stand-ins for the tensors, which have a shape and a dtype, but no data. It writes down which operations the tensors go through: a graph."],
    look: "the marked lines: their operations are in a graph.",
    shown: source && source.text !== null ? excerpt(source.text, "python", { first: one.first_line, last: one.last_line, marked: new Set(inGraph.map((each) => each[1])), label: "Your function" }) : el("p", { class: "quiet" }, "The source could not be read."),
    question: "Which lines are not marked, and why not?",
    answer: [
      outside.length ? `Line${outside.length === 1 ? "" : "s"} ${someOf(outside.map((each) => each[1]))}. A line that only decides, counts, or hands values on leaves no operation in the graph, and a line that no call has reached is not compiled. ` : "All lines with code are marked. ",
      stopped.length ? `Line${stopped.length === 1 ? " " : "s "}${someOf(stopped.map((each) => each[1]))} ${stopped.length === 1 ? "breaks" : "break"} a graph: operations before the break are in the graph, and Python runs what breaks it at each call (step 4).` : "",
    ],
  };
}

function rewrittenStep({ run, id, artifacts }) {
  const artifact = artifacts.find((each) => each.kind === "transformed");
  const text = artifact ? run.text(artifact) : "";
  const graphs = [...new Set([...text.matchAll(/\b(__compiled_fn_\w+)\(/g)].map(([, name]) => name))];
  const resumes = [...new Set([...text.matchAll(/\b(__resume_at_\w+)\(/g)].map(([, name]) => name))];
  return {
    about: [
      ["Dynamo writes new bytecode for the function, which is shown as Python here. The compilation is called ", chip(run, id), ": the first number is the function, counted from 0 in the order in which Dynamo met them; the second is the version, counted from 0 for each function. A version is kept as a cache entry."],
      "Names that begin with __compiled_fn are graphs. Names that begin with __resume_at are resume functions: the rest of your function after a place that could not be captured. Each has a number of its own.",
    ],
    look: graphs.length ? "what is left of your function around the call of the graph." : "what is left of your function.",
    shown: artifact ? excerptOf(run, artifact, { marked: new Set(text.split("\n").flatMap((line, at) => (/__compiled_fn_\w+\(|__resume_at_\w+\(/.test(line) ? [at + 1] : []))) }) : el("p", { class: "quiet" }, `${NO_ARTIFACT}: a log has no transformed code.`),
    question: artifact ? "What does Python still do at each call?" : null,
    answer: ["It checks the guards (the next step), ", graphs.length ? `calls ${someOf(graphs, 3)}, ` : "calls no graph, ", resumes.length ? `runs what could not be captured (step 4), and goes on in ${someOf(resumes, 3)}.` : "and returns the result."],
  };
}

function guardsStep({ run, id, one }) {
  const guards = one ? one.guards : [];
  const own = [...guards].sort((a, b) => (b.place !== null) - (a.place !== null) || a.group - b.group);
  const alike = [...grouped(own, (guard) => guard.source).values()];
  const checked = alike.filter(([guard]) => guard.source).slice(0, MOST_CHECKS);
  const tensor = alike.find((same) => same.some((guard) => guard.kind === "TENSOR_MATCH"));
  const value = alike.find((same) => same.some((guard) => /EQUALS_MATCH|CONSTANT_MATCH/.test(guard.kind)));
  const changed = tensor || value || checked[0];
  const required = (same) => requirementOf(run, same).replace(/, no marked dimension$/, ""); // true of nearly every tensor
  return {
    about: ["What was compiled is right only for calls like the first one. The conditions for that are guards: each call checks them, and the compiled code runs only if all hold."],
    look: `what this entry requires${guards.length ? ` (${count(guards.length, "guard")} in all)` : ""}.`,
    shown: checked.length
      ? [tableOf("Guards", ["Value", "Requirement"], checked.map((same) => [el("code", {}, shortened(run.written(same[0].source), 80)), required(same)]), { narrow: true }), el("p", {}, el("a", { href: address("guards", [id], {}, run) }, "All guards"))]
      : el("p", { class: "quiet" }, "No guards were recorded in this run."),
    question: changed ? "Which call does not fit?" : null,
    answer: changed ? ["One in which ", el("code", {}, shortened(run.written(changed[0].source), 60)), ` is not as required (${required(changed)}). Dynamo then compiles the function again, for the new values: a recompilation.`] : "",
  };
}

function breakStep({ run, ids, breaks }) {
  const [first] = breaks;
  const lost = run.lost.find((each) => ids.includes(each.compile_id));
  const after = first ? run.compiledAfter(first) : [];
  const near = first && first.place && run.sources[first.place[0]].text !== null ? first.place : null;
  return {
    about: ["A graph ends where Dynamo meets something that it can't capture: a graph break. Python runs what stands there, and what follows is compiled as a function of its own, with a graph and guards of its own."],
    look: first ? `why the graph ended${breaks.length > 1 ? ` (the first of ${count(breaks.length, "break")})` : ""}.` : null,
    shown: first
      ? [near ? excerpt(run.sources[near[0]].text, "python", { first: Math.max(1, near[1] - 2), last: near[1] + 2, marked: new Set([near[1]]), label: "The line of the graph break" }) : null, breakCard(run, first)]
      : lost ? fallbackCard(run, lost) : el("p", {}, "No graph broke in this function: all that it does with tensors is in one graph for each version."),
    question: first ? "What was compiled after the break?" : null,
    answer: after.length ? [[...grouped(after, (each) => each.function).values()].slice(0, 8).map((same) => [`${run.nameOf(same[0].function)}, ${count(same.length, "version")}: `, same.slice(0, 8).map((each) => [chip(run, each.compile_id), " "]), "· "]), "What follows on a way that no call has taken is not compiled."] : "Nothing that this run recorded: what follows may have no operation on tensors, or may never have run.",
  };
}

function graphStep({ run, captured, root }) {
  const links = captured ? run.links(captured) : [];
  const one = run.functions[root];
  const computing = links.find((link) => link.names.length && link.places.length && link.places[link.places.length - 1][0] === one.source) || links.find((link) => link.names.length && link.places.length);
  const where = computing && computing.places[computing.places.length - 1];
  const names = where ? [...new Set(links.filter((link) => link.places.length && keyOf(link.places[link.places.length - 1]) === keyOf(where)).flatMap((link) => link.names))] : [];
  return {
    about: ["This is the first graph: the operations on tensors in the order of the program, without Python around them. Each line names its result, and ends with the result's dtype and shape; a comment above says which line of yours it comes from. Dynamo hands the graph to the backend (the compiler Inductor, if no other was chosen), which makes code of it."],
    look: "how few of Python's steps are left.",
    shown: captured ? excerptOf(run, captured) : el("p", { class: "quiet" }, `${NO_ARTIFACT}: this function has no graph.`),
    question: where ? [`Which names in the graph come from ${run.placeText(where)}, `, el("code", {}, shortened(run.code(where).trim(), 80)), "?"] : null,
    answer: [el("code", {}, someOf(names.map(shortName))), ". In Source, a click on a line shows this for each stage."],
  };
}

function autogradStep(told) {
  const { run, forward, captured } = told;
  const joint = told.graph("Joint_graph");
  const backward = told.graph("Backward_graph") || told.artifacts.find((each) => each.kind === "graph" && each.backward === true);
  const names = forward ? [...new Set(operationsIn(run.text(forward)))] : [];
  return {
    about: [
      `AOTAutograd, the part of PyTorch that adds gradients to a graph, traces the graph once more: with the operations that PyTorch is built of (aten), so that large ones such as a norm are split, and without changes in place.${forward && /\bprimals_1\b/.test(run.text(forward)) ? " The graph's inputs are called primals_1, primals_2, and so on." : ""}`,
      backward ? "As gradients are needed, it also derives the backward: both are one joint graph, which is then cut into a forward and a backward graph." : forward && !joint ? "Here there is a forward graph only: it was compiled for a call without gradients." : "",
    ],
    look: forward ? (backward ? "what the forward returns beside its result: values that the backward needs." : "the names of the operations.") : null,
    shown: forward
      ? [excerptOf(run, forward), el("p", {}, [joint, backward].filter(Boolean).map((each) => [artifactLink(run, each), "  "]))]
      : el("p", { class: "quiet" }, `${NO_ARTIFACT}: the backend ran the graph of Dynamo as it is (backend="eager" does), or the result came from a cache.`),
    question: forward && captured ? "Which operations does the forward graph consist of?" : null,
    answer: names.length ? [el("code", {}, someOf(names, 12)), ". One line of yours may become several of them (a softmax, a norm), and an operation that changed a tensor in place is replaced by one that makes a new tensor."] : "None.",
  };
}

function passesStep(told) {
  const { run, id, forward } = told;
  const after = told.graph("AFTER_POST_GRAD");
  const passes = run.passes.filter((each) => each.compile_id === id);
  const body = (artifact) => run.text(artifact).split("\n").slice(beginOf(run, artifact) - 1).map(shortLine); // inputs are renamed
  const rows = forward && after ? diffRows(body(forward), body(after)) : null;
  const changed = rows && (rows.added || rows.removed);
  return {
    about: ["The compiler (Inductor) splits more operations into small ones (decompositions). Then passes run: each goes through the graph and rewrites parts of it, to remove what is not needed, to replace operations by cheaper ones, or to choose how tensors lie in memory."],
    look: changed ? "what was added and removed between the forward graph and the graph from which kernels are made." : null,
    shown: !after
      ? el("p", { class: "quiet" }, `${NO_ARTIFACT}: the backend was not Inductor (the default), or the code came from its cache.`)
      : [changed ? el("pre", { class: "difference", tabindex: "0", role: "region", "aria-label": "Difference" }, rows.rows.slice(0, MOST_LINES).map((row) => el("span", { class: { add: "diff-add", drop: "diff-drop" }[row.kind] || null }, `${{ add: "+ ", drop: "- " }[row.kind] || "  "}${row.text}\n`))) : el("p", {}, "No difference."), el("p", {}, forward ? el("a", { href: address("stages", [after.id], { diff: forward.id }, run) }, "The whole difference") : artifactLink(run, after))],
    question: after ? "Which passes changed something?" : null,
    answer: passes.length ? [someOf(passes.map((each) => `${each.name} (${each.nodes_before} nodes before, ${each.nodes_after} after)`), 12), ". The view Passes has the difference that each made."] : "No pass is recorded that changed this graph; names of nodes may differ, as the graph was traced again.",
  };
}

const computedBy = (kernel) => (kernel.nodes.length ? someOf(kernel.nodes.map(shortName), 6) : "");

function fusionStep({ run, id, kernels }) {
  const { own, library } = kernelCounts(kernels);
  const largest = kernels.reduce((most, each) => (!most || each.nodes.length > most.nodes.length ? each : most), null);
  const nodes = new Set(kernels.flatMap((each) => each.nodes)).size;
  return {
    about: ["A kernel is a compiled function that reads its inputs, computes one or several operations, and writes its results. Without fusion, each operation writes its result to memory, and the next one reads it again. Inductor puts operations that run over the same elements into one kernel, in which values between them are not written. Large matrix products are often left to functions of a library (extern_kernels, torch.ops)."],
    look: kernels.length ? "how many operations share a kernel." : null,
    shown: kernels.length
      ? tableOf("Kernels of the forward", ["Kernel", "Operations", "Lines"], kernels.map((each) => [el("code", {}, shortened(each.name, 60)), el("code", {}, computedBy(each)), each.places.slice(0, 4).map((where) => [place(run, where), " "])]), { most: MOST_LISTED })
      : el("p", { class: "quiet" }, `${NO_ARTIFACT}: no kernels are known. Inductor makes them; other backends run the operations of the graph one by one, or have code of their own.`),
    question: kernels.length ? "How many operations of the graph became how many kernels?" : null,
    answer: kernels.length ? `Of ${id}, without its backward and what follows a graph break, ${count(nodes, "operation")} became ${[own ? count(own, "kernel") : "", library ? count(library, "call") + " of a library" : ""].filter(Boolean).join(" and ")}. The kernel with most is ${largest.name}: ${count(largest.nodes.length, "operation")}.` : "",
  };
}

function kernelStep({ run, kernels }) {
  const generated = kernels.filter((each) => each.first);
  const kernel = generated.reduce((most, each) => (!most || each.nodes.length > most.nodes.length ? each : most), null);
  const artifact = kernel && run.artifact.get(kernel.artifact);
  const text = artifact ? run.text(artifact).split("\n").slice(kernel.first - 1, kernel.last).join("\n") : "";
  const pointers = (name) => [...new Set(text.match(new RegExp(`\\b${name}\\d+\\b`, "g")) || [])];
  const [inputs, outputs, both] = [pointers("in_ptr"), pointers("out_ptr"), pointers("in_out_ptr")];
  return {
    about: ["This is a kernel as Inductor wrote it: C++ for a CPU, Triton (a language for GPU kernels, written as Python) for a GPU. It reads its inputs, computes, and writes its results, for a few elements at a time."],
    look: kernel ? `${shortened(kernel.name, 60)}, which computes ${computedBy(kernel) || "operations that Inductor does not name"}.` : null,
    shown: artifact ? excerptOf(run, artifact, { first: kernel.first, last: kernel.last }) : el("p", { class: "quiet" }, `${NO_ARTIFACT}: no generated kernel is known.`),
    question: artifact ? "Which tensors does the kernel read, and which does it write?" : null,
    answer: ["By the names that Inductor gives, arguments that it reads: ", el("code", {}, someOf([...inputs, ...both]) || "none"), "; arguments that it writes: ", el("code", {}, someOf([...outputs, ...both]) || "none"), ". What it computes between them is in local variables."],
  };
}

function nextCallStep({ run, root, ids }) {
  const entries = run.compilations.filter((each) => ids.includes(each.compile_id) && each.function === root);
  const again = run.recompiles.filter((each) => ids.includes(each.compile_id) && each.function === root);
  const first = entries.find((each) => each.guard_latency !== null && each.guard_latency !== undefined);
  const latency = first ? `Checking the guards of ${first.compile_id} takes ${seconds(first.guard_latency)} in this run.` : "";
  const why = (id) => again.filter((each) => each.compile_id === id).map((each) => recompiledFor([each])).join("; ");
  return {
    about: ["At the next call nothing is traced. The guards of the cache entries are checked, one entry after the other, and the code of the first entry whose guards hold runs.", latency],
    look: entries.length > 1 ? "why each entry after the first was compiled." : "the entry that later calls can use.",
    shown: [
      tableOf("Cache entries of the function", ["Entry", numeric("Guards"), "Compiled because"], entries.map((each) => [compilationLink(run, each.compile_id), each.guards.length, why(each.compile_id) || (each === entries[0] ? "there was no entry yet" : each.failure || "")]), { most: MOST_LISTED }),
      el("p", {}, el("a", { href: address("flow", [`f${root}`], {}, run) }, "The way of a call as a drawing"), " · ", el("a", { href: address("recompiles", [`f${root}`], {}, run) }, "Recompiles")),
    ],
    question: "What happens at a call that fits no entry?",
    answer: "Dynamo compiles one more version. If a size has changed, Dynamo tries to make a version in which that size may vary: the size is a symbol there, and the version fits several sizes. There is a limit of versions (torch._dynamo.config.recompile_limit, 8 unless it was set; cache_size_limit before PyTorch 2.6): a call beyond the limit runs as plain Python. The view Overview says if that happened.",
  };
}

const STEPS = [
  ["Your function", functionStep],
  ["What Dynamo makes of it", rewrittenStep],
  ["Guards", guardsStep],
  ["Graph breaks", breakStep],
  ["The graph", graphStep],
  ["Forward and backward", autogradStep],
  ["Decompositions and passes", passesStep],
  ["Fusion", fusionStep],
  ["The kernel", kernelStep],
  ["The next call", nextCallStep],
];
