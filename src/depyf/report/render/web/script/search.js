// Search: everything that the page holds, by a part of its text.

const MOST_FOUND = 8; // of each kind: what else was found is in sight

// Kinds of things with what each is found by; ``look`` gives [text, address] for those whose text holds the words.
const SEARCHED = [
  ["Functions", (run, has) => run.functions.map((one, index) => [run.nameOf(index), index]).filter(([name]) => has(name)).map(([name, index]) => [name, run.hrefOf(run.startOf(index))])],
  ["Graph breaks", (run, has) => run.breaks.filter((each) => has(each.title) || has(each.reason) || has(each.explanation)).map((each) => [`${each.title}  ${each.place ? run.placeText(each.place) : ""}`, each.place ? run.hrefOf(each.place) : "#breaks"])],
  ["Modules", (run, has) => run.artifacts.flatMap((each) => each.modules.filter((one) => has(one.name) || has(one.type)).map((one) => [`${one.name}  ${one.type}  ${each.compile_id || ""}${each.backward === true ? "  backward" : ""}`, address("layers", [each.id, one.name], {}, run)])).sort(([one], [other]) => one.endsWith("  backward") - other.endsWith("  backward"))],
  ["Compilations", (run, has) => run.compilations.filter((each) => has(run.titleOf(each.compile_id)) || Object.keys(each.metrics).some(has) || each.restarts.some(has)).map((each) => [run.titleOf(each.compile_id), address("compilations", [each.compile_id], {}, run)])],
  ["Symbolic shapes", (run, has) => run.shapes.filter((each) => has(each.text) || has(SHAPE_KINDS[each.kind] || "") || has(each.reason)).map((each) => [`${each.compile_id || ""}  ${each.text}`, address("compilations", [each.compile_id || ""], {}, run)])],
  ["Recompilations", (run, has) => run.recompiles.filter((each) => has(each.compile_id) || each.failed.some((failed) => has(failed.words) || has(failed.text))).map((each) => [`${each.compile_id}  ${each.failed[0] ? each.failed[0].words || each.failed[0].text : ""}`, address("recompiles", [each.compile_id], {}, run)])],
  ["Kernels", (run, has) => run.kernels.filter((each) => has(each.name) || each.nodes.some(has)).map((each) => [`${each.name}  ${each.compile_id || ""}`, address("stages", [each.artifact, `L${each.first || each.calls[0] || 1}`], {}, run)])],
  ["Guards", (run, has) => run.compilations.flatMap((one) => one.guards.filter((guard) => has(guard.text) || has(run.written(guard.source)) || has(guard.required)).map((guard) => [`${one.compile_id}  ${guard.source && guard.required ? `${run.written(guard.source)}: ${guard.required}` : guard.text}`, guard.place ? run.hrefOf(guard.place) : address("guards", [one.compile_id], {}, run)]))],
  ["Stages and files", (run, has) => run.artifacts.filter((each) => has(each.title) || has(each.path || "") || has(each.stage)).map((each) => [`${stageName(each)}  ${each.compile_id || ""}`, address("stages", [each.id], {}, run)])],
  ["Your code", (run, has) => run.sources.flatMap((source, at) => linesWith(source.text || "", has).map(([line, text]) => [`${fileName(source.path)}:${line}  ${text}`, run.hrefOf([at, line])]))],
  ["Lines of stages", (run, has) => run.artifacts.flatMap((each) => linesOf(run, each, has).map(([line, text]) => [`${stageName(each)} ${each.compile_id || ""}:${line}  ${text}`, address("stages", [each.id, `L${line}`], {}, run)]))],
];

function linesWith(text, has) {
  if (!has(text)) return [];
  return text.split("\n").map((line, at) => [at + 1, line.trim()]).filter(([, line]) => has(line)).slice(0, MOST_FOUND + 1);
}

// Lines of an artifact, with the short names of parameters where the words are found in those.
function linesOf(run, artifact, has) {
  const found = linesWith(run.text(artifact), has);
  return found.length ? found : linesWith(run.shortText(artifact), has);
}

// Opens the dialog; what is typed is looked up a moment after the last key.
function openSearch() {
  const dialog = document.getElementById("search");
  if (dialog.open) return;
  const run = parseRoute(location.hash).run;
  const found = el("div", { class: "found", id: "found", role: "region", "aria-label": "Found", "aria-live": "polite" });
  let timer = 0;
  const input = el("input", {
    type: "search", id: "search-for", placeholder: "a function, a line, an operation, a kernel, a guard …", autocomplete: "off", spellcheck: "false",
    oninput: () => { clearTimeout(timer); timer = setTimeout(() => showFound(run, input.value, found), 80); },
    onkeydown: (event) => {
      const first = found.querySelector("a");
      if (event.key === "Enter" && first) { event.preventDefault(); first.click(); }
      if (event.key === "ArrowDown" && first) { event.preventDefault(); first.focus(); }
      if (event.key === "Escape") dialog.close(); // the first one would only empty the field
    },
  });
  fill(dialog, el("h2", { id: "search-title" }, "Search"), el("div", { class: "bar" }, el("label", { for: "search-for", class: "hidden" }, "Search for"), input,
    el("button", { type: "button", onclick: () => dialog.close() }, "Close")), found);
  dialog.onclick = (event) => { if (event.target.closest("a")) dialog.close(); };
  dialog.onkeydown = (event) => moveAmong(event, [...found.querySelectorAll("a")], input);
  dialog.showModal();
  input.focus();
}

function moveAmong(event, links, input) {
  const at = links.indexOf(document.activeElement);
  if (at < 0 || !["ArrowDown", "ArrowUp"].includes(event.key)) return;
  event.preventDefault();
  (links[at + (event.key === "ArrowDown" ? 1 : -1)] || input).focus();
}

function showFound(run, text, node) {
  const words = text.trim().toLowerCase();
  node.dataset.words = words;
  if (!words) {
    fill(node);
    return;
  }
  const has = (each) => each.toLowerCase().includes(words);
  const groups = SEARCHED.map(([name, look]) => [name, look(run, has)]).filter(([, list]) => list.length);
  fill(node, groups.length ? groups.map(([name, list]) => [
    el("h3", {}, name),
    el("ul", {}, list.slice(0, MOST_FOUND).map(([each, href]) => el("li", {}, el("a", { href }, shortened(each, 140))))),
    list.length > MOST_FOUND ? el("p", { class: "quiet" }, "and more: type more of it") : null,
  ]) : el("p", { class: "quiet" }, `Nothing holds ${JSON.stringify(shortened(text.trim(), 60))}.`));
}
