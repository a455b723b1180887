// Recompiles: per function, in the order in which they happened.

VIEWS.push({ id: "recompiles", title: "Recompiles", show: showRecompiles });

function showRecompiles({ run, parts }, node) {
  node.classList.add("page");
  const groups = grouped(run.recompiles, (each) => run.root(each.function));
  fill(
    node,
    el("h1", {}, "Recompiles"),
    run.recompiles.length
      ? [...groups].map(([index, list]) => recompileGroup(run, index, list))
      : el("p", { class: "quiet" }, "Nothing was compiled twice.")
  );
  if (run.lost.length) {
    add(node, [el("h2", {}, "Left to Python"), run.lost.map((each) => el("div", {}, each.place ? place(run, each.place) : null, fallbackCard(run, each)))]);
  }
  if (parts[0]) {
    const chosen = document.getElementById(`recompile-${parts[0]}`);
    if (chosen) {
      chosen.scrollIntoView({ block: "center" });
      chosen.classList.add("chosen");
    }
  }
}

function recompileGroup(run, index, list) {
  const where = run.startOf(index);
  const advice = list.length > 1 && list.every((each) => each.advice === list[0].advice) ? list[0].advice : "";
  return el(
    "section",
    { "aria-label": `Recompiles of ${shortened(run.nameOf(index), 60)}` },
    el("h2", {}, shortened(run.nameOf(index), 80), " ", where ? place(run, where) : null),
    el("p", { class: "quiet" }, `compiled again ${list.length === 1 ? "once" : `${list.length} times`}`),
    advice ? el("p", { class: "advice" }, el("b", {}, "What would avoid them: "), advice) : null,
    el("ol", { class: "recompiles" }, list.map((each) => el("li", { id: `recompile-${each.compile_id}` }, recompileCard(run, each, advice))))
  );
}
