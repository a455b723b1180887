// Lines that are not of the program: what Dynamo adds to transformed code for PyTorch's profiler, and the names that a graph
// gives to its parameters. They are folded, so that the rest stands out.

const OF_PROFILER = /_is_profiler_enabled|\brecord_pregraph_bytecode_(?:enter|exit)\b/;

// The numbers of such lines: those that name the profiler, and those that only make or test what these use.
function bookkeepingIn(artifact, text) {
  const found = new Set();
  if (artifact.kind !== "transformed" || !OF_PROFILER.test(text)) return found;
  const lines = text.split("\n");
  const names = new Set();
  lines.forEach((line, at) => {
    if (!OF_PROFILER.test(line)) return;
    found.add(at + 1);
    for (const [, assigned, receiver] of line.matchAll(/^\s*(\w+) = |\b(\w+)\.record_pregraph/g)) names.add(assigned || receiver);
  });
  lines.forEach((line, at) => {
    const made = /^\s*(\w+) = (?:None|__import_torch_dot_\w+)$/.exec(line) || /^\s*if (\w+)(?: is not None)?:$/.exec(line);
    if (made && names.has(made[1])) found.add(at + 1);
  });
  return found;
}

// The numbers of a graph's lines that give a parameter or buffer another name: with short names both are the same.
function parametersIn(artifact, text) {
  const found = new Set();
  if (artifact.kind !== "graph" || !/_(?:parameters|buffers)_/.test(text)) return found;
  text.split("\n").forEach((line, at) => {
    const [, input] = /^\s*\w+ = (\w+)$/.exec(line) || [];
    if (input && shortName(input) !== input) found.add(at + 1);
  });
  return found;
}

// What a pane of code needs to fold lines: which, and a remark with a button in their place.
function folding(lines, what) {
  const first = Math.min(...lines);
  return {
    folds: (line) => lines.has(line),
    remark: (line) => (line === first ? el("div", { class: "remarks", role: "presentation" }, el("button", { type: "button", class: "link", "data-fold": "", "aria-expanded": "false" },
      `${what} (${count(lines.size, "line")})`)) : null),
  };
}

const foldProfiler = (artifact, text) => folding(bookkeepingIn(artifact, text), "For PyTorch's profiler, not of your program");
const foldParameters = (artifact, text) => folding(parametersIn(artifact, text), "Names of parameters");

// The text of a graph's line as a pane beside the source shows it: of a comment that names a file, the name and the code.
// PyTorch quotes such lines with other marks in the explanation of a graph break.
function shortComment(text) {
  const comment = /^(\s*)# File:? "?(.+?)"?(?::|, line )(\d+),? in [^,]*(?:, code: (.*))?$/.exec(text);
  return comment ? `${comment[1]}# ${fileName(comment[2])}:${comment[3]}  ${comment[4] || ""}`.trimEnd() : text;
}
