// Lines of transformed code that Dynamo adds around graphs for PyTorch's profiler: they are dimmed, the rest stands out.

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

// What a pane of code says of them: their class, and a remark below the first.
function bookkeepingHooks(lines) {
  const first = Math.min(...lines);
  return {
    classes: (line) => (lines.has(line) ? "bookkeeping" : ""),
    remark: (line) => (line === first ? el("div", { class: "remarks", role: "presentation" }, el("span", { class: "remark quiet" }, `For PyTorch's profiler, not of your program (${count(lines.size, "line")})`)) : null),
  };
}
