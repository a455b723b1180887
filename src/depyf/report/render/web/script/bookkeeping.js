// Lines that are not of the program: what Dynamo adds to transformed code for PyTorch's profiler, how that code takes
// parameters out of modules, and the names that a graph gives to its parameters. They are folded, so that the rest stands out.

const OF_PROFILER = /_is_profiler_enabled|\brecord_pregraph_bytecode_(?:enter|exit)\b/;

const OF_MODULES = /\._(?:modules|parameters|buffers)\b/;

// The numbers of such lines of transformed code: those that name the profiler and those that only make or test what these
// use; and those that take something out of modules.
function bookkeepingIn(artifact, text) {
  const found = { profiler: new Set(), modules: new Set() };
  if (artifact.kind !== "transformed") return found;
  const lines = text.split("\n");
  if (OF_PROFILER.test(text)) found.profiler = profilerIn(lines);
  if (OF_MODULES.test(text)) found.modules = modulesIn(lines);
  return found;
}

function profilerIn(lines) {
  const found = new Set();
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

// ``weight = parameters['weight']``, where ``parameters = self._modules['wte']._parameters`` was taken out so, too; and the
// ``del`` of nothing but these. An attribute of a module, ``layer.scale``, is the program's.
function modulesIn(lines) {
  const found = new Set();
  const names = new Set();
  lines.forEach((line, at) => {
    const [, name, from, path] = /^\s*(\w+) = (\w+)((?:\.\w+|\['[^']*'\])+)$/.exec(line) || [];
    if (name && (OF_MODULES.test(path) || (names.has(from) && /^\['[^']*'\]$/.test(path)))) {
      found.add(at + 1);
      names.add(name);
    }
    if (!/^\s*del\b/.test(line)) return;
    let end = at;
    if (/^\s*del \($/.test(line)) while (end + 1 < lines.length && !/^\s*\)$/.test(lines[end])) end += 1;
    const deleted = lines.slice(at, end + 1).join(" ").replace(/^\s*del\b/, "").match(/\w+/g) || [];
    if (deleted.every((each) => names.has(each))) for (let number = at; number <= end; number += 1) found.add(number + 1);
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

function foldBookkeeping(artifact, text) {
  const { profiler, modules } = bookkeepingIn(artifact, text);
  const what = [modules.size ? "Parameters taken out of modules" : null, profiler.size ? `${modules.size ? "for" : "For"} PyTorch's profiler` : null];
  return folding(new Set([...profiler, ...modules]), `${what.filter(Boolean).join(", and ")}, not of your program`);
}

const foldParameters = (artifact, text) => folding(parametersIn(artifact, text), "Names of parameters");

// The text of a graph's line as a pane beside the source shows it: of a comment that names a file, the name and the code.
// PyTorch quotes such lines with other marks in the explanation of a graph break.
function shortComment(text) {
  const comment = /^(\s*)# File:? "?(.+?)"?(?::|, line )(\d+),? in [^,]*(?:, code: (.*))?$/.exec(text);
  return comment ? `${comment[1]}# ${fileName(comment[2])}:${comment[3]}  ${comment[4] || ""}`.trimEnd() : text;
}

// A line of a graph as a pane beside the source shows it: with a short comment, dtype and shape of the result at its end, without
// strides and device, and without the names that end with the line.
function shortLine(text) {
  const [, start, shape, computes] = /^(\s*\w+) ?: ?"(\w+\[[^\]"]*\])[^"]*" ?(= .*)$/.exec(text) || [];
  const lean = (each) => each.replace(/;\s+(?:\w+ = )+None(?:\s*#.*)?$/, "");
  return shape ? `${start} ${lean(computes)}  # ${shape}` : lean(shortComment(text));
}
