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

// What a pane of code says of them: their class, by which they are folded, and a remark with a button in their place.
function bookkeepingHooks(lines) {
  const first = Math.min(...lines);
  const unfold = (event) => {
    const open = event.target.closest(".code").classList.toggle("unfolded");
    event.target.setAttribute("aria-expanded", String(open));
  };
  return {
    classes: (line) => (lines.has(line) ? "bookkeeping" : ""),
    remark: (line) => (line === first ? el("div", { class: "remarks", role: "presentation" }, el("button", { type: "button", class: "link", "aria-expanded": "false", onclick: unfold },
      `For PyTorch's profiler, not of your program (${count(lines.size, "line")})`)) : null),
  };
}

// The text of a graph's line as a pane beside the source shows it: of a comment that names a file, the name and the code.
function shortComment(text) {
  const comment = /^(\s*)# File: (.+?):(\d+) in [^,]*(?:, code: (.*))?$/.exec(text);
  return comment ? `${comment[1]}# ${fileName(comment[2])}:${comment[3]}  ${comment[4] || ""}`.trimEnd() : text;
}
